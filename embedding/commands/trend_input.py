"""What `yeoron trends` answers from: whole snapshots, known words, windows to compare."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

from embedding.kernel.errors import InputError

if TYPE_CHECKING:
    from embedding.kernel.records import SnapshotRef
    from embedding.snapshots.snapshot import Snapshot
    from embedding.snapshots.store import SnapshotStore
    from embedding.trends.rows import TrendReport

_NOTHING = ("one_snapshot", "empty_window")
"""Notes of a report that has nothing to rank."""
SPELLINGS = 5
WINDOWS = 5
"""Windows that a sentence names."""


class WholeStore:
    """A store whose snapshots are compared with their checksums when they are opened."""

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store
        self._opened: dict[str, Snapshot] = {}

    def list(self) -> list[SnapshotRef]:
        """All readable snapshots by window start."""
        return self._store.list()

    def open(self, id: str = "latest") -> Snapshot:  # noqa: A002 - as the store names it
        """One snapshot; raises SnapshotError when a file is not what was published."""
        snapshot = self._store.open(of_window(self._store, id))
        if snapshot.id not in self._opened:
            snapshot.verify()
            self._opened[snapshot.id] = snapshot
        return self._opened[snapshot.id]


def of_window(store: SnapshotStore, text: str) -> str:
    """The id of the last snapshot of the window `text` (`2020-02`); other text as it is."""
    found = [ref.id for ref in store.list() if store.manifest(ref.id).window.label == text]
    return found[-1] if found else text


def snapshot_named(store: SnapshotStore, text: str) -> str:
    """The id of the snapshot with this id, or of this window (`2020-02`); `latest` is accepted.

    Raises SnapshotError for one that was withdrawn, InputError for one that is not there.
    """
    refs = store.list()
    if text == "latest" or text in {ref.id for ref in refs}:
        return store.open(text).id
    labels = {ref.id: store.manifest(ref.id).window.label for ref in refs}
    # The last of a window that was cut again counts.
    found = [name for name, label in labels.items() if label == text]
    if found:
        return found[-1]
    for name in store.withdrawn():
        if text == name or store.manifest(name).window.label == text:
            store.open(name)
    known = f"{', '.join([*dict.fromkeys(labels.values())][-WINDOWS:])}" if labels else "none"
    raise InputError(
        f"{text[:80]!r}: no snapshot and no window of the store; its last windows are {known}."
    )


def read_words(path: Path) -> list[str]:
    """Words of a file, one a line, in Unicode NFC; empty lines are skipped.

    Raises InputError when it cannot be read, holds none or repeats one.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; one word a line is expected.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: it is not UTF-8 text; one word a line is expected.") from error
    except OSError as error:
        raise InputError(f"{path}: it cannot be read: {error.strerror}.") from error
    found: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        word = unicodedata.normalize("NFC", line.strip())
        if word in found:
            raise InputError(
                f"{path}, line {number}: {word[:80]!r} stands in line {found[word]} too; each word "
                "is listed once."
            )
        if word:
            found[word] = number
    if not found:
        raise InputError(f"{path}: it holds no word; one word a line is expected.")
    return list(found)


def refuse_unknown(word: str, snapshot: Snapshot, *, known: bool) -> None:
    """InputError with the nearest spellings unless the word is known."""
    if known:
        return
    from embedding.web.search import SearchVocabulary

    near = SearchVocabulary(snapshot.words, snapshot.counts).nearest_spellings(word, SPELLINGS)
    about = f"the nearest spellings are {', '.join(near)}" if near else "no spelling is near it"
    raise InputError(f"word {word[:80]!r}: no snapshot holds it; {about}.")


def refuse_nothing(report: TrendReport) -> None:
    """InputError when there was nothing to compare."""
    for note in report.notes:
        if note.code in _NOTHING:
            raise InputError(note.text)
