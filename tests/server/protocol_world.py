"""Honest nodes around a real server's state and its checkpoints, step by step, without a wire.

Document i of a node is one word that occurs nowhere else, and its push adds 1 to the word's row: so
the row says how often the push was applied, and the word's count how often it was counted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from named import named

from embedding.errors import RefusedError, ReplacedError
from embedding.exchange.batch import ROUND, ready, work
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import VERSION, Push, Rows
from embedding.records import SourceProgress, Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.flight.greeting import lost
from embedding.server.flight.rounds import take_part
from embedding.server.policies import Drop, Instruction
from embedding.server.recovery.checkpoint import CheckpointFolder
from embedding.server.recovery.restoring import Recovery
from embedding.server.state import ServerState

DIM = 2
NONE = np.empty(0, dtype=np.int64)


class Time:
    """In place of the `time` module."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    time = monotonic


class Watched(ServerState):
    """Remembers what became of each push since this server began."""

    fate: dict[tuple[str, int], str]

    def execute(self, instructions: Sequence[Instruction], now: float) -> None:
        for instruction in instructions:
            what = "dropped" if isinstance(instruction, Drop) else "applied"
            self.fate |= {(ticket.node, ticket.sequence): what for ticket in instruction.tickets}
        super().execute(instructions, now)


@dataclass
class Node:
    """A process that reads a document after the other.

    fresh    it has pushed nothing yet
    kept     its pushes that are in no checkpoint
    owed     sequence that a checkpoint has to hold before it may read: processes before it pushed
             so far, and nobody could send that again
    reading  clocks that it has read at and not pushed yet
    """

    name: str
    life: int = 0
    alive: bool = False
    connected: bool = False
    fresh: bool = True
    session: int = 0
    clock: int = 0
    sequence: int = 0
    document: int = 0
    owed: int = 0
    kept: list[Push] = field(default_factory=list)
    reading: list[int] = field(default_factory=list)


