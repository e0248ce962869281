"""Who read text of a window, and who has handed in how it used words: a pure state machine.

A window is complete once every process that read text of it has handed in its use. Only a dead
process ends the wait for it. The window then waits for the node that takes the text over: it reads
the text again and speaks for the dead process. Where no node is left that could, nobody waits.

A process is known by its mark (`life`), drawn when it starts; that of a node which greeted last is
the one that lives. Nothing here knows of clocks: whoever asks says which nodes are there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from embedding.exchange.payload import HandIn, Inherited
from embedding.server.parts import Content, Erasure, Part, Saved
from embedding.server.words.digests import WordsCopy
from embedding.snapshots.format import Missing

Text = tuple[str, str]
"""What a process, by its mark, read of a source."""


@dataclass
class WindowReader:
    """One process in one window.

    read    documents by source; open: those that it read since it handed in
    handed  whether it ever did
    """

    node: str
    read: dict[str, int] = field(default_factory=dict)
    open: dict[str, int] = field(default_factory=dict)
    handed: bool = False


@dataclass(frozen=True)
class Heir:
    """The process that speaks for text of a dead one, and how much of it could be read again."""

    life: str
    text: Inherited


@dataclass(frozen=True)
class Wait:
    """For whom a window waits.

    readers  nodes that live and have not handed in all that they read
    lost     text of dead processes that a living node has yet to read again
    heirs    nodes of which one may do so
    """

    readers: tuple[str, ...] = ()
    lost: tuple[Text, ...] = ()
    heirs: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.readers or self.lost)


class WindowReaders(Part):
    """Of all windows that are not forgotten. Not thread-safe: the server's lock guards it.

    moves  sources go to other nodes when theirs dies; those of a corpus do not
    """

    def __init__(self, *, moves: bool = True) -> None:
        self._moves = moves
        self._windows: dict[int, dict[str, WindowReader]] = {}
        self._heirs: dict[int, dict[Text, Heir]] = {}
        self._lives: dict[str, str] = {}
        self._greeted: set[str] = set()

    @property
    def nodes(self) -> set[str]:
        return {one.node for readers in self._windows.values() for one in readers.values()}

    @property
    def owing(self) -> set[str]:
        """Nodes with text of any window that neither they nor an heir have handed in."""
        return {
            one.node
            for window, readers in self._windows.items()
            for life, one in readers.items()
            if any((life, source) not in self._heirs.get(window, {}) for source in one.open)
        }

    def of_window(self, window: int) -> set[str]:
        return {one.node for one in self._windows.get(window, {}).values()}

    def away(self, window: int) -> set[str]:
        """Those of them that this server was not greeted by since it was started."""
        return self.of_window(window) - self._greeted

    def greet(self, node: str, life: str) -> None:
        """A process speaks for its node from now on; the one before it is dead."""
        self._lives[node] = life
        self._greeted.add(node)

    def read(self, window: int, node: str, life: str, source: str, documents: int) -> None:
        """A process pushed documents of a window; one without a mark never hands anything in."""
        if not life:
            return
        self._heard(node, life)
        reader = self._windows.setdefault(window, {}).setdefault(life, WindowReader(node))
        for counts in (reader.read, reader.open):
            counts[source] = counts.get(source, 0) + documents

    def hand_in(self, node: str, life: str, given: HandIn) -> list[Text]:
        """A process handed in all that it read of a window; of whom it speaks beside itself.

        That of a corpus has read again what earlier ones of its node had learnt.
        """
        self._heard(node, life)
        own = self._windows.get(given.window, {}).get(life)
        if own is not None:
            own.open.clear()
            own.handed = True
        if not self._moves:
            earlier = {
                mark: one
                for mark, one in self._windows.get(given.window, {}).items()
                if one.node == node and mark != life
            }
            for one in earlier.values():
                one.open.clear()
            return [(mark, source) for mark, one in earlier.items() for source in one.read]
        heirs = self._heirs.setdefault(given.window, {})
        heirs.update({(one.incarnation, one.source): Heir(life, one) for one in given.inherited})
        return [(one.incarnation, one.source) for one in given.inherited if one.documents]

    def _heard(self, node: str, life: str) -> None:
        """The nodes of other servers greet these."""
        if node not in self._greeted:
            self._lives[node] = life

    def wait(self, window: int, living: Collection[str], *, complete: bool = True) -> Wait:
        """For whom a window waits while these nodes are there; where none is, for nobody.

        complete  its texts were read: without that a node reads on and would be waited for without
                  end, and is to hand in once
        """
        alive = {self._lives.get(node) for node in living}
        readers, heirs = self._windows.get(window, {}), self._heirs.get(window, {})
        waits = {
            one.node
            for life, one in readers.items()
            if one.open and life in alive and (complete or not one.handed)
        }
        lost: set[Text] = set()
        for life, one in readers.items():
            if life in alive or not living or not self._moves:
                continue
            for source in one.open:
                # What a dead heir spoke for goes with its own text of that source.
                behind = {text for text, heir in heirs.items() if heir.life == life}
                lost |= {text for text in behind if text[1] == source}
                if (life, source) not in heirs:
                    lost.add((life, source))
        spoken_for = {text for text, heir in heirs.items() if heir.life in alive}
        lost -= spoken_for
        may_inherit = tuple(sorted(living)) if lost else ()
        return Wait(tuple(sorted(waits)), tuple(sorted(lost)), may_inherit)

    def missing(self, window: int, living: Collection[str]) -> tuple[Missing, ...]:
        """What nobody has handed in, as the snapshot says it."""
        alive = {self._lives.get(node) for node in living}
        heirs = self._heirs.get(window, {})
        found: dict[str, dict[str, int]] = {}
        for life, one in self._windows.get(window, {}).items():
            for source, documents in one.open.items():
                heir = heirs.get((life, source))
                reason = "usage_not_handed_in" if life in alive else "node_lost"
                if heir is not None:
                    gone = heir.text.gone
                    _count(found, "document_gone", source, gone)
                    if heir.text.documents:
                        # It takes the place of what the dead one handed in of that source.
                        documents = one.read[source] - heir.text.documents
                    documents -= gone
                _count(found, reason, one.node, documents)
        return tuple(
            Missing(
                part="usage",
                reason=reason,
                where=tuple(sorted(by)),
                documents=sum(by.values()),
            )
            for reason, by in sorted(found.items())
        )

    def free(self, start: int) -> None:
        """Nothing is handed in for a window any more."""
        self._windows.pop(start, None)
        self._heirs.pop(start, None)

    def erase(self, erasure: Erasure) -> None:
        """Nobody has to hand anything in of a source."""
        source = erasure.source or ""
        for readers in self._windows.values():
            for one in readers.values():
                one.read.pop(source, None)
                one.open.pop(source, None)
        for window, heirs in self._heirs.items():
            self._heirs[window] = {text: heir for text, heir in heirs.items() if text[1] != source}

    def save(self, words: WordsCopy) -> Saved:
        del words
        readers = {
            "windows": {
                str(window): {
                    life: [one.node, dict(one.read), dict(one.open), one.handed]
                    for life, one in readers.items()
                }
                for window, readers in self._windows.items()
            },
            "heirs": {
                str(window): [
                    [heir.life, source_life, source, heir.text.documents, heir.text.gone]
                    for (source_life, source), heir in heirs.items()
                ]
                for window, heirs in self._heirs.items()
            },
            "incarnations": dict(self._lives),
        }
        return Saved({"readers": readers})

    def load(self, content: Content) -> None:
        """See Part."""
        facts = content.facts["readers"]
        for window, readers in facts.get("windows", {}).items():
            self._windows[int(window)] = {
                life: WindowReader(node, dict(read), dict(left), handed)
                for life, (node, read, left, handed) in readers.items()
            }
        for window, heirs in facts.get("heirs", {}).items():
            self._heirs[int(window)] = {
                (life, source): Heir(heir, Inherited(life, source, *counts))
                for heir, life, source, *counts in heirs
            }
        self._lives.update(facts.get("incarnations", {}))


def _count(found: dict[str, dict[str, int]], reason: str, where: str, documents: int) -> None:
    if documents > 0:
        by = found.setdefault(reason, {})
        by[where] = by.get(where, 0) + documents
