"""Words that changed together: one story.

Words of one event are used alike, so they are near each other in the model of the window (cosine of
centred vectors, `snapshots/nearness.py`). They are joined by average linkage (Sokal and Michener
1958) until no two groups have a mean cosine of LIKENESS. A word that is near no other is a story of
its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from embedding.kernel.records import FloatArray
from embedding.snapshots.evidence import Evidence, EvidenceStore
from embedding.snapshots.nearness import directions_of
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.usage import Usage
from embedding.trends.online import FAMILIES
from embedding.trends.rows import RANKINGS, Story, StoryWord, TrendReport, TrendRow, most_used

LIKENESS = 0.4
"""Mean cosine of the words of one story."""
LOOKED_FOR = 8
"""Words of a story whose documents are looked at for the typical ones."""
SAMPLE = 200
"""Documents of each of them."""
CONTINUED = 0.5
"""A story goes on where it has this share of its words, or of those it had before."""


def stories(
    report: TrendReport, snapshot: Snapshot, limits: Mapping[str, float]
) -> tuple[Story, ...]:
    """The significant words of a report in stories, surest first.

    snapshot  of the reported window
    limits    q of a significant story whose surest word is of that family (`online.FAMILIES`)
    """
    words: dict[str, StoryWord] = {}
    rows: dict[str, TrendRow] = {}
    for role in RANKINGS:
        for row in report.significant(role):
            figures = (row.q, row.documents_before, row.documents)
            words.setdefault(row.word, StoryWord(row.word, role, *figures))
            rows.setdefault(row.word, row)
    names = [*words]
    rows_of = [_row(snapshot, name) for name in names]
    voices = _voices(snapshot.usage, rows_of)
    found = []
    for group in groups(_cosines(snapshot, rows_of)):
        own = sorted((words[names[at]] for at in group), key=lambda one: (one.q, one.word))
        found.append((own, max(voices[at] for at in group)))
    label = report.snapshot.label
    made = []
    for own, voices_of in found:
        q = min(1.0, own[0].q * len(found))
        most = most_used(own)
        made.append(
            Story(
                id=f"{label}-{own[0].word}",
                first=label,
                words=tuple(own),
                q=q,
                significant=q <= limits[FAMILIES[own[0].role]],
                documents=most.documents_before if most.role == "fallen" else most.documents,
                voices=voices_of,
                sources=_sources(rows[most.word], most.role),
            )
        )
    return tuple(sorted(made, key=lambda one: (one.q, -len(one.words), one.id)))


def continued(found: Sequence[Story], before: Sequence[Story]) -> tuple[Story, ...]:
    """The stories with the ids of those of the window before that they go on with.

    Each of those goes on as one story at most: the one that shares most words with it.
    """
    pairs = []
    for at, one in enumerate(found):
        own = {each.word for each in one.words}
        for which, other in enumerate(before):
            shared = len(own & {each.word for each in other.words})
            if shared and shared >= CONTINUED * min(len(own), len(other.words)):
                pairs.append((-shared, at, which))
    out, taken = list(found), set[int]()
    given = set[int]()
    for _, at, which in sorted(pairs):
        if at not in given and which not in taken:
            out[at] = replace(out[at], id=before[which].id, first=before[which].first)
            given.add(at)
            taken.add(which)
    return tuple(out)


@dataclass(frozen=True)
class StoryDocuments:
    """Where a story stands: documents that hold most of its words first, and the days of all."""

    documents: tuple[Evidence, ...]
    first: datetime | None
    last: datetime | None


def sightings(
    story: Story, evidence: EvidenceStore, start: datetime, end: datetime, n: int = 3
) -> StoryDocuments:
    """The n most typical documents of a story, of those whose addresses were kept in [start, end).

    The days are those of documents that hold two of its words, where there are such. Raises
    SnapshotError when the addresses cannot be read.
    """
    held: dict[str, set[str]] = {}
    known: dict[str, Evidence] = {}
    for each in story.words[:LOOKED_FOR]:
        for one in evidence.find(each.word, start, end, SAMPLE):
            if not one.url.startswith(("http://", "https://")):
                continue
            held.setdefault(one.url, set()).add(each.word)
            known[one.url] = one
    several = [url for url in held if len(held[url]) > 1] or [*held]
    days = sorted(known[url].published for url in several)
    order = sorted(held, key=lambda url: (-len(held[url]), -known[url].published.timestamp(), url))
    return StoryDocuments(
        tuple(known[url] for url in order[:n]),
        days[0] if days else None,
        days[-1] if days else None,
    )


def groups(cosines: FloatArray) -> list[list[int]]:
    """Which of n words belong together: their places, each in one group.

    cosines  float [n, n]
    """
    # Only here: it takes a tenth of a second, and pages and commands that name stories lead here.
    from scipy.cluster.hierarchy import fcluster, linkage

    n = len(cosines)
    if n < 2:
        return [[at] for at in range(n)]
    apart = np.clip(1.0 - cosines[np.triu_indices(n, 1)].astype(np.float64), 0.0, 2.0)
    labels = fcluster(linkage(apart, method="average"), 1.0 - LIKENESS, criterion="distance")
    found: dict[int, list[int]] = {}
    for at, label in enumerate(labels.tolist()):
        found.setdefault(label, []).append(at)
    return sorted(found.values())


def _cosines(snapshot: Snapshot, rows: Sequence[int]) -> FloatArray:
    """float32 [n, n]: how near words are; 0 for a word of row -1, and where the model has not
    learnt enough.
    """
    vectors = np.zeros((len(rows), snapshot.dim), dtype=np.float32)
    if snapshot.unreadable is None:
        for at, row in enumerate(rows):
            if row >= 0:
                vectors[at] = snapshot.vectors[row]
    units = directions_of(vectors, snapshot.centre)
    found: FloatArray = units @ units.T
    return found


def _voices(usage: Usage | None, rows: Sequence[int]) -> list[int]:
    """How many units of documents use each word: those of one author are in one unit, so at least
    so many authors do. 0 where a snapshot does not say it.
    """
    seen: dict[int, int] = {}
    if usage is not None:
        for row, units in zip(usage.rows.tolist(), usage.pairs, strict=True):
            seen[row] = seen.get(row, 0) + int((units > 0).sum())
    return [seen.get(row, 0) for row in rows]


def _sources(row: TrendRow, role: str) -> tuple[str, ...]:
    def held(at: int) -> int:
        one = row.sources[at]
        return one.documents_before if role == "fallen" else one.documents

    order = sorted(range(len(row.sources)), key=lambda at: -held(at))
    return tuple(row.sources[at].source for at in order if held(at))


def _row(snapshot: Snapshot, word: str) -> int:
    at = snapshot.index(word)
    return -1 if at is None else at
