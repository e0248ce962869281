"""The front page's content: what a morning brief says, taken from a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from embedding.snapshots.evidence import Evidence
from embedding.trends.disagreement import Disagreement
from embedding.trends.rows import Note, Story, TrendReport, TrendRow
from embedding.trends.stories import Sightings
from embedding.web import formats
from embedding.web.text import Words

STORY_WORDS = 12
"""Words of one role that a story names."""
NAMED = 3
"""Neighbours that a sentence names."""


@dataclass(frozen=True)
class SourceLine:
    """What one source brought in this window and the one before."""

    source: str
    documents: int
    tokens: int
    documents_before: int
    share: float
    missing: bool


def headline(report: TrendReport) -> list[str]:
    """Up to three words for the headline: the surest of each story, then further ones."""
    titles = [one.title for one in report.significant_stories()]
    if titles:
        words = [title[at] for at in range(3) for title in titles[:3] if at < len(title)]
        return words[:3]
    first = [rows[:1] for rows in _sure(report)]
    more = [rows[1:3] for rows in _sure(report)]
    words = [row.word for rows in (*first, *more) for row in rows]
    return list(dict.fromkeys(words))[:3]


def lede(report: TrendReport, t: Words) -> list[str]:
    """What moved, what is new, what rose: sentences with figures that can be quoted."""
    moved, born, risen = _sure(report)
    if report.compared_with is None:
        return []
    if not (moved or born or risen):
        return [t("lede_none")]
    out = [_sure_of(moved[0], _moved(report, moved[0], t))] if moved else []
    if not moved and report.ranked.get("moved"):
        out.append(t("lede_not_moved", n=formats.number(report.ranked["moved"])))
    if born:
        out.append(_sure_of(born[0], _born(report, born, t)))
    if risen:
        out.append(_sure_of(risen[0], _risen(risen[0], len(report.baseline), t)))
    return out


def read(report: TrendReport, t: Words) -> str:
    """How much was read, up to when, and which sources are missing."""
    documents = report.snapshot.documents
    said = t(
        "lede_read",
        documents=formats.number(report.snapshot.total_documents),
        sources=sum(1 for n in documents.values() if n),
        end=formats.moment(report.snapshot.end),
    )
    missing = [formats.short_word(line.source, 30) for line in completeness(report) if line.missing]
    return " ".join([said, t("lede_missing", sources=", ".join(missing))] if missing else [said])


def differ(found: Disagreement | None, t: Words) -> list[str]:
    """The word that a source uses most differently than the others, where one is clear."""
    if found is None or not found.uses:
        return []
    first = found.uses[0]
    word, source = formats.short_word(first.use.word), formats.short_word(first.source, 24)
    particles = {
        "particle": formats.particle(source, "은", "는"),
        "object": formats.particle(word, "을", "를"),
    }
    return [t("lede_differ", word=word, source=source, **particles)]


def _sure_of(row: TrendRow, sentence: str) -> str:
    """The sentence with the row's q."""
    q = formats.chance(row.q)
    return f"{sentence.removesuffix('.')} (q {q if q.startswith('<') else f'= {q}'})."


def _moved(report: TrendReport, row: TrendRow, t: Words) -> str:
    """What it is near now, and by what it was judged: its shift is not told beside documents."""
    documents = report.by_documents(row)
    key = "lede_moved_documents" if documents else "lede_moved"
    said = [t(key, word=formats.short_word(row.word))]
    more = row.pulled_by(NAMED)[0]
    if more:
        words = ", ".join(formats.short_word(word, 20) for word in more)
        return " ".join([*said, t("lede_pulled", words=words)])
    if not documents and row.shift is not None and row.expected is not None:
        said.append(t("lede_shift", shift=f"{row.shift:.2f}", expected=f"{row.expected:.2f}"))
    near = [n.word for n in row.neighbours if n.changed][:NAMED]
    if near:
        said.append(t("lede_near", words=", ".join(formats.short_word(w, 20) for w in near)))
    return " ".join(said)


def _born(report: TrendReport, born: Sequence[TrendRow], t: Words) -> str:
    cut = len(born) == len(report.born) < report.ranked.get("born", 0)
    row, word = born[0], formats.short_word(born[0].word)
    said = t(
        "lede_born" if len(born) > 1 else "lede_born_one",
        word=word,
        n=f"{len(born)}+" if cut else str(len(born)),
    )
    figures = t(
        "lede_documents",
        word=word,
        object=formats.particle(word, "을", "를"),
        before=formats.number(row.documents_before),
        now=formats.number(row.documents),
    )
    return f"{said} {figures}"


def _risen(row: TrendRow, windows: int, t: Words) -> str:
    """How often the word is used, and how often in the windows that it was judged against."""
    word, now = formats.short_word(row.word), formats.rate(row.rate)
    usual = row.rate_before if row.rate_usual is None else row.rate_usual
    key = "lede_risen_one" if row.rate_usual is None or windows < 2 else "lede_risen"
    return t(key, word=word, now=now, usual=formats.rate(usual), windows=windows)


@dataclass(frozen=True)
class StoryView:
    """A story as the page shows it; `words` by role, and where it stands."""

    story: Story
    words: tuple[tuple[str, tuple[str, ...], int], ...]
    documents: tuple[Evidence, ...]
    first: datetime | None
    last: datetime | None


def story_views(
    report: TrendReport, n: int, seen: Callable[[Story, str, str], Sightings | None]
) -> list[StoryView]:
    """The n surest significant stories.

    seen  where a story stands between two times (ISO 8601); None where addresses are not kept
    """
    views = []
    for story in report.significant_stories()[:n]:
        window = report.window_of(story)
        where = None if window is None else seen(story, window.start, window.end)
        words = tuple(
            (role, own[:STORY_WORDS], max(0, len(own) - STORY_WORDS))
            for role, own in story.by_role().items()
        )
        documents = () if where is None else where.documents
        first, last = (None, None) if where is None else (where.first, where.last)
        views.append(StoryView(story, words, documents, first, last))
    return views


def completeness(report: TrendReport) -> list[SourceLine]:
    """Every source of this window or the one before, largest first."""
    now, before = report.snapshot, report.compared_with
    earlier = before.documents if before else {}
    largest = max([*now.documents.values(), *earlier.values()], default=0) or 1
    lines = [
        SourceLine(
            source=name,
            documents=now.documents.get(name, 0),
            tokens=now.tokens.get(name, 0),
            documents_before=earlier.get(name, 0),
            share=now.documents.get(name, 0) / largest,
            missing=now.documents.get(name, 0) == 0,
        )
        for name in {*now.documents, *now.tokens, *earlier}
    ]
    return sorted(lines, key=lambda line: (-line.documents, line.source))


def say(notes: Sequence[Note], label: str, t: Words) -> list[str]:
    """Notes in the reader's language, each kind once."""
    window = formats.window_name(label, t.language)
    return list(dict.fromkeys(t(f"note_{note.code}", window=window) for note in notes))


def _sure(report: TrendReport) -> tuple[list[TrendRow], list[TrendRow], list[TrendRow]]:
    moved, born, risen = (list(report.significant(name)) for name in ("moved", "born", "risen"))
    return moved, born, risen
