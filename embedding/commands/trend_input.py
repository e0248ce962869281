"""What `yeoron trends` answers from: whole snapshots, known words, windows to compare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embedding.errors import InputError

if TYPE_CHECKING:
    from embedding.records import SnapshotRef
    from embedding.snapshots.snapshot import Snapshot
    from embedding.snapshots.store import SnapshotStore
    from embedding.trends.rows import TrendReport

NOTHING = ("one_snapshot", "empty_window")
"""Notes of a report that has nothing to rank."""
SPELLINGS = 5


class Whole:
    """A store whose snapshots are compared with their checksums when they are opened."""

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store
        self._opened: dict[str, Snapshot] = {}

    def list(self) -> list[SnapshotRef]:
        """All readable snapshots by window start."""
        return self._store.list()

    def open(self, id: str = "latest") -> Snapshot:  # noqa: A002 - as the store names it
        """One snapshot; raises SnapshotError when a file is not what was published."""
        snapshot = self._store.open(id)
        if snapshot.id not in self._opened:
            snapshot.verify()
            self._opened[snapshot.id] = snapshot
        return self._opened[snapshot.id]


def refuse_unknown(word: str, snapshot: Snapshot, *, known: bool) -> None:
    """InputError with the nearest spellings unless the word is known."""
    if known:
        return
    from embedding.web.search import Vocabulary

    near = Vocabulary(snapshot.words, snapshot.counts).nearest_spellings(word, SPELLINGS)
    about = f"the nearest spellings are {', '.join(near)}" if near else "no spelling is near it"
    raise InputError(f"word {word[:80]!r}: no snapshot holds it; {about}.")


def refuse_nothing(report: TrendReport) -> None:
    """InputError when there was nothing to compare."""
    for note in report.notes:
        if note.code in NOTHING:
            raise InputError(note.text)
