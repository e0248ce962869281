from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from embedding.text.pool_worker import Collecting

FULL = 500


class Node:
    """Something that can be in a cycle."""

    def __init__(self) -> None:
        self.other: Node | None = None


@pytest.fixture
def collecting() -> Iterator[Collecting]:
    each = Collecting()
    each.begin()
    yield each
    # What is frozen stays so: each search after this would look through all that was imported.
    gc.enable()


def cycle() -> weakref.ref[Node]:
    one, other = Node(), Node()
    one.other, other.other = other, one
    return weakref.ref(one)


def test_a_cycle_stays_within_a_block_and_goes_between_two(collecting: Collecting) -> None:
    left = cycle()
    for _ in range(200_000):  # the collector would have looked by now
        Node()
    assert not gc.isenabled()
    assert left() is not None
    collecting.between()
    assert left() is None


def test_a_cycle_that_outlived_its_block_goes_at_last(collecting: Collecting) -> None:
    one, other = Node(), Node()
    one.other, other.other = other, one
    left = weakref.ref(one)
    for _ in range(3):
        collecting.between()
    del one, other
    for _ in range(3):
        collecting.between()
    assert left() is not None
    for _ in range(FULL):
        collecting.between()
    assert left() is None
