"""Pushes of several nodes as one: all of them or none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import PROTOCOL_VERSION, PullRequest, Push
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rowstore import RowShape
from embedding.server.state import ServerState
from yeoron_lab.aggregating.aggregator import push_together

NODES = ("a", "b")
DIM = 2


def a_state(policy: str = "ssp") -> ServerState:
    config = ServerConfig(min_count=1, half_life_tokens=None, device="cpu")
    state = ServerState(config, SyncConfig(policy=policy), RowShape(DIM, seed=1))
    state.words.admit(["x", "y"], np.ones(2, dtype=np.int64))
    for node in NODES:
        state.hello(node, version=PROTOCOL_VERSION, digest="", clock=0)
        ids = np.arange(2, dtype=np.int64)
        state.pull(node, PullRequest({Table.IN: ids, Table.OUT: ids}, 0))
    return state


def pushes() -> list[Push]:
    """What a and b pushed, the sum of their rows with the first."""
    moved = RowDelta(Table.OUT, np.arange(2), np.full((2, DIM), 3, dtype=np.float32))
    return [Push("a", 1, 0, (moved,), tokens=5), Push("b", 1, 0, tokens=7)]


def sessions(state: ServerState) -> list[int]:
    return [state.ledger.of(node).session for node in NODES]


def rows(state: ServerState) -> list[float]:
    return state.tables.read(Table.OUT, np.arange(2))[:, 0].tolist()


@pytest.mark.parametrize("policy", ["bsp", "ssp", "asp"])
def test_all_are_booked_with_the_rows(policy: str) -> None:
    state = a_state(policy)
    acks = push_together(state, pushes(), sessions(state))
    assert [(ack.sequence, ack.clock) for ack in acks] == [(1, 1), (1, 1)]
    assert rows(state) == [3.0, 3.0]
    assert state.meters.tokens == 12
    assert [state.ledger.of(node).applied for node in NODES] == [1, 1]


def taken_before(state: ServerState, parts: list[Push]) -> None:
    state.push(replace(parts[1], deltas=()))


def replaced(state: ServerState, parts: list[Push]) -> None:
    state.hello("b", version=PROTOCOL_VERSION, digest="", clock=0)


def gap(state: ServerState, parts: list[Push]) -> None:
    parts[1] = replace(parts[1], sequence=2)


def ahead(state: ServerState, parts: list[Push]) -> None:
    parts[1] = replace(parts[1], clock=5)


def stranger(state: ServerState, parts: list[Push]) -> None:
    parts[1] = replace(parts[1], node="c")


def unknown_row(state: ServerState, parts: list[Push]) -> None:
    (delta,) = parts[0].deltas
    parts[0] = replace(parts[0], deltas=(replace(delta, ids=np.asarray([0, 99])),))


def no_number(state: ServerState, parts: list[Push]) -> None:
    (delta,) = parts[0].deltas
    parts[0] = replace(parts[0], deltas=(replace(delta, values=delta.values * np.nan),))


@pytest.mark.parametrize(
    "spoil", [taken_before, replaced, gap, ahead, stranger, unknown_row, no_number]
)
def test_when_one_cannot_be_taken_none_is(
    spoil: Callable[[ServerState, list[Push]], None],
) -> None:
    state, parts = a_state(), pushes()
    numbers = sessions(state)
    spoil(state, parts)
    before = state.meters.tokens
    with pytest.raises(RefusedError):
        push_together(state, parts, numbers)
    assert rows(state) == [0.0, 0.0]
    assert state.meters.tokens == before
    assert state.ledger.of("a").accepted == 0
