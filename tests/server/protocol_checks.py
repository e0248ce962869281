"""What holds of a server whatever happened, and the nodes that it is asked about.

Document i of a node is one word that occurs nowhere else, and its push adds 1 to the word's row: so
the row says how often the push was applied, and the word's count how often it was counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from embedding.exchange.protocol import PulledRows, Push
from embedding.kernel.records import Table
from embedding.server.policies.base import Drop
from embedding.server.state import ServerState

DIM = 2


class Watched(ServerState):
    """Remembers what became of each push since this server began."""

    fate: dict[tuple[str, int], str]

    def execute(self, instructions, now: float) -> None:
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
    heard    the highest clock that it has read at or was told, named when it greets
    """

    name: str
    incarnation: int = 0
    alive: bool = False
    connected: bool = False
    fresh: bool = True
    session: int = 0
    clock: int = 0
    heard: int = 0
    sequence: int = 0
    document: int = 0
    owed: int = 0
    kept: list[Push] = field(default_factory=list)
    reading: list[int] = field(default_factory=list)


class Checks:
    """What is asserted of a world: see `protocol_world.World`."""

    nodes: dict[str, Node]
    state: Watched
    dropped: set[str]
    learnt: set[str]

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
        ledger = {n: (e.accepted, e.applied, e.offset) for n, e in self.state.ledger.nodes.items()}
        return meters.tokens, meters.documents, meters.pushes, ledger, len(self.state.held)

    def remember_drops(self) -> None:
        """Documents whose pushes were dropped: they are counted, and their rows may be nought.

        Not of one that was in the rows before the server was restarted, and is sent again.
        """
        for (name, sequence), what in self.state.fate.items():
            held = self.dropped if what == "dropped" else self.learnt
            held.add(f"{name}{sequence - 1}")

    def check_read(self, node: Node, rows: PulledRows) -> None:
        """What the ruling policy promises to a reader at this clock."""
        machine, at = self.state.machine, rows.clock
        policy, since = machine.policy.name, machine.board.since
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
        assert not self.state.held
        self.remember_drops()
        left_out = self.dropped - self.learnt
        total = 0
        for name, node in self.nodes.items():
            entry = self.state.ledger.of(name)
            read = int(entry.offset or 0)
            assert entry.accepted == entry.applied == read, "a push is a document"
            assert not node.alive or node.document == read
            total += read
            words = [self.word(node, document) for document in range(read)]
            counts = self.state.vocabulary.counts(self.state.vocabulary.ids(words))
            assert counts.tolist() == [1.0] * read
            for word in words:
                assert self.row(word) == 1.0 or (word in left_out and self.row(word) == 0.0)
            for document in (read, read + 1):
                assert self.row(self.word(node, document)) == 0.0, "nobody has read it"
        assert self.state.meters.tokens == self.state.meters.documents == total
