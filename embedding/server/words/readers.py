"""Who read text of a window, and who has handed in how it used words: a pure state machine.

A window is complete once every process that read text of it has handed in its use. Only a dead
process ends the wait for it. The window then waits for the node that takes the text over: it reads
the text again and speaks for the dead process. Where no node is left that could, nobody waits.

A process is known by its incarnation, a mark drawn when it starts; that of a node which greeted
last is the one that lives. Nothing here knows of clocks: whoever asks says which nodes are there.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from embedding.exchange.payload import HandIn, Inherited
from embedding.server.parts import Content, Erasure, Part, Saved
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
        self._inherited: dict[int, dict[Text, Inherited]] = {}
        self._incarnations: dict[str, str] = {}
        self._greeted: set[str] = set()

    @property
    def nodes(self) -> set[str]:
        return {reader.node for readers in self._windows.values() for reader in readers.values()}

    @property
    def owing(self) -> set[str]:
        """Nodes with text of any window that neither they nor an heir have handed in."""
        return {
            reader.node
            for window, readers in self._windows.items()
            for incarnation, reader in readers.items()
            if any(
                (incarnation, source) not in self._inherited.get(window, {})
                for source in reader.open
            )
        }

    def of_window(self, window: int) -> set[str]:
        return {reader.node for reader in self._windows.get(window, {}).values()}

    def away(self, window: int) -> set[str]:
        """Those of them that this server was not greeted by since it was started."""
        return self.of_window(window) - self._greeted

    def greet(self, node: str, incarnation: str) -> None:
        """A process speaks for its node from now on; the one before it is dead."""
        self._incarnations[node] = incarnation
        self._greeted.add(node)

    def read(self, window: int, node: str, incarnation: str, source: str, documents: int) -> None:
        """A process pushed documents of a window; one without a mark never hands anything in."""
        if not incarnation:
            return
        self._heard(node, incarnation)
        reader = self._windows.setdefault(window, {}).setdefault(incarnation, WindowReader(node))
        for counts in (reader.read, reader.open):
            counts[source] = counts.get(source, 0) + documents

    def hand_in(self, node: str, incarnation: str, given: HandIn) -> list[Text]:
        """A process handed in all that it read of a window; of whom it speaks beside itself.

        That of a corpus has read again what earlier ones of its node had learnt.
        """
        self._heard(node, incarnation)
        own = self._windows.get(given.window, {}).get(incarnation)
        if own is not None:
            own.open.clear()
            own.handed = True
        if not self._moves:
            earlier = {
                mark: reader
                for mark, reader in self._windows.get(given.window, {}).items()
                if reader.node == node and mark != incarnation
            }
            for reader in earlier.values():
                reader.open.clear()
            return [(mark, source) for mark, reader in earlier.items() for source in reader.read]
        inherited = self._inherited.setdefault(given.window, {})
        reread: list[Text] = []
        for each in given.inherited:
            text = each.incarnation, each.source
            before = inherited.get(text)
            if each.documents:
                inherited[text] = each
                reread.append(text)
            elif before is None or (not before.documents and each.gone > before.gone):
                inherited[text] = each  # No other heir has found some of it.
        return reread

    def _heard(self, node: str, incarnation: str) -> None:
        """The nodes of other servers greet these."""
        if node not in self._greeted:
            self._incarnations[node] = incarnation

    def wait(self, window: int, living: Collection[str], *, complete: bool = True) -> Wait:
        """For whom a window waits while these nodes are there; where none is, for nobody.

        complete  its texts were read: without that a node reads on and would be waited for without
                  end, and is to hand in once
        """
        alive = {self._incarnations.get(node) for node in living}
        readers, inherited = self._windows.get(window, {}), self._inherited.get(window, {})
        waits = {
            reader.node
            for incarnation, reader in readers.items()
            if reader.open and incarnation in alive and (complete or not reader.handed)
        }
        lost = {
            (incarnation, source)
            for incarnation, reader in readers.items()
            if incarnation not in alive and living and self._moves
            for source in reader.open
            if (incarnation, source) not in inherited
        }
        may_inherit = tuple(sorted(living)) if lost else ()
        return Wait(tuple(sorted(waits)), tuple(sorted(lost)), may_inherit)

    def missing(self, window: int, living: Collection[str]) -> tuple[Missing, ...]:
        """What nobody has handed in, as the snapshot says it."""
        alive = {self._incarnations.get(node) for node in living}
        inherited = self._inherited.get(window, {})
        missing: dict[str, dict[str, int]] = {}
        for incarnation, reader in self._windows.get(window, {}).items():
            for source, documents in reader.open.items():
                text = inherited.get((incarnation, source))
                reason = "usage_not_handed_in" if incarnation in alive else "node_lost"
                if text is not None:
                    _count(missing, "document_gone", source, text.gone)
                    if text.documents:
                        # It takes the place of what the dead one handed in of that source.
                        documents = reader.read[source] - text.documents
                    documents -= text.gone
                _count(missing, reason, reader.node, documents)
        return tuple(
            Missing(
                part="usage",
                reason=reason,
                where=tuple(sorted(by)),
                documents=sum(by.values()),
            )
            for reason, by in sorted(missing.items())
        )

    def free(self, start: int) -> None:
        """Nothing is handed in for a window any more."""
        self._windows.pop(start, None)
        self._inherited.pop(start, None)

    def forget(self, erasure: Erasure) -> None:
        """Nobody has to hand anything in of a source."""
        source = erasure.source or ""
        for readers in self._windows.values():
            for reader in readers.values():
                reader.read.pop(source, None)
                reader.open.pop(source, None)
        for texts in self._inherited.values():
            for text in [text for text in texts if text[1] == source]:
                del texts[text]

    def save(self) -> Saved:
        readers = {
            "windows": {
                str(window): {
                    incarnation: [reader.node, dict(reader.read), dict(reader.open), reader.handed]
                    for incarnation, reader in readers.items()
                }
                for window, readers in self._windows.items()
            },
            "inherited": {
                str(window): [list(vars(text).values()) for text in texts.values()]
                for window, texts in self._inherited.items()
            },
            "incarnations": dict(self._incarnations),
        }
        return Saved({"readers": readers})

    def load(self, content: Content) -> None:
        facts = content.facts["readers"]
        for window, readers in facts.get("windows", {}).items():
            self._windows[int(window)] = {
                incarnation: WindowReader(node, dict(read), dict(left), handed)
                for incarnation, (node, read, left, handed) in readers.items()
            }
        for window, texts in facts.get("inherited", {}).items():
            self._inherited[int(window)] = {
                (incarnation, source): Inherited(incarnation, source, *counts)
                for incarnation, source, *counts in texts
            }
        for window, heirs in facts.get("heirs", {}).items():
            # Before protocol 19 an heir said under its own mark what it spoke for: that goes with
            # its own text where somebody has to read this again.
            readers = self._windows.get(int(window), {})
            self._inherited[int(window)] = {
                (incarnation, source): Inherited(incarnation, source, *counts)
                for heir, incarnation, source, *counts in heirs
                if heir not in readers or source not in readers[heir].open
            }
        self._incarnations.update(facts.get("incarnations", {}))


def _count(counts: dict[str, dict[str, int]], reason: str, where: str, documents: int) -> None:
    if documents > 0:
        by = counts.setdefault(reason, {})
        by[where] = by.get(where, 0) + documents
