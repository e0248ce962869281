"""Nodes as threads around one server's state: real sums through sockets, scripted blocks."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import (
    PROTOCOL_VERSION,
    Ack,
    PulledRows,
    PullRequest,
    Push,
    VocabularyDelta,
)
from embedding.exchange.topology import MeetingSpec
from embedding.kernel.records import FloatArray, IntArray, SourceProgress, Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rowstore import RowShape
from embedding.server.state import ServerState
from embedding.server.status import build_status
from yeoron_lab.allreduce.meeting import Meeting
from yeoron_lab.allreduce.reducing import ReducingTransport
from yeoron_lab.allreduce.rendezvous import rendezvous

DIM = 3
WORD_TABLES = (Table.IN, Table.OUT)


class Line:
    """One node's calls to a server's state; keeps what was pushed."""

    def __init__(self, state: ServerState, node: str) -> None:
        self.state, self.node = state, node
        self.pushes: list[Push] = []
        state.hello(node, version=PROTOCOL_VERSION, digest="", clock=0)

    def admit(self, words: Sequence[str], counts: IntArray, contributors=None) -> IntArray:
        del contributors
        return self.state.words.admit(words, counts)

    def vocabulary(self, since: int = 0) -> VocabularyDelta:
        return self.state.words.delta(since)

    def pull(self, request: PullRequest) -> PulledRows:
        for _ in range(30):
            found = self.state.pull(self.node, request)
            if isinstance(found, PulledRows):
                return found
        raise AssertionError(f"{self.node} waits for {found} for ever")

    def push(self, push: Push) -> Ack:
        self.pushes.append(push)
        return self.state.push(push)

    def idle(self) -> None:
        self.state.idle(self.node)

    def status(self) -> dict[str, Any]:
        return build_status(self.state)

    def finish(self) -> None: ...

    def figures(self) -> dict[str, Any]:
        return {}

    def close(self) -> None: ...


@dataclass(frozen=True)
class Block:
    """Words that a block moves in both tables, each by `by`; its event-time window."""

    words: tuple[str, ...]
    by: int
    window: int = 0


@dataclass
class Ran:
    """What came of a run: each node's route and line, and rows as each block pulled them."""

    state: ServerState
    routes: list[ReducingTransport]
    lines: list[Line]
    pulled: list[list[dict[str, FloatArray]]] = field(default_factory=list)

    def server_row(self, word: str, table: Table = Table.IN) -> FloatArray:
        slots = self.state.vocabulary.slots(self.state.vocabulary.ids([word]), "test")
        row: FloatArray = self.state.tables.read(table, slots)[0]
        return row


def in_step(
    scripts: Sequence[Sequence[Block]],
    config,
    sync: SyncConfig | None = None,
    *,
    least: float = 0.5,
) -> Ran:
    """Run a node for each script until all have finished; raises what the first node raised."""
    settings = ServerConfig(min_count=1, half_life_tokens=None, device="cpu").model_copy(
        update={"initial_rows": 4}
    )
    state = ServerState(settings, sync or SyncConfig(policy="asp"), RowShape(DIM, seed=1))
    ran = Ran(state, [], [Line(state, f"n{i}") for i in range(len(scripts))])

    def node(rank: int, folder: Path) -> tuple[ReducingTransport, list[dict[str, FloatArray]]]:
        names = tuple(f"n{i}" for i in range(len(scripts)))
        spec = MeetingSpec(folder=folder, names=names)
        timeout_s = config.peer_timeout_s
        meeting = Meeting(spec, name=names[rank], incarnation=str(rank), timeout_s=timeout_s)
        route = ReducingTransport(
            ran.lines[rank],
            meeting,
            config,
            dim=DIM,
            half=False,
            least=least,
            tokens=lambda place: int(place or 0),
        )
        try:
            seen = [learn(route, sequence, block) for sequence, block in enumerate(scripts[rank])]
            route.finish()
        finally:
            route.close()
        return route, seen

    with rendezvous() as folder, ThreadPoolExecutor(len(scripts)) as pool:
        running = [pool.submit(node, rank, folder) for rank in range(len(scripts))]
        for each in running:
            route, seen = each.result(timeout=300)
            ran.routes.append(route)
            ran.pulled.append(seen)
    return ran


def learn(
    route: Any, sequence: int, block: Block, behind: int | None = None, clock: int | None = None
) -> dict[str, FloatArray]:
    """One block: name its words, pull their rows, push what they moved by.

    behind  blocks of the node up to this one's end, also of its earlier processes
    clock   of the node, `sequence` in its first process
    """
    words = list(dict.fromkeys(block.words))
    ids = route.admit(words, np.ones(len(words), dtype=np.int64))
    rows = route.pull(
        PullRequest({Table.IN: ids, Table.OUT: ids}, clock=sequence if clock is None else clock)
    )
    assert rows.sequence == sequence, "nothing of this node is outstanding"
    moved = np.full((len(ids), DIM), block.by, dtype=np.float32)
    progress = (SourceProgress("s", 1, len(words), float(block.window), block.window),)
    route.push(
        Push(
            node=route.node,
            sequence=sequence + 1,
            clock=rows.clock,
            deltas=tuple(RowDelta(table, ids, moved.copy()) for table in WORD_TABLES),
            tokens=len(words),
            progress=progress,
            offset=str(sequence + 1 if behind is None else behind),
        )
    )
    return dict(zip(words, np.array(rows.rows[Table.IN], dtype=np.float32), strict=True))
