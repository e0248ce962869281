"""Which words a source uses differently than another, or than all others, in one window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from embedding.kernel.errors import InputError
from embedding.kernel.records import IntArray
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.usage import Usage
from embedding.trends.config import TrendsConfig
from embedding.trends.likeness import Likeness
from embedding.trends.material import Snapshots, needed_usage, signs
from embedding.trends.permutation import MIN_DOCUMENTS, between_sources
from embedding.trends.replicas import UsedWords
from embedding.trends.rows import NeighbourRow
from embedding.trends.significance import benjamini_hochberg

OTHERS = "all other sources"
"""What a source is compared with where no second one is named."""


@dataclass(frozen=True)
class ContrastRow:
    """A word that two sources use differently.

    z, p, q       by permuting the documents of both (`permutation.py`)
    significant   q is at most the configured false-discovery rate
    mentions_*    in the window
    neighbours_*  words that are used, over all sources, as this one is used there; `changed` marks
                  those of one source only
    """

    word: str
    z: float
    p: float
    q: float
    significant: bool
    mentions_first: int
    mentions_second: int
    neighbours_first: tuple[NeighbourRow, ...]
    neighbours_second: tuple[NeighbourRow, ...]


@dataclass(frozen=True)
class SourceContrast:
    """Words that sources `first` and `second` use most differently, of `compared` words.

    second  a source, or OTHERS
    """

    snapshot: str
    label: str
    first: str
    second: str
    rows: tuple[ContrastRow, ...]
    compared: int


def source_contrast(
    store: Snapshots,
    first: str,
    second: str | None,
    config: TrendsConfig | None = None,
    *,
    id: str = "latest",
) -> SourceContrast:
    """Compare two sources in the window of snapshot `id`; second None: all others together.

    Raises InputError for a source that the window does not have, and when the snapshot has no sums
    of usage; SnapshotError when it cannot be read.
    """
    return SourceContrasts(store.open(id), config or TrendsConfig()).of(first, second)


class SourceContrasts:
    """Compares sources of one snapshot; what all of them share is worked out once."""

    def __init__(self, snapshot: Snapshot, config: TrendsConfig) -> None:
        self._snapshot = snapshot
        self._config = config

    @cached_property
    def _likeness(self) -> Likeness:
        usage = needed_usage(self._snapshot, "Comparing sources")
        return Likeness(self._snapshot, usage, self._config)

    def of(self, first: str, second: str | None) -> SourceContrast:
        snapshot, config = self._snapshot, self._config
        usage = _usage(snapshot, first, second)
        others = [name for name in usage.by_source if name != first] if second is None else [second]
        against = OTHERS if second is None else second
        counts = tuple(_mentions(usage, names, len(snapshot)) for names in ([first], others))
        often = (counts[0] >= MIN_DOCUMENTS) & (counts[1] >= MIN_DOCUMENTS)
        rows = np.flatnonzero(often & ~signs(snapshot.words, config)).astype(np.int64)
        label = snapshot.manifest.window.label
        if not len(rows):
            return SourceContrast(snapshot.id, label, first, against, (), 0)
        sure = between_sources(UsedWords(usage, rows), first, others)
        q = benjamini_hochberg(sure.p)
        words = [snapshot.words[place] for place in rows.tolist()]
        # Those that surely differ by how much, the others by how sure they are.
        much = np.where(q <= config.false_discovery, sure.size, -1.0)
        best = np.lexsort((rows, -sure.z, -much))[: config.rows].tolist()
        contrasts = [
            ContrastRow(
                word=words[place],
                z=float(sure.z[place]),
                p=float(sure.p[place]),
                q=float(q[place]),
                significant=bool(q[place] <= config.false_discovery),
                mentions_first=int(counts[0][rows[place]]),
                mentions_second=int(counts[1][rows[place]]),
                neighbours_first=near[0],
                neighbours_second=near[1],
            )
            for place in best
            for near in [self._sides(int(rows[place]), first, others)]
        ]
        return SourceContrast(snapshot.id, label, first, against, tuple(contrasts), len(rows))

    def _sides(
        self, row: int, first: str, others: Sequence[str]
    ) -> tuple[tuple[NeighbourRow, ...], tuple[NeighbourRow, ...]]:
        n = self._config.shown_neighbours
        own, other = (self._likeness.near(row, n, names) for names in ([first], others))
        return _marked(own, other), _marked(other, own)


def _marked(
    own: Sequence[tuple[str, float]], other: Sequence[tuple[str, float]]
) -> tuple[NeighbourRow, ...]:
    others = {word for word, _ in other}
    return tuple(NeighbourRow(word, cosine, word not in others) for word, cosine in own)


def _usage(snapshot: Snapshot, first: str, second: str | None) -> Usage:
    usage = needed_usage(snapshot, "Comparing sources")
    label = snapshot.manifest.window.label
    for source in (first,) if second is None else (first, second):
        if source not in usage.by_source:
            known = ", ".join(usage.by_source) or "none"
            raise InputError(f"source {source[:80]!r}: window {label} has {known}.")
    if first == second:
        raise InputError(f"source {first[:80]!r} is named twice; two different ones are compared.")
    if second is None and len(usage.by_source) < 2:
        raise InputError(f"source {first[:80]!r}: window {label} has no other one to compare with.")
    return usage


def _mentions(usage: Usage, sources: Sequence[str], words: int) -> IntArray:
    total = np.zeros(words, dtype=np.int64)
    for source in sources:
        chosen = usage.by_source[source]
        total[usage.rows[chosen]] += usage.mentions[chosen]
    return total


@dataclass(frozen=True)
class OddUse:
    """A word that `source` uses differently than all other sources.

    use  `first` is the source, `second` the others; q times the comparisons that were made
    """

    source: str
    use: ContrastRow


@dataclass(frozen=True)
class Disagreement:
    """What the sources of a window disagree on.

    sources   that were compared; uses: findings alone, surest first, each word once
    compared  words that were compared, of the source with most of them
    """

    snapshot: str
    label: str
    sources: tuple[str, ...]
    uses: tuple[OddUse, ...]
    compared: int


def disagreement(
    store: Snapshots, config: TrendsConfig | None = None, *, id: str = "latest"
) -> Disagreement:
    """Compare each source of snapshot `id` with all others together.

    q is multiplied by the number of comparisons, so looking at more sources finds no more by
    chance. Where one source differs, the others differ from the rest, too. So each word is listed
    with the source that differs most surely. Of two sources there is one comparison.

    Raises InputError for fewer than two sources and without sums of usage, SnapshotError when the
    snapshot cannot be read.
    """
    config = config or TrendsConfig()
    snapshot = store.open(id)
    names = sorted(snapshot.usage.by_source) if snapshot.usage is not None else []
    if len(names) < 2:
        raise InputError(
            f"snapshot {snapshot.id}: it says of fewer than two sources how they use words."
        )
    asked = names if len(names) > 2 else names[:1]
    oddest: dict[str, OddUse] = {}
    most = 0
    contrasts = SourceContrasts(snapshot, config)
    for name in asked:
        contrast = contrasts.of(name, None)
        most = max(most, contrast.compared)
        for row in contrast.rows:
            q = min(1.0, row.q * len(asked))
            known = oddest.get(row.word)
            if q <= config.false_discovery and (known is None or q < known.use.q):
                oddest[row.word] = OddUse(name, replace(row, q=q))
    uses = sorted(oddest.values(), key=lambda odd: (odd.use.q, odd.use.word))
    return Disagreement(
        snapshot.id, snapshot.manifest.window.label, tuple(names), tuple(uses), most
    )
