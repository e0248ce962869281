"""Whichever way rows travel, everything that nodes moved is in the server's tables at the end."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
from nodes_in_step import DIM, Block, Line, learn

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import PROTOCOL_VERSION
from embedding.exchange.topologies.base import JoiningNode
from embedding.exchange.topologies.traits import TOPOLOGIES
from embedding.exchange.topology import TopologyConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rowstore import RowShape
from embedding.server.state import ServerState

NAMES = ("n0", "n1")
WORDS = ("봄", "여름", "가을")
SCRIPTS = (
    [Block(("봄", "여름"), 1), Block(("봄",), 2)],
    [Block(("봄", "가을"), 4), Block(("가을",), 8)],
)


@pytest.mark.parametrize("kind", TOPOLOGIES.names())
def test_what_nodes_moved_is_with_the_server_once_all_have_finished(kind: str) -> None:
    settings = ServerConfig(min_count=1, half_life_tokens=None, device="cpu").model_copy(
        update={"initial_rows": 4}
    )
    state = ServerState(settings, SyncConfig(policy="asp"), RowShape(DIM, seed=1))
    state.words.admit(WORDS, np.ones(len(WORDS), dtype=np.int64))
    before = rows(state)
    meet = TOPOLOGIES.traits(kind).meet
    meeting = nullcontext() if meet is None else meet(TopologyConfig(kind=kind), NAMES, 0)
    with meeting as spec, ThreadPoolExecutor(len(NAMES)) as pool:
        nodes = [pool.submit(node, state, kind, at, spec) for at in range(len(NAMES))]
        for each in nodes:
            each.result(timeout=300)
    assert rows(state) - before == pytest.approx([1 + 2 + 4, 1, 4 + 8], abs=1e-2)


def rows(state: ServerState) -> np.ndarray:
    """First number of each word's vector."""
    slots = state.vocabulary.slots(state.vocabulary.ids(WORDS), "test")
    tables = state.tables.read("in", slots)
    return tables[:, 0].astype(np.float64)


def node(state: ServerState, kind: str, rank: int, meeting) -> None:
    """Learns its script."""
    name = NAMES[rank]
    line = Line(state, name)
    welcome = state.hello(name, version=PROTOCOL_VERSION, digest="", clock=0)
    joining = JoiningNode(
        name=name,
        incarnation=str(rank),
        config=TopologyConfig(kind=kind, rechoose_blocks=1),
        exchange=ExchangeConfig(rows="float32", compression="none"),
        meeting=meeting,
        welcome=welcome,
        buckets=0,
        tokens=lambda place: int(place or 0),
        stop=threading.Event(),
    )
    transport = TOPOLOGIES.get(kind)(line, joining)
    try:
        for sequence, block in enumerate(SCRIPTS[rank]):
            learn(transport, sequence, block)
        transport.finish()
    finally:
        transport.close()
