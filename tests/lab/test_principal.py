"""Principal directions: an orthonormal basis of any bytes; fewer bytes for rows that are alike."""

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from embedding.exchange.compression.base import unpack
from embedding.exchange.payload import PackedDelta
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Table
from generated import examples
from yeoron_lab.steps.principal import Basis, principal
from yeoron_lab.steps.threshold import Threshold

ROOM = 1 << 24
bytes_ = st.tuples(st.integers(0, 6), st.integers(6, 12)).flatmap(
    lambda shape: arrays.arrays(np.int8, shape)
)


def alike(rows: int = 2000, dim: int = 24, seed: int = 0) -> np.ndarray:
    """Rows of which three directions hold nine tenths."""
    rng = np.random.default_rng(seed)
    few = rng.normal(size=(rows, 3)) @ rng.normal(size=(3, dim))
    return (few + rng.normal(size=(rows, dim), scale=0.5)).astype(np.float32)


@settings(deadline=None)
@given(bytes_)
def test_any_bytes_are_directions_of_an_orthonormal_basis(directions):
    k, dim = directions.shape
    basis = Basis(directions)
    axes = basis.turned(np.eye(dim, dtype=np.float32))
    assert np.allclose(axes @ axes.T, np.eye(dim), atol=1e-5)
    assert np.allclose(basis.back(axes), np.eye(dim), atol=1e-5)
    seen = basis.turned(directions.astype(np.float32))
    assert np.abs(seen[:, k:]).max(initial=0.0) < 1e-3 * 127


def test_the_first_axes_hold_what_the_rows_have_most_of():
    rows = alike()
    seen = Basis(principal(rows, 3)).turned(rows)
    energy = np.linalg.eigvalsh(rows.T.astype(np.float64) @ rows)
    assert (seen[:, :3] ** 2).sum() > 0.97 * energy[-3:].sum()


@pytest.mark.parametrize("rows", [0, 1, 99])
def test_few_rows_have_no_directions(rows):
    assert principal(alike(rows), 16).shape == (0, 24)
    assert principal(np.zeros((500, 24), dtype=np.float32), 16).shape == (0, 24)


@pytest.mark.parametrize("directions", [0, 4])
@pytest.mark.parametrize("step", [0.001, 50.0])
def test_what_is_sent_and_what_is_left_are_the_whole(directions, step):
    rows = alike()
    ids, left = np.cumsum(np.random.default_rng(1).integers(1, 900, len(rows))), rows.copy()
    packed = Threshold(step, 0.7, directions).pack(Table.OUT, ids, left)
    found = unpack(packed, dim=rows.shape[1], most_bytes=ROOM)
    sent = np.zeros_like(rows)
    sent[np.searchsorted(ids, found.ids)] = found.values
    assert np.allclose(sent + left, rows, atol=1e-4)
    if step < 1:
        assert (left**2).sum() < 0.2 * (rows**2).sum()


def test_directions_save_bytes_and_leave_less():
    found = {}
    for directions in (0, 4):
        left = alike()
        packed = Threshold(0.001, 1.0, directions).pack(Table.IN, np.arange(len(left)), left)
        found[directions] = packed.data.nbytes, float((left**2).sum())
    assert found[4][0] < 0.8 * found[0][0]
    assert found[4][1] < found[0][1]


def test_one_step_for_all_rows_is_of_entries_as_they_are():
    left = alike()
    packed = Threshold(0.3, 0.0, 16).pack(Table.IN, np.arange(len(left)), left)
    assert packed.data[1:3].tolist() == [0, 0]
    assert np.abs(left).max() < 0.3 + 1e-5


@settings(max_examples=examples(80))
@given(st.data())
def test_damaged_bytes_are_refused_or_rows(data):
    rows = alike(400, 24)
    packed = Threshold(0.01, 1.0, 4).pack(Table.IN, np.arange(400), rows)
    damaged = packed.data.copy()
    for at, byte in data.draw(
        st.lists(st.tuples(st.integers(0, len(damaged) - 1), st.integers(0, 255)), max_size=4)
    ):
        damaged[at] = byte
    damaged = damaged[: data.draw(st.integers(0, len(damaged)) | st.just(len(damaged)))]
    fresh = PackedDelta(Table.IN, "threshold", packed.rows, 24, packed.entries, damaged)
    try:
        found = unpack(fresh, dim=24, most_bytes=ROOM)
    except RefusedError:
        return
    assert found.values.shape == (packed.rows, 24)
    assert (np.diff(found.ids) > 0).all()


def test_another_layout_is_refused():
    packed = Threshold(0.01, 1.0, 4).pack(Table.IN, np.arange(400), alike(400, 24))
    packed.data[0] = 1
    with pytest.raises(RefusedError, match="layout 1; 2 is accepted"):
        unpack(packed, dim=24, most_bytes=ROOM)


def test_directions_that_are_not_there_are_refused():
    packed = Threshold(0.01, 1.0, 4).pack(Table.IN, np.arange(400), alike(400, 24))
    for k in (25, 65_535):
        packed.data[1:3] = np.array([k], dtype="<u2").view(np.uint8)
        with pytest.raises(RefusedError, match=f"{k} directions of 24 columns"):
            unpack(packed, dim=24, most_bytes=ROOM)


class Sized(np.ndarray):
    """Rows that note the size (rows · inner · columns) of each product that they are part of."""

    sizes: ClassVar[list[int]] = []

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        if ufunc is np.matmul:
            self._note(inputs)
        options |= {} if out is None else {"out": tuple(map(plain, out))}
        found = getattr(ufunc, method)(*map(plain, inputs), **options)
        return found.view(Sized) if isinstance(found, np.ndarray) else found

    def __array_function__(self, function, types, inputs, options):
        if function in (np.dot, np.inner, np.tensordot):
            self._note(inputs)
        return super().__array_function__(function, types, inputs, options)

    def _note(self, inputs) -> None:
        left, right = map(np.shape, inputs)
        self.sizes.append(int(np.prod(left)) * (right[-1] if len(right) > 1 else 1))


def plain(value):
    return value.view(np.ndarray) if isinstance(value, Sized) else value


def test_no_product_is_so_large_that_the_library_starts_threads(monkeypatch):
    """They wait for each other by turning round: node and server would take each other's cores."""
    monkeypatch.setattr(Sized, "sizes", [])
    rows = alike(8192, 128).view(Sized)
    directions = principal(rows, 16)
    basis = Basis(np.asarray(directions))
    basis.back(basis.turned(rows).view(Sized))
    # Both take 8192 rows to the directions and back, at most 2**18 at a time, which OpenBLAS
    # computes without threads (interface/gemm.c).
    assert len(Sized.sizes) >= 2 * 2 * 8192 * 128 * 16 // 2**18
    assert max(Sized.sizes) <= 2**18
