"""Rows in half precision: the same numbers as numpy's, whichever instruction made them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from embedding.exchange.compression import halves
from embedding.exchange.compression.halves import narrow, widen

SHAPES = st.tuples(st.integers(0, 5), st.integers(0, 11))
FLOATS = st.floats(width=32, allow_nan=False)


@pytest.fixture(autouse=True, params=["as the CPU does", "by numpy"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "by numpy":
        monkeypatch.setattr(halves, "converts", lambda: False)


def test_every_half_is_widened_exactly() -> None:
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    wide = widen(every)
    assert wide.dtype == np.float32
    with np.errstate(invalid="ignore"):
        assert np.array_equal(wide, every.astype(np.float32), equal_nan=True)
    known = ~np.isnan(every)
    assert np.array_equal(narrow(wide)[known].view(np.uint16), every[known].view(np.uint16))
    assert np.isnan(narrow(wide)[~known]).all()


@given(SHAPES.flatmap(lambda shape: arrays.arrays(np.float32, shape, elements=FLOATS)))
@example(np.array([[1 + 2**-11, 1 + 3 * 2**-11, 65519.0, 65520.0]], dtype=np.float32))
def test_rounding_is_to_the_nearest_even_half(values: np.ndarray) -> None:
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16)
    found = narrow(values)
    assert found.dtype == np.float16
    assert found.shape == values.shape
    assert np.array_equal(found.view(np.uint16), expected.view(np.uint16))


@given(arrays.arrays(np.float32, (3, 9), elements=st.floats(-60_000, 60_000, width=32)))
def test_rounding_is_off_by_half_a_unit_at_most(values: np.ndarray) -> None:
    bound = np.maximum(np.abs(values) * 2.0**-11, 2.0**-25)
    assert (np.abs(widen(narrow(values)) - values) <= bound).all()


def test_what_is_too_large_becomes_infinite() -> None:
    found = narrow(np.array([1e30, -1e30] * 9, dtype=np.float32))
    assert found.tolist() == [np.inf, -np.inf] * 9


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_widened_rows_are_their_own_and_may_come_in_strides(dtype: type) -> None:
    rows = np.arange(80, dtype=dtype).reshape(8, 10)
    rows.flags.writeable = False
    wide = widen(rows[::2, 1:])
    assert np.array_equal(wide, rows[::2, 1:].astype(np.float32))
    wide[:] = 0
    assert rows.any()
    assert np.array_equal(narrow(wide.T), np.zeros((9, 4), dtype=np.float16))
