"""Whole numbers in few bytes: they come back, and bytes that are none are refused."""

import contextlib
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.exchange import codec
from embedding.exchange.protocol import VocabularyDelta
from embedding.exchange.wire import Message, decode, encode
from embedding.kernel.errors import RefusedError

whole = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 300)


def sent(ids: np.ndarray) -> tuple[pa.RecordBatch, pa.Buffer]:
    batch, header = encode(Message({"op": "x"}, {"ids": ids}))
    return batch, pa.py_buffer(header)


def read(batch: pa.RecordBatch, header: pa.Buffer) -> np.ndarray:
    return decode(batch, header).arrays["ids"]


def damaged(packed: bytes, n: int) -> np.ndarray:
    """What is read where these bytes came in place of `n` numbers."""
    batch, header = sent(np.arange(50_000))
    facts = json.loads(header.to_pybytes())
    assert facts["parts"][0][1] == "z8"
    facts["parts"] = [["ids", "z8", [n]]]
    batch = batch.set_column(0, "slot0", pa.array([packed], pa.large_binary()))
    return read(batch, pa.py_buffer(json.dumps(facts).encode()))


def packed(data: bytes) -> bytes:
    """As numbers are: four bytes that say how many follow, and these with zstd."""
    return len(data).to_bytes(4, "little") + pa.Codec("zstd").compress(data).to_pybytes()


@given(st.lists(whole, min_size=1, max_size=40), st.sampled_from([1, 1000]))
def test_numbers_come_back_as_they_were(values, times):
    values = np.resize(np.array(values, dtype=np.int64), times * len(values))
    assert np.array_equal(read(*sent(values)), values)


@given(st.binary(min_size=1, max_size=40), st.integers(1, 12))
def test_any_bytes_are_read_or_refused(data, n):
    if sum(byte < 128 for byte in data) != n or data[-1] >= 128:
        with pytest.raises(RefusedError):
            damaged(packed(data), n)
    else:
        with contextlib.suppress(RefusedError):  # of more than 64 bits
            assert len(damaged(packed(data), n)) == n


@pytest.mark.parametrize("last", [2, 0x7F])
def test_a_number_of_more_than_64_bits_is_refused(last):
    with pytest.raises(RefusedError, match="a number has more than 64 bits"):
        damaged(packed(bytes([0xFF] * 9 + [last])), 1)


@pytest.mark.parametrize("counts", [[3.0, 9.0], [0.25, 9.0], [3.0, 2.0**60]])
def test_counts_of_the_vocabulary_come_back_whole_or_not(counts):
    none = np.empty(0, dtype=np.int64)
    counts = np.array(counts)
    delta = VocabularyDelta(1, ["a"], np.array([4]), np.array([2]), none, np.array([1, 4]), counts)
    batch, header = encode(codec.to_message(delta))
    back = codec.from_message(VocabularyDelta, decode(batch, pa.py_buffer(header)))
    assert back.alive_counts.dtype == np.float64
    assert np.array_equal(back.alive_counts, counts)


def test_many_numbers_take_less_than_a_byte_each():
    rng = np.random.default_rng(0)
    ids = np.sort(rng.choice(160_000, 40_000, replace=False))
    message = Message({"op": "x"}, {"ids": ids})
    batch, header = encode(message)
    assert batch.nbytes < 0.6 * len(ids)
    assert np.array_equal(decode(batch, pa.py_buffer(header)).arrays["ids"], ids)


def test_a_few_thousand_numbers_are_sent_without_zstd():
    """They are a hundredth of their rows, and it takes longer than to write them."""
    _, header = encode(Message({"op": "x"}, {"ids": np.arange(0, 24_000, 3)}))
    assert json.loads(header)["parts"] == [["ids", "i8", [8_000]]]


@given(st.binary(max_size=60))
def test_any_bytes_expand_or_are_refused(data):
    with contextlib.suppress(RefusedError):
        assert len(damaged(data, 7)) == 7


def test_few_bytes_do_not_stand_for_many():
    ids = np.arange(50_000)
    batch, header = sent(ids)
    assert batch.nbytes < 600
    assert np.array_equal(read(batch, header), ids)
    with pytest.raises(RefusedError, match="zstd"):
        damaged(packed(bytes(10_000_000)), 10_000_000)


def test_damage_of_numbers_is_refused_in_a_sentence():
    batch, header = encode(Message({"op": "x"}, {"ids": np.arange(0, 90_000, 3) ** 2 % 777}))
    facts = json.loads(header)
    assert facts["parts"][0][1] == "z8"
    for part in (["ids", "z8", [7]], ["ids", "z8", [40_000]], ["ids", "i8", [30_000]]):
        with pytest.raises(RefusedError, match="'ids'"):
            decode(batch, pa.py_buffer(json.dumps({**facts, "parts": [part]}).encode()))
    short = pa.array([batch.column(0)[0].as_py()[:-3]], pa.large_binary())
    cut = batch.set_column(0, "slot0", short)
    with pytest.raises(RefusedError, match="zstd"):
        decode(cut, pa.py_buffer(header))
