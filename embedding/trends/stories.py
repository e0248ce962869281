"""Words that changed together: one story.

Words of one event are used alike, so they are near each other in the model of the window (cosine of
centred vectors, `snapshots/nearness.py`). They are joined by average linkage (Sokal and Michener
1958) until no two groups have a mean cosine of LIKENESS. A word that is near no other is a story of
its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

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
"""Share of its words, or of those it had before, that a story goes on with."""


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
            authors = row.authors_before if role == "fallen" else row.authors
            figures = (row.q, row.documents_before, row.documents, authors)
            words.setdefault(row.word, StoryWord(row.word, role, *figures))
            rows.setdefault(row.word, row)
    names = [*words]
    rows_of = [-1 if row is None else row for row in map(snapshot.index, names)]
    voices = _voices(snapshot.usage, rows_of)
    grouped = []
    for group in groups(_cosines(snapshot, rows_of)):
        own = sorted((words[names[i]] for i in group), key=lambda member: (member.q, member.word))
        grouped.append((own, max(voices[i] for i in group)))
    label = report.snapshot.label
    made = []
    for own, voices_of in grouped:
        q = min(1.0, own[0].q * len(grouped))
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
    return tuple(sorted(made, key=lambda story: (story.q, -len(story.words), story.id)))


def continued(stories: Sequence[Story], before: Sequence[Story]) -> tuple[Story, ...]:
    """The stories with the ids of those of the window before that they go on with.

    A story goes on where its surest word is still the same, or where it shares CONTINUED of the
    words and no fewer than two. A word that fell and then rose is none that it shares. Each goes on
    as one story at most: the one with that word, else the one that shares most words with it.
    """
    pairs = []
    for at, story in enumerate(stories):
        own = _directed(story)
        for which, other in enumerate(before):
            known = _directed(other)
            shared = len({*own} & {*known})
            same = own[0] == known[0]
            if same or shared >= max(2, CONTINUED * min(len(own), len(known))):
                pairs.append((not same, -shared, at, which))
    out, taken = list(stories), set[int]()
    given = set[int]()
    for _, _, at, which in sorted(pairs):
        if at not in given and which not in taken:
            out[at] = replace(out[at], id=before[which].id, first=before[which].first)
            given.add(at)
            taken.add(which)
    return tuple(out)


def _directed(story: Story) -> list[tuple[str, bool]]:
    return [(member.word, member.role == "fallen") for member in story.words]


@dataclass(frozen=True)
class StoryDocuments:
    """Where a story stands: documents that hold most of its words first, and the days of all."""

    documents: tuple[Evidence, ...]
    first: date | None
    last: date | None


def sightings(
    story: Story, evidence: EvidenceStore, start: datetime, end: datetime, n: int = 3
) -> StoryDocuments:
    """The n most typical documents of a story, of those whose addresses were kept in [start, end).

    The days are those of documents that hold two of its words, where there are such. Raises
    SnapshotError when the addresses cannot be read.
    """
    uses: dict[str, set[str]] = {}
    known: dict[str, Evidence] = {}
    for member in story.words[:LOOKED_FOR]:
        for document in evidence.find(member.word, start, end, SAMPLE):
            if not document.url.startswith(("http://", "https://")):
                continue
            uses.setdefault(document.url, set()).add(member.word)
            known[document.url] = document
    several = [url for url in uses if len(uses[url]) > 1] or [*uses]
    days = sorted(known[url].published for url in several)
    order = sorted(uses, key=lambda url: (-len(uses[url]), -known[url].published.toordinal(), url))
    return StoryDocuments(
        tuple(known[url] for url in order[:n]),
        days[0] if days else None,
        days[-1] if days else None,
    )


def story_documents(
    story: Story, report: TrendReport, evidence: EvidenceStore | None
) -> StoryDocuments | None:
    """Where a story of a report stands; None where addresses are not kept."""
    window = report.window_of(story)
    if evidence is None or window is None:
        return None
    start, end = datetime.fromisoformat(window.start), datetime.fromisoformat(window.end)
    return sightings(story, evidence, start, end)


def groups(cosines: FloatArray) -> list[list[int]]:
    """Which of n words belong together: their places, each in one group.

    cosines  float [n, n]
    """
    near = cosines.astype(np.float64)
    np.fill_diagonal(near, -np.inf)
    members = [[at] for at in range(len(near))]
    while near.size:
        first, second = sorted(divmod(int(near.argmax()), len(near)))
        if not near[first, second] >= LIKENESS:
            break
        sizes = len(members[first]), len(members[second])
        mean = (sizes[0] * near[first] + sizes[1] * near[second]) / sum(sizes)
        near[first], near[:, first] = mean, mean
        near[second], near[:, second] = -np.inf, -np.inf
        members[first], members[second] = members[first] + members[second], []
    return sorted(sorted(group) for group in members if group)


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
    cosines: FloatArray = units @ units.T
    return cosines


def _voices(usage: Usage | None, rows: Sequence[int]) -> list[int]:
    """How many units of documents use each word: those of one author are in one unit, so at least
    so many authors do. 0 where a snapshot does not say it, or knows of no author.
    """
    seen: dict[int, int] = {}
    if usage is not None and usage.busiest is not None:
        for row, units in zip(usage.rows.tolist(), usage.pairs, strict=True):
            seen[row] = seen.get(row, 0) + int((units > 0).sum())
    return [seen.get(row, 0) for row in rows]


def _sources(row: TrendRow, role: str) -> tuple[str, ...]:
    def held(at: int) -> int:
        rate = row.sources[at]
        return rate.documents_before if role == "fallen" else rate.documents

    order = sorted(range(len(row.sources)), key=lambda at: -held(at))
    return tuple(row.sources[at].source for at in order if held(at))
