"""What became of each node's pushes: taken once, applied in order, durable after a checkpoint."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from embedding.kernel.durable import append, appending, replaced
from embedding.kernel.errors import FencedError, RefusedError, ReplacedError, UnavailableError
from embedding.kernel.records import IntArray
from embedding.server.parts import Content, Part, PushArrival, Saved
from embedding.server.words.windows import WindowTracker

FENCED = 16
"""Incarnations of each node that are remembered, the latest ones. One is forgotten after its node
was fenced sixteen times more; a process that was stopped for so long is not expected back."""


class Fences:
    """Incarnations of nodes that may not push any more; on the disk before others read their
    sources.

    JSON lines `{"node", "incarnation"}`. A checkpoint comes later: a server that was killed in
    between would take the pushes of a node that was stopped while its sources were given away, and
    that comes back. A torn last line was never answered, so nobody goes on because of it, and it is
    left out.

    path  of the file; None: nothing but what comes in this incarnation of the server is known
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self.incarnations: dict[str, tuple[str, ...]] = {}
        """Fenced ones by node."""
        if path is not None and path.exists():
            self._read(path)

    def add(self, node: str, incarnation: str) -> bool:
        """Fence an incarnation, on the disk on return; False when it was fenced before.

        UnavailableError: it cannot be written now, and nobody may go on with its sources.
        """
        known = self.incarnations.get(node, ())
        if incarnation in known:
            return False
        if self._path is not None:
            try:
                with appending(self._path) as file:
                    append(file, _line(node, incarnation))
            except OSError as error:
                raise UnavailableError(
                    f"{self._path}: {error.strerror}: node {node} is not fenced now."
                ) from error
        self.incarnations[node] = (*known[-(FENCED - 1) :], incarnation)
        return True

    def holds(self, node: str, incarnation: str) -> bool:
        """Whether this incarnation may not push any more."""
        return bool(incarnation) and incarnation in self.incarnations.get(node, ())

    def _read(self, path: Path) -> None:
        """Read back, and write again without what is forgotten or torn."""
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                entry = json.loads(line)
                node, incarnation = str(entry["node"]), str(entry["incarnation"])
            except (ValueError, KeyError, TypeError):
                continue
            known = [each for each in self.incarnations.get(node, ()) if each != incarnation]
            self.incarnations[node] = (*known[-(FENCED - 1) :], incarnation)
        with replaced(path) as file:
            for node, incarnations in self.incarnations.items():
                file.writelines(_line(node, incarnation) for incarnation in incarnations)


def _line(node: str, incarnation: str) -> bytes:
    entry = {"node": node, "incarnation": incarnation}
    return json.dumps(entry, ensure_ascii=False).encode() + b"\n"


@dataclass
class NodeLedger:
    """One node's pushes: accepted ≥ applied ≥ durable.

    A node keeps its pushes above `durable` and sends those above `accepted` again when it connects.
    So after a crash each is taken once: `accepted` starts where the checkpoint ends, and nothing
    between is gone from the node's memory.

    tokens         of the pushes that are applied: after a restart the others come again
    incarnation    mark of the process that greeted last
    offset, applied_offset  where the node's reader goes on behind the push accepted last, and
                            behind the one applied last
    """

    accepted: int = 0
    applied: int = 0
    durable: int = 0
    tokens: int = 0
    session: int = 0
    incarnation: str = ""
    offset: str = ""
    applied_offset: str = ""


