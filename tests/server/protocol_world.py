"""Honest nodes around a real server's state and its checkpoints, step by step, without a wire."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from named import named
from protocol_checks import DIM, Checks, Node, Watched

from embedding.exchange.codec import to_message
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import (
    PROTOCOL_VERSION,
    PullRequest,
    Push,
    Welcome,
)
from embedding.kernel.errors import FencedError, RefusedError, ReplacedError
from embedding.kernel.records import SourceProgress, Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.parts import Content
from embedding.server.recovery.checkpoint import CheckpointFolder
from embedding.server.recovery.restoring import Recovery
from embedding.server.rows.tables import RowCopy
from embedding.server.rowstore import RowShape
from yeoron_lab.lbfgs.batch import Ready, Work

ROUND = "a round of all nodes"

ENDS = ("whole", "fails", "killed before", "killed after")
"""What becomes of a checkpoint: it is there; the disk is full; the server is killed while its files
are written, or when they are there and nobody has heard of it."""


class Time:
    """In place of the `time` module."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now

    time = monotonic


class Killed(BaseException):
    """kill -9 of the server, in the middle of something."""


class World(Checks):
    """A server that can crash, and its nodes.

    ghosts   pushes of processes that were killed, still on their way: session and push
    dropped  documents that `backup` left out at some time
    learnt   documents that were in the rows at some time, and whose node can send them again
    sent     the last pushes of each name, whichever process sent them
    done     documents of each name that the server called durable: nobody reads them again
    fenced   lives whose sources were given to others
    unnoticed  nodes that were killed and of which the server believes that they take part
    """

    def __init__(self, time: Time, names: Sequence[str], sync: SyncConfig) -> None:
        self.time, self.sync, self.epoch = time, sync, 0
        self.home = tempfile.TemporaryDirectory()
        self.nodes = {name: Node(name) for name in names}
        self.ghosts: list[tuple[int, Push]] = []
        self.dropped: set[str] = set()
        self.learnt: set[str] = set()
        self.sent: dict[str, list[Push]] = {name: [] for name in names}
        self.done = dict.fromkeys(names, 0)
        self.fenced: list[str] = []
        self.unnoticed: set[str] = set()
        self.start()

    def start(self) -> None:
        """A server goes on from the newest checkpoint."""
        self.epoch += 1
        folder = Path(self.home.name)
        config = ServerConfig(
            device="cpu", state_dir=folder, min_count=1, half_life_tokens=None
        ).model_copy(update={"initial_rows": 1})
        self.folder = CheckpointFolder(folder, keep=2)
        self.state = Watched(config, self.sync, RowShape(DIM, seed=1), epoch=self.epoch)
        self.state.fate = {}
        self.recovery = Recovery(self.state, self.folder, every_s=1e9)
        for incarnation in self.fenced:
            self.refused_as_fenced(incarnation)

    def crash(self, *, torn: bool = False) -> None:
        """kill -9 of the server, perhaps while it notes new words, and another one in its place."""
        self.remember_drops()
        journal = self.state.words.journal
        journal.close()
        if torn and journal.path is not None:
            with journal.path.open("ab") as file:
                file.write(b'{"first": 0, "wor')
        self.folder.close()
        self.ghosts.clear()
        self.unnoticed.clear()
        for node in self.nodes.values():
            node.connected = False
        self.start()

    def close(self) -> None:
        self.state.words.journal.close()
        self.folder.close()
        self.home.cleanup()

    def checkpoint(
        self,
        early: Callable[[], None] = lambda: None,
        late: Callable[[], None] = lambda: None,
        end: str = "whole",
    ) -> None:
        """A checkpoint, and what happens while rows are copied and while files are written."""
        write, finish = self.folder.write, RowCopy.finish
        pending = [early]

        def copied(copy: RowCopy, lock: AbstractContextManager[object]) -> float:
            if pending:
                pending.pop()()
            return finish(copy, lock)

        def written(number: int, content: Content) -> None:
            late()
            if end == "fails":
                raise OSError("no space left")
            if end == "killed before":
                (self.folder.path / f".checkpoint-{number:08d}").mkdir(exist_ok=True)
                raise Killed
            write(number, content)
            if end == "killed after":
                raise Killed

        with (
            patch.object(RowCopy, "finish", copied),
            patch.object(self.folder, "write", written),
            suppress(OSError, Killed),
        ):
            self.recovery._write()
        if end.startswith("killed"):
            self.crash()

    def silence(self) -> None:
        """Time passes; who has a connection gives heartbeats, the others do not."""
        self.time.now += 1000.0
        self.unnoticed.clear()
        for node in self.nodes.values():
            if node.connected:
                self.state.machine.seen(node.name, now=self.time.now)
        self.state.tick()

    # -- what a node does ---------------------------------------------------------------------

    def greet(self, node: Node) -> None:
        """Connect, and send again what the server lost; as a new process if the last was killed."""
        if not node.alive:
            self.nodes[node.name] = node = Node(node.name, node.incarnation + 1, alive=True)
        welcome = self.hello(self.incarnation(node), node.heard)
        node.connected, node.session = True, welcome.session
        self.unnoticed.discard(node.name)
        node.heard = max(node.heard, welcome.clock)
        if node.fresh:
            node.sequence = node.owed = welcome.sequence
            node.clock, node.document = welcome.clock, int(welcome.offset or 0)
            node.reading = []
            gone = [word for word in self.learnt if word[0] == node.name]
            self.learnt -= {word for word in gone if int(word[1:]) >= node.document}
            assert node.document >= self.done[node.name], "what it had called durable is gone"
            return
        first = node.kept[0].sequence if node.kept else node.sequence + 1
        assert welcome.sequence >= first - 1, "the server lost what it had called durable"
        for push in node.kept:
            if push.sequence > welcome.sequence:
                assert not self.state.push(push, node.session).duplicate
        assert self.state.ledger.of(node.name).accepted == node.sequence

    def hello(self, incarnation: str, clock: int = 0) -> Welcome:
        name = incarnation.split("/")[0]
        return self.state.hello(
            name, version=PROTOCOL_VERSION, digest="", clock=clock, incarnation=incarnation
        )

    def waits_for_a_checkpoint(self, node: Node) -> bool:
        """Whether it may not read yet what others could not read again."""
        return node.owed > self.state.ledger.of(node.name).durable

    def read(self, node: Node, *, ahead: bool = False) -> bool:
        """Read for the next document; False when it has to wait."""
        if len(node.reading) > ahead or (ahead and not node.reading):
            return False
        self.hear(node)
        if self.waits_for_a_checkpoint(node):
            return False
        word = np.array([1], dtype=np.int64)
        ids = self.state.words.admit([self.word(node, node.document + ahead)], word)
        clock = node.reading[0] + 1 if ahead else node.clock
        rows = self.state.pull(node.name, PullRequest({Table.IN: ids, Table.OUT: ids}, clock))
        if isinstance(rows, list):
            if ROUND in rows:
                stream = SimpleNamespace(state=self.state, node=node.name, number=0)
                calls = self.state.parts["rounds"].calls(stream)
                calls["batch"](to_message(Ready(0.1), do="ready"))
                calls["batch"](to_message(Work(), do="work"))
            return False
        self.check_read(node, rows)
        node.reading.append(rows.clock)
        node.heard = max(node.heard, rows.clock)
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
            offset=str(node.document + 1),
            busy_s=busy_s,
        )

    def push(self, node: Node, busy_s: float = 0.0) -> None:
        push = self.made(node, busy_s)
        ack = self.state.push(push, node.session)
        assert not ack.duplicate
        node.reading.pop(0)
        node.kept.append(push)
        self.sent[node.name].append(push)
        node.fresh, node.sequence, node.clock = False, push.sequence, ack.clock
        node.heard = max(node.heard, ack.clock)
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

    def fence(self, node: Node) -> None:
        """Its sources are given to others, who go on where it was: it may not push any more."""
        incarnation, session = self.incarnation(node), node.session
        ghost = self.made(node) if node.reading else None
        answer = self.state.fence(node.name, incarnation)
        entry = self.state.ledger.of(node.name)
        assert (answer.accepted, answer.offset) == (entry.accepted, entry.offset)
        self.fenced.append(incarnation)
        if ghost is not None:
            before = self.figures()
            with pytest.raises(FencedError):
                self.state.push(ghost, session)
            assert self.figures() == before
        self.refused_as_fenced(incarnation)
        node.alive = node.connected = False

    def refused_as_fenced(self, incarnation: str) -> None:
        with pytest.raises(FencedError):
            self.hello(incarnation)

    def kill(self, node: Node, *, noticed: bool, on_its_way: bool) -> None:
        """kill -9; its last push may still be on its way, and the server may not know."""
        if node.reading and on_its_way:
            self.ghosts.append((node.session, self.made(node)))
        node.alive = node.connected = False
        if noticed:
            self.state.lost(node.name, node.session)
        else:
            self.unnoticed.add(node.name)

    def cut(self, node: Node) -> None:
        """The node's stream breaks."""
        node.connected = False
        self.state.lost(node.name, node.session)

    def leave(self, node: Node) -> None:
        """The node ends, as it should: behind a checkpoint."""
        self.checkpoint()
        self.hear(node)
        if node.kept:
            return
        self.state.leave(node.name, node.session)
        node.alive = node.connected = False

    def arrive(self, session: int, push: Push) -> None:
        """A push of a killed process arrives: in time, or when another goes on in its place."""
        if self.state.ledger.of(push.node).session == session:
            assert not self.state.push(push, session).duplicate
            return
        before = self.figures()
        with pytest.raises((ReplacedError, FencedError)):
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

    def hear(self, node: Node) -> None:
        """The node hears how far its pushes are in a checkpoint."""
        durable = self.state.confirm(node.name).durable
        for push in node.kept:
            if push.sequence <= durable:
                self.done[node.name] = max(self.done[node.name], int(push.offset))
        node.kept = [push for push in node.kept if push.sequence > durable]

    @staticmethod
    def incarnation(node: Node) -> str:
        return f"{node.name}/{node.incarnation}"
