"""Whole numbers in few bytes: they come back, and bytes that are none are refused."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.exchange import codec
from embedding.exchange.numbers import MOST_BYTES, read, written
from embedding.exchange.protocol import VocabularyDelta
from embedding.exchange.wire import decode, encode

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
    batch, header = encode(codec.encode_vocabulary(delta))
    back = codec.decode_vocabulary(decode(batch, pa.py_buffer(header)))
    assert back.alive_counts.dtype == np.float64
    assert np.array_equal(back.alive_counts, counts)
