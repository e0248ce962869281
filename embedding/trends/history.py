"""One word through all windows: frequency by source, shift with interval, words used alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from embedding.kernel.records import CodeArray
from embedding.snapshots.format import AMENDABLE
from embedding.snapshots.readability import missing_words
from embedding.snapshots.snapshot import Snapshot
from embedding.text.normalise import normalise
from embedding.trends.config import TrendsConfig
from embedding.trends.evidence import window_neighbours
from embedding.trends.likeness import UsedAlike
from embedding.trends.material import Snapshots, lineage, windows_up_to
from embedding.trends.nearest import NeighbourCache
from embedding.trends.rows import NeighbourRow, Note
from embedding.trends.significance import wilson


@dataclass(frozen=True)
class SourceUse:
    """One source's use of the word in one window; rates are None where nothing was read.

    documents  that hold the word; authors: known ones of these, None where none is known
    """

    source: str
    count: int
    documents: int
    read_tokens: int
    read_documents: int
    per_1000_documents: float | None
    per_1000_tokens: float | None
    authors: int | None = None


@dataclass(frozen=True)
class ShiftFigure:
    """Share of the words with the nearest vectors that were exchanged, 95 % Wilson interval.

    against  id of the snapshot compared with

    The model remembers the windows before: it says how the vectors went, and not whether the use
    of the word changed.
    """

    against: str
    shift: float
    low: float
    high: float


@dataclass(frozen=True)
class HistoryPoint:
    """One window of a word's history.

    neighbours  words that were used in the window as this one was; `changed` marks those that were
                not in the window before
    by_use      whether neighbours are those of the window's own use; False: by the vectors. Lists
                of the two kinds do not compare.
    """

    snapshot: str
    label: str
    start: str
    end: str
    in_vocabulary: bool
    count: int
    documents: int
    read_tokens: int
    read_documents: int
    per_1000_documents: float | None
    per_1000_tokens: float | None
    sources: tuple[SourceUse, ...]
    shift_previous: ShiftFigure | None
    neighbours: tuple[NeighbourRow, ...]
    by_use: bool = False
    authors: int | None = None


@dataclass(frozen=True)
class WordHistory:
    """A word's points, oldest window first; `known` is False when no snapshot ever held it.

    parts  words that it was read as before it was one; empty for a word that always was
    """

    word: str
    known: bool
    points: tuple[HistoryPoint, ...]
    notes: tuple[Note, ...] = ()
    parts: tuple[str, ...] = ()


def word_history(
    store: Snapshots,
    word: str,
    config: TrendsConfig | None = None,
    *,
    neighbour_cache: NeighbourCache | None = None,
    alike: UsedAlike | None = None,
) -> WordHistory:
    """Follow `word` through all windows; one that none has, in the form that texts have.

    neighbour_cache, alike  keep the frequent words of snapshots from one word to the next

    Neighbours are among the CANDIDATE_WORDS most frequent words; a snapshot whose vectors cannot
    be read yet (snapshots/readability.py) has none. Of one that does not say how words were used,
    they are those with the nearest vectors, which is noted.

    Raises SnapshotError when the last snapshot cannot be read; an earlier one that cannot be
    read is left out and noted.
    """
    config = config or TrendsConfig()
    neighbour_cache = neighbour_cache or NeighbourCache()
    alike = alike or UsedAlike(config)
    last = store.open()
    snapshots, notes = windows_up_to(store, last, config.history_windows)
    if all(snapshot.index(word) is None for snapshot in snapshots):
        word = normalise(word)
    near: list[_Nearby] = []
    for snapshot in snapshots:
        near.append(
            _Nearby.of(snapshot, word, neighbour_cache, alike, near[-1].row if near else -1, config)
        )
    points = []
    previous: _Nearby | None = None
    for at, (snapshot, nearby) in enumerate(zip(snapshots, near, strict=True)):
        later = snapshots[at + 1 : at + 1 + AMENDABLE]
        points.append(_point(snapshot, word, nearby, previous, config, later))
        previous = nearby
    known = any(point.in_vocabulary or point.count for point in points)
    parts = last.phrases[word].parts if word in last.phrases else ()
    by_vectors = [nearby for nearby in near if nearby.alike and alike.of(nearby.snapshot) is None]
    if by_vectors:
        labels = ", ".join(nearby.snapshot.manifest.window.label for nearby in by_vectors)
        sentence = (
            f"{labels}: how words were used is not known (the window was cut without it, or "
            "server.usage is off), so neighbours are words with the nearest vectors, which "
            "remember the windows before."
        )
        notes = [*notes, Note("nearest_vectors", sentence)]
    if last.unreadable is not None:
        label = last.manifest.window.label
        sentence = f"{label}: {last.unreadable} Nearest words are not shown."
        notes = [
            *notes,
            Note("unread_model", sentence, needed=missing_words(last.manifest.quality)),
        ]
    return WordHistory(word, known, tuple(points), tuple(notes), parts)


@dataclass(frozen=True)
class _Nearby:
    """A word's nearest words in one snapshot, as far as they are needed to compare times.

    row     of the word, -1: the snapshot does not hold it
    codes   int32 [n], those with the nearest vectors, nearest first
    alike   words used as it was in the window, with how near; by_use: by its text alone, else by
            vectors
    """

    snapshot: Snapshot
    neighbour_cache: NeighbourCache
    row: int
    count: int
    codes: CodeArray
    alike: tuple[tuple[str, float], ...]
    by_use: bool

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        word: str,
        neighbour_cache: NeighbourCache,
        alike: UsedAlike,
        guess: int,
        config: TrendsConfig,
    ) -> _Nearby:
        index = snapshot.index(word, guess)
        row = -1 if index is None else index
        codes, near = np.empty(0, np.int32), np.empty(0, np.float32)
        n = config.shown_neighbours
        if row >= 0 and snapshot.unreadable is None:
            # Twice as many as are compared: some of them are unknown to the other snapshot.
            codes, near = neighbour_cache.nearest(snapshot, row, max(2 * config.neighbours, n))
        count = int(snapshot.counts[row]) if len(codes) else 0
        used = window_neighbours(snapshot, word, n, alike)
        if not used.by_use:
            names = [neighbour_cache.names[code] for code in codes[:n].tolist()]
            used = replace(used, words=tuple(zip(names, near[:n].tolist(), strict=True)))
        return cls(snapshot, neighbour_cache, row, count, codes, used.words, used.by_use)

    def shared_with(self, other: _Nearby, k: int) -> CodeArray:
        """The k nearest words that are frequent in the other snapshot too."""
        return self.codes[self.neighbour_cache.of(other.snapshot).knows(self.codes)][:k]


def _point(
    snapshot: Snapshot,
    word: str,
    nearby: _Nearby,
    previous: _Nearby | None,
    config: TrendsConfig,
    later: Sequence[Snapshot],
) -> HistoryPoint:
    window = snapshot.manifest.window
    totals = totals_of(_sources(snapshot, word, later))
    then: set[str] = set()
    if previous is not None and previous.by_use == nearby.by_use:
        then = {name for name, _ in previous.alike}
    return HistoryPoint(
        snapshot=snapshot.id,
        label=window.label,
        start=window.start.isoformat(),
        end=window.end.isoformat(),
        in_vocabulary=nearby.row >= 0,
        **totals,
        shift_previous=_shift(previous, nearby, config),
        neighbours=tuple(
            NeighbourRow(name, near, bool(then) and name not in then) for name, near in nearby.alike
        ),
        by_use=nearby.by_use,
    )


def _sources(snapshot: Snapshot, word: str, later: Sequence[Snapshot]) -> tuple[SourceUse, ...]:
    """later: snapshots after it, which may count a word in its window that had no row yet."""
    manifest = snapshot.manifest
    after = (following.source_counts(word, manifest.as_window()) for following in later)
    counted = snapshot.source_counts(word) or next(filter(None, after), {})
    names = sorted({*manifest.tokens, *manifest.documents, *counted})
    rows = []
    for name in names:
        count, documents, authors = counted.get(name, (0, 0, 0))
        tokens, read = manifest.tokens.get(name, 0), manifest.documents.get(name, 0)
        rows.append(
            SourceUse(
                source=name,
                count=count,
                documents=documents,
                read_tokens=tokens,
                read_documents=read,
                per_1000_documents=_per_1000(documents, read),
                per_1000_tokens=_per_1000(count, tokens),
                authors=authors or None,
            )
        )
    return tuple(rows)


def totals_of(sources: tuple[SourceUse, ...]) -> dict[str, Any]:
    """The fields of a HistoryPoint that say how often these sources together used the word."""
    count, documents = sum(use.count for use in sources), sum(use.documents for use in sources)
    tokens = sum(use.read_tokens for use in sources)
    read = sum(use.read_documents for use in sources)
    return {
        "sources": sources,
        "count": count,
        "documents": documents,
        "authors": sum(use.authors or 0 for use in sources) or None,
        "read_tokens": tokens,
        "read_documents": read,
        "per_1000_documents": _per_1000(documents, read),
        "per_1000_tokens": _per_1000(count, tokens),
    }


def _per_1000(part: int, whole: int) -> float | None:
    return 1000.0 * part / whole if whole else None


def _shift(before: _Nearby | None, after: _Nearby, config: TrendsConfig) -> ShiftFigure | None:
    """Neighbour overlap (Gonen et al. 2020) of one word; None when either has no vector."""
    if before is None or not len(before.codes) or not len(after.codes):
        return None
    old = before.shared_with(after, config.neighbours)
    new = after.shared_with(before, config.neighbours)
    k = min(len(old), len(new))
    if k == 0:
        return None
    moved = 1.0 - len(np.intersect1d(old[:k], new[:k])) / k
    low, high = wilson(moved, k)
    return ShiftFigure(before.snapshot.id, moved, low, high)


@dataclass(frozen=True)
class Together:
    """The cosine of two words in one window; None where it does not know both."""

    snapshot: str
    label: str
    cosine: float | None


def together(
    store: Snapshots, first: str, second: str, config: TrendsConfig | None = None
) -> tuple[Together, ...]:
    """Follow two words through all windows, oldest first.

    Raises SnapshotError when a snapshot cannot be read.
    """
    config = config or TrendsConfig()
    points, guesses = [], (-1, -1)
    for ref in lineage(store.list(), store.open().ref)[-config.history_windows :]:
        snapshot = store.open(ref.id)
        rows = [
            snapshot.index(word, guess)
            for word, guess in zip((first, second), guesses, strict=True)
        ]
        guesses = (-1 if rows[0] is None else rows[0], -1 if rows[1] is None else rows[1])
        cosine = None
        if min(guesses) >= 0:
            left, right = (np.asarray(snapshot.vectors[row], np.float64) for row in guesses)
            length = float(np.linalg.norm(left) * np.linalg.norm(right))
            cosine = float(left @ right) / length if length else None
        points.append(Together(snapshot.id, snapshot.manifest.window.label, cosine))
    return tuple(points)
