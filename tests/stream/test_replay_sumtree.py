"""The sum tree against a plain list of weights."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generated import examples
from yeoron_lab.prioritised.memory import SumTree

weight = st.one_of(st.just(0.0), st.floats(1e-6, 1e6))


@settings(max_examples=examples(80))
@given(data=st.data(), n=st.integers(1, 200))
def test_it_finds_what_a_plain_list_finds(data: st.DataObject, n: int) -> None:
    tree, plain = SumTree(n), [0.0] * n
    for _ in range(data.draw(st.integers(1, 5))):
        changes = data.draw(st.lists(st.tuples(st.integers(0, n - 1), weight), max_size=150))
        tree.set(np.array([at for at, _ in changes], np.int64), np.array([w for _, w in changes]))
        for at, value in changes:
            plain[at] = value
        assert tree.total == pytest.approx(sum(plain), rel=1e-12, abs=0)
        assert tree.get(np.arange(n)).tolist() == plain
        if not sum(plain):
            continue
        shares = data.draw(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=30))
        ends = list(accumulate(plain))
        for share, leaf in zip(shares, tree.find(np.array(shares) * tree.total), strict=True):
            # Rounding may move a mass that lies on a border, never onto a leaf of weight 0.
            mass, slack = share * tree.total, 1e-9 * tree.total
            assert plain[leaf] > 0
            assert ends[leaf] - plain[leaf] - slack <= mass <= ends[leaf] + slack


def test_steps_grow_with_the_logarithm() -> None:
    """Levels that a draw walks and a change rebuilds: one more when the leaves double."""
    depths = []
    for n in (1_000, 2_000, 1_000_000):
        tree, touched = SumTree(n), []

        class Counting(np.ndarray):
            def __getitem__(self, key: object, touched: list[int] = touched) -> object:
                if isinstance(key, np.ndarray):
                    touched.append(len(key))
                return super().__getitem__(key)

        tree.set(np.arange(n), np.ones(n))
        tree._nodes = tree._nodes.view(Counting)
        tree.find(np.array([n / 3]))
        tree.set(np.array([5]), np.array([2.0]))
        depths.append(sum(touched))
    assert depths[1] - depths[0] <= 4
    assert depths[2] <= 2 * depths[0]


def test_errors_of_rounding_do_not_pile_up() -> None:
    tree = SumTree(64)
    for step in range(2_000):
        tree.set(np.arange(64), np.full(64, 1e12 if step % 2 == 0 else 1e-3))
    assert tree.total == pytest.approx(0.064, rel=1e-12)


def test_a_tree_of_nothing_takes_nothing() -> None:
    tree = SumTree(1)
    tree.set(np.zeros(0, np.int64), np.zeros(0))
    assert tree.total == 0
    assert len(tree.find(np.zeros(0))) == 0