class World:
    """A server that can crash, and its nodes.

    ghosts   pushes of processes that were killed, still on their way: session and push
    dropped  documents that `backup` left out at some time
    """

    def __init__(self, time: Time, names: Sequence[str], sync: SyncConfig) -> None:
        self.time, self.sync, self.epoch = time, sync, 0
        self.home = tempfile.TemporaryDirectory()
        self.nodes = {name: Node(name) for name in names}
        self.ghosts: list[tuple[int, Push]] = []
        self.dropped: set[str] = set()
        self.start()

    def start(self) -> None:
        """A server goes on from the newest checkpoint."""
        self.epoch += 1
        folder = Path(self.home.name)
        config = ServerConfig(
            device="cpu", state_dir=folder, initial_rows=1, min_count=1, half_life_tokens=None
        )
        self.folder = CheckpointFolder(folder, keep=2)
        self.state = Watched(config, self.sync, dim=DIM, seed=1, epoch=self.epoch)
        self.state.fate = {}
        self.recovery = Recovery(self.state, self.folder, every_s=1e9)

    def crash(self) -> None:
        """kill -9 of the server, and another one in its place."""
        self.remember_drops()
        self.state.journal.close()
        self.folder.close()
        self.ghosts.clear()
        for node in self.nodes.values():
            node.connected = False
        self.start()

    def close(self) -> None:
        self.state.journal.close()
        self.folder.close()
        self.home.cleanup()

    def checkpoint(self) -> None:
        self.recovery._write()

    def silence(self) -> None:
        """Time passes; who has a connection gives signs of life, the others do not."""
        self.time.now += 1000.0
        for node in self.nodes.values():
            if node.connected:
                self.state.machine.seen(node.name, now=self.time.now)
        self.state.tick()

    # -- what a node does ---------------------------------------------------------------------

    def greet(self, node: Node) -> None:
        """Connect, and send again what the server lost; as a new process if the last was killed."""
        if not node.alive:
            self.nodes[node.name] = node = Node(node.name, node.life + 1, alive=True)
        life = f"{node.name}/{node.life}"
        welcome = self.state.hello(
            node.name, version=VERSION, digest="", clock=node.clock, life=life
        )
        node.connected, node.session = True, welcome.session
        if node.fresh:
            node.sequence = node.owed = welcome.sequence
            node.clock, node.document = welcome.clock, int(welcome.place or 0)
            node.reading = []
            return
        first = node.kept[0].sequence if node.kept else node.sequence + 1
        assert welcome.sequence >= first - 1, "the server lost what it had called durable"
        for push in node.kept:
            if push.sequence > welcome.sequence:
                assert not self.state.push(push, node.session).duplicate
        assert self.state.ledger.of(node.name).accepted == node.sequence

    def waits_for_a_checkpoint(self, node: Node) -> bool:
        """Whether it may not read yet what others could not read again."""
        return node.owed > self.state.ledger.of(node.name).durable

    def read(self, node: Node, *, ahead: bool = False) -> bool:
        """Read for the next document; False when it has to wait."""
        if len(node.reading) > ahead or (ahead and not node.reading):
            return False
        self._hear(node)
        if self.waits_for_a_checkpoint(node):
            return False
        word = np.array([1], dtype=np.int64)
        ids = self.state.admit([self.word(node, node.document + ahead)], word)
        clock = node.reading[0] + 1 if ahead else node.clock
        rows = self.state.pull(node.name, ids, ids, clock, None)
        if isinstance(rows, list):
            if ROUND in rows:
                take_part(self.state, node.name, ready(0.1))
                take_part(self.state, node.name, work(None))
            return False
        self.check_read(node, rows)
        node.reading.append(rows.clock)
        return True

    def made(self, node: Node, busy_s: float = 0.0) -> Push:
        """What the node pushes next."""
        word = self.word(node, node.document)
        ids = self.state.vocabulary.ids([word])
        delta = RowDelta(Table.OUT, ids, np.ones((1, DIM), dtype=np.float32))
        return Push(
            node.name,
            node.sequence + 1,
            node.reading[0],
            (delta,),
            named([word], source=node.name),
            (SourceProgress(node.name, 1, 1, 0.0, 0, (1.0,)),),
            tokens=1,
            place=str(node.document + 1),
            busy_s=busy_s,
        )

    def push(self, node: Node, busy_s: float = 0.0) -> None:
        push = self.made(node, busy_s)
        ack = self.state.push(push, node.session)
        assert not ack.duplicate
        node.reading.pop(0)
        node.kept.append(push)
        node.fresh, node.sequence, node.clock = False, push.sequence, ack.clock
        node.document += 1

    def work(self, node: Node, *, ahead: bool = False) -> None:
        """A step of a tick: read, or push and let the next one begin."""
        if not node.reading:
            self.read(node)
            return
        if ahead:
            self.read(node, ahead=True)
        self.push(node)

    def again(self, node: Node, push: Push) -> None:
        """A push that the server has comes once more."""
        before = self.figures()
        assert self.state.push(push, node.session).duplicate
        assert self.figures() == before

    def kill(self, node: Node, *, noticed: bool, on_its_way: bool) -> None:
        """kill -9; its last push may still be on its way, and the server may not know."""
        if node.reading and on_its_way:
            self.ghosts.append((node.session, self.made(node)))
        node.alive = node.connected = False
        if noticed:
            lost(self.state, node.name, node.session)

    def cut(self, node: Node) -> None:
        """The node's stream breaks."""
        node.connected = False
        lost(self.state, node.name, node.session)

    def leave(self, node: Node) -> None:
        """The node ends, as it should: behind a checkpoint."""
        self.checkpoint()
        if self.state.ledger.of(node.name).durable < node.sequence:
            return
        self.state.leave(node.name, node.session)
        node.alive = node.connected = False

    def arrive(self, session: int, push: Push) -> None:
        """A push of a killed process arrives: in time, or when another goes on in its place."""
        if self.state.ledger.of(push.node).session == session:
            assert not self.state.push(push, session).duplicate
            return
        before = self.figures()
        with pytest.raises(ReplacedError):
            self.state.push(push, session)
        assert self.figures() == before

    def gap(self, node: Node) -> None:
        """A push too many is refused, and nothing changes."""
        before = self.figures()
        push = self.made(node)
        wrong = Push(node.name, push.sequence + 1, push.clock, push.deltas, tokens=1)
        with pytest.raises(RefusedError, match="gap"):
            self.state.push(wrong, node.session)
        assert self.figures() == before

    def _hear(self, node: Node) -> None:
        """The node hears how far its pushes are in a checkpoint."""
        durable = self.state.confirm(node.name).durable
        node.kept = [push for push in node.kept if push.sequence > durable]

    # -- what has to hold ---------------------------------------------------------------------

    @staticmethod
    def word(node: Node, document: int) -> str:
        return f"{node.name}{document}"

    def row(self, word: str) -> float:
        """How often the push of a document is in the tables."""
        ids = self.state.vocabulary.ids([word])
        if ids[0] < 0:
            return 0.0
        slots = self.state.vocabulary.slots(ids, "test")
        return float(self.state.tables.read(Table.OUT, slots)[0, 0])

    def figures(self) -> tuple[object, ...]:
        meters = self.state.meters
        ledger = {n: (e.accepted, e.applied, e.place) for n, e in self.state.ledger.nodes.items()}
        return meters.tokens, meters.documents, meters.pushes, ledger, len(self.state._held)

    def remember_drops(self) -> None:
        """Documents whose pushes were dropped: they are counted, and their rows may be nought."""
        for (name, sequence), what in self.state.fate.items():
            if what == "dropped":
                self.dropped.add(f"{name}{sequence - 1}")

    def check_read(self, node: Node, rows: Rows) -> None:
        """What the ruling policy promises to a reader at this clock."""
        machine, at = self.state.machine, rows.clock
        policy, since = machine.policy.running, machine.board.since
        entry = self.state.ledger.of(node.name)
        held = machine.board.held
        live = [m for m in machine.board.members.values() if m.active]
        assert not [t for t in held if t.sequence <= rows.sequence and t.node == node.name]
        if policy in ("bsp", "averaging"):
            assert all(member.clock >= at for member in live)
            assert not [t for t in held if t.clock < at], "a delta of an earlier clock is missing"
            assert not self._of_this_clock(at, since), "a delta of this clock is there already"
        elif policy == "backup":
            assert not [t for t in held if t.clock < at]
        else:
            assert rows.sequence == entry.accepted, "it does not see its own"
            assert not held
        if policy in ("ssp", "sandblaster"):
            assert all(member.clock >= at - machine.config.staleness for member in live)

    def _of_this_clock(self, at: int, since: int) -> list[str]:
        found = []
        for node in self.nodes.values():
            for push in node.kept:
                applied = self.state.fate.get((node.name, push.sequence)) == "applied"
                if applied and push.clock >= max(at, since):
                    found.append(f"{node.name} {push.sequence} at {push.clock}")
        return found

    def check_all(self) -> None:
        """When nobody takes part any more: each document counted once, each push applied once."""
        for node in self.nodes.values():
            if node.connected:
                self.state.idle(node.name)
        assert not self.state.machine.board.held
        assert not self.state._held
        self.remember_drops()
        total = 0
        for name, node in self.nodes.items():
            entry = self.state.ledger.of(name)
            read = int(entry.place or 0)
            assert entry.accepted == entry.applied == read, "a push is a document"
            assert not node.alive or node.document == read
            total += read
            words = [self.word(node, document) for document in range(read)]
            counts = self.state.vocabulary.counts(self.state.vocabulary.ids(words))
            assert counts.tolist() == [1.0] * read
            for word in words:
                assert self.row(word) == 1.0 or (word in self.dropped and self.row(word) == 0.0)
            for document in (read, read + 1):
                assert self.row(self.word(node, document)) == 0.0, "nobody has read it"
        assert self.state.meters.tokens == self.state.meters.documents == total