@dataclass
class Ledger(Part):
    """All nodes' pushes.

    fences  incarnations that may not push any more
    """

    nodes: dict[str, NodeLedger] = field(default_factory=dict)
    fences: Fences = field(default_factory=Fences)
    keeps_checkpoints: bool = True

    def of(self, node: str) -> NodeLedger:
        return self.nodes.setdefault(node, NodeLedger())

    def greet(self, node: str, incarnation: str) -> None:
        """A process connects in the node's name; FencedError when what it held is others' now."""
        entry = self.of(node)
        if self.fences.holds(node, incarnation):
            raise FencedError(f"node {node}: its sources were given to others; it starts again.")
        # From here on pushes by the stream before are refused. One that is still under way there
        # has a number that the new process uses too, whose own push would pass for a duplicate.
        entry.session += 1
        entry.incarnation = incarnation

    def check(self, node: str, session: int) -> None:
        """ReplacedError when the node has connected again since: two processes use one name;
        FencedError when others read its sources now."""
        entry = self.of(node)
        if entry.session == session:
            return
        if self.fences.holds(node, entry.incarnation):
            raise FencedError(f"node {node}: its sources were given to others; it starts again.")
        raise ReplacedError(f"node {node}: another process has connected under this name.")

    def fence(self, node: str, incarnation: str) -> bool:
        """No push of this incarnation is taken from now on; whether it was connected."""
        if not self.fences.add(node, incarnation):
            return False
        entry = self.nodes.get(node)
        if entry is None or entry.incarnation != incarnation:
            return False
        # A push of it that is on its way comes by a stream of the session before, and is refused.
        entry.session += 1
        return True

    def is_duplicate(self, node: str, sequence: int) -> bool:
        """Whether this push was taken before, or is the next one; RefusedError for a gap."""
        accepted = self.of(node).accepted
        if sequence > accepted + 1:
            raise RefusedError(
                f"push {sequence} of node {node}: gap, the server expects {accepted + 1}.",
                kind="sequence",
            )
        # Not by `applied`: a push that is held back, whose answer was lost, is here already.
        return sequence <= accepted

    def accept(self, node: str, sequence: int, offset: str = "") -> None:
        """The push was taken, though perhaps held back."""
        entry = self.of(node)
        entry.accepted, entry.offset = sequence, offset

    def apply(self, node: str, sequence: int, offset: str = "", tokens: int = 0) -> None:
        """The push, which brought so many tokens, is in the tables and the counts."""
        entry = self.of(node)
        entry.applied, entry.applied_offset = sequence, offset
        entry.tokens += tokens
        if not self.keeps_checkpoints:
            entry.durable = sequence

    @property
    def applied(self) -> dict[str, int]:
        """The last applied push of each node."""
        return {name: entry.applied for name, entry in self.nodes.items()}

    def learnt(self, arrival: PushArrival, now: float, closed: Container[int]) -> None:
        push = arrival.push
        self.apply(push.node, push.sequence, push.offset, push.tokens)

    def save(self) -> Saved:
        facts = {
            "applied": self.applied,
            "node_tokens": {name: entry.tokens for name, entry in self.nodes.items()},
            "offsets": {name: entry.applied_offset for name, entry in self.nodes.items()},
        }
        return Saved(facts)

    def load(self, content: Content) -> None:
        tokens, offsets = content.facts["node_tokens"], content.facts["offsets"]
        for node, sequence in content.facts["applied"].items():
            self.restore(node, sequence, tokens[node], offsets[node])

    def restore(self, node: str, sequence: int, tokens: int, offset: str) -> None:
        """A node's pushes up to `sequence` are kept, and nothing later is known."""
        entry = self.of(node)
        # `accepted` too: pushes that a policy held back died with the server, and only those that
        # it does not claim to have are sent again.
        entry.accepted = entry.applied = entry.durable = sequence
        entry.offset = entry.applied_offset = offset
        entry.tokens = tokens

    def persisted(self, applied: dict[str, int]) -> None:
        """A checkpoint holds every push up to `applied`, by node.

        `applied` as it was when the checkpoint was begun: what was applied while it was written is
        in none, and a node forgets its pushes up to `durable`.
        """
        for node, sequence in applied.items():
            entry = self.of(node)
            entry.durable = max(entry.durable, sequence)


class Departures(Part):
    """Nodes that went away and that windows wait for still, until what they pushed is in the books.

    Invariant: a window is cut behind the last count of every node that read for it. A policy with a
    barrier may hold a node's last pushes back when the node says goodbye. If the node were
    forgotten then, the watermark would pass texts that are in those pushes, and their window would
    be cut without them; and the pushes, applied later, would make the watermark wait for a node
    that is gone. The server's lock guards it.
    """

    def __init__(self, ledger: Ledger, tracker: WindowTracker) -> None:
        self._ledger = ledger
        self._tracker = tracker
        self._last: dict[str, int] = {}

    def gone(self, node: str, last: int | None = None) -> None:
        """A node went away.

        last  number of its last push; None: of the last one that was taken here
        """
        self._last[node] = self._ledger.of(node).accepted if last is None else last
        self.advance()

    def back(self, node: str) -> None:
        self._last.pop(node, None)

    def learnt(self, arrival: PushArrival, now: float, closed: Container[int]) -> None:
        """See Part; the ledger has the push already."""
        self.advance()

    def advance(self) -> None:
        """Forget those whose pushes are all in the books by now."""
        for node, last in tuple(self._last.items()):
            if self._ledger.of(node).applied >= last:
                del self._last[node]
                self._tracker.leave(node)


@dataclass(frozen=True)
class Entry:
    """Words that got the ids first, first+1, …, and ids int64 that were evicted for them.

    JSON lines `{"first": id, "words": […], "evicted": [id, …]}`: the same words make room for them
    when the journal is read back, whatever the counts were in the checkpoint. A torn last line
    (the server was killed while writing) was never answered, so nobody knows its ids and it is
    left out.
    """

    first: int
    words: list[str]
    evicted: IntArray


class Journal:
    """An append-only file; None writes nothing. `repair` cuts a torn last line off first."""

    def __init__(self, path: Path | None, *, repair: bool = False) -> None:
        self.path = path
        if repair and path is not None and path.exists():
            # A line that is appended to a torn one would be unreadable with it, and its words were
            # given out.
            whole = path.read_bytes().rfind(b"\n") + 1
            os.truncate(path, whole)
        self._file: IO[bytes] | None = None if path is None else appending(path)

    def write(self, first: int, words: Sequence[str], evicted: IntArray) -> None:
        """Note that `words` get the ids first, first+1, …; on the disk on return.

        UnavailableError: it cannot be written now, and nobody may use these ids.
        """
        if self._file is None:
            return
        entry = {"first": first, "words": list(words), "evicted": evicted.tolist()}
        line = json.dumps(entry, ensure_ascii=False)
        try:
            append(self._file, line.encode() + b"\n")
        except OSError as error:
            raise UnavailableError(f"{self.path}: {error.strerror}: no new words now.") from error

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def read_journal(path: Path) -> Iterator[Entry]:
    """Each complete line."""
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            entry = json.loads(line)
        except ValueError:
            # What follows may evict words of this line, so nothing behind it can be carried out.
            return
        yield Entry(
            int(entry["first"]),
            [str(word) for word in entry["words"]],
            np.array(entry["evicted"], dtype=np.int64),
        )
