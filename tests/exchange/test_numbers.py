"""Whole numbers in few bytes: they come back, and bytes that are none are refused."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.exchange import codec
from embedding.exchange.numbers import expanded, read, squeezed, written
from embedding.exchange.protocol import VocabularyDelta
from embedding.exchange.wire import Message, decode, encode
from embedding.kernel.errors import RefusedError

FREE = 1_048_576
MOST_BYTES = 10
MOST_GROWTH = 200

whole = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 300)


@given(st.lists(whole, max_size=40))
def test_numbers_come_back_as_they_were(values):
    values = np.array(values, dtype=np.int64)
    data, back = written(values), np.empty_like(values)
    assert read(data, back) is None
    assert np.array_equal(back, values)
    assert data.nbytes <= MOST_BYTES * len(values)


def test_ids_that_lie_near_each_other_take_a_byte_each():
    ids = np.cumsum(np.random.default_rng(0).integers(1, 64, 5_000))
    assert written(ids).nbytes <= len(ids) + 1


@given(st.binary(max_size=40), st.integers(0, 12))
def test_any_bytes_are_read_or_refused(data, n):
    data, values = np.frombuffer(data, dtype=np.uint8), np.empty(n, dtype=np.int64)
    wrong = read(data, values)
    ends = int((data < 128).sum())
    if wrong is None:
        assert ends == n
        assert not len(data) or data[-1] < 128
    else:
        assert ends != n or data[-1] >= 128 or wrong == "a number has more than 64 bits"


@pytest.mark.parametrize("last", [2, 0x7F])
def test_a_number_of_more_than_64_bits_is_refused(last):
    data = np.array([0xFF] * 9 + [last], dtype=np.uint8)
    assert read(data, np.empty(1, dtype=np.int64)) == "a number has more than 64 bits"


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


@given(st.binary(min_size=0, max_size=60))
def test_any_bytes_expand_or_are_none(data):
    found = expanded(np.frombuffer(data, dtype=np.uint8))
    assert found is None or found.nbytes <= max(FREE, MOST_GROWTH * len(data))


def test_few_bytes_do_not_stand_for_many():
    ids = np.arange(50_000)
    batch, header = encode(Message({"op": "x"}, {"ids": ids}))
    assert batch.nbytes < 600
    assert np.array_equal(decode(batch, pa.py_buffer(header)).arrays["ids"], ids)
    assert squeezed(np.zeros(10_000_000, dtype=np.uint8)) is None
    bomb = pa.Codec("zstd").compress(pa.py_buffer(bytes(10_000_000)))
    length = np.array([10_000_000], dtype="<u4").view(np.uint8)
    assert expanded(np.concatenate([length, np.frombuffer(bomb, dtype=np.uint8)])) is None


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
