"""What a report to hand on says: the brief of a window, in the reader's language."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from embedding.trends.rows import RANKINGS, Story, TrendReport, TrendRow
from embedding.trends.stories import StoryDocuments
from embedding.web import brief, formats
from embedding.web.answering import Reading
from embedding.web.findings import row_sentences, story_sentences, sureness
from embedding.web.plain import plain
from embedding.web.text import PageText

STORIES, ROWS, LINES, WORDS = 8, 10, 4, 8
"""Stories, rows of one ranking, lines of a chart and words of a story that are shown."""


@dataclass(frozen=True)
class RateChart:
    """Documents that hold each word, per 1,000, window by window.

    labels  short labels of the windows, oldest first; lines: word and its rates, None: not known
    """

    title: str
    labels: tuple[str, ...]
    lines: tuple[tuple[str, tuple[float | None, ...]], ...]


@dataclass(frozen=True)
class HandoutWord:
    """A word of a story: what happened to it, and how many documents of the window have it."""

    word: str
    role: str
    documents: str
    page: str


@dataclass(frozen=True)
class HandoutStory:
    """A story: `sentences` are what happened, and who wrote it with how sure that is."""

    title: str
    sentences: tuple[str, str]
    words: tuple[HandoutWord, ...]
    chart: RateChart
    documents: tuple[tuple[str, str, str], ...]
    """Address, source and day of each document."""


@dataclass(frozen=True)
class HandoutRanking:
    """The findings of one ranking: word, sentences, how sure, address of the word's page."""

    title: str
    rows: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True)
class Handout:
    """The whole report; all texts are ready to be shown, and none is markup."""

    language: str
    title: str
    against: str
    headline: str
    lede: tuple[str, ...]
    notes: tuple[str, ...]
    stories_title: str
    stories_none: str
    stories: tuple[HandoutStory, ...]
    rankings: tuple[HandoutRanking, ...]
    sources_title: str
    sources: tuple[tuple[str, int], ...]
    """Name and documents of each source, largest first."""
    documents_title: str
    explained: tuple[str, ...]
    """What a finding is and how sure one is."""
    page: str
    page_title: str
    basis: str


def make_handout(
    report: TrendReport,
    where: Callable[[Story, TrendReport], StoryDocuments | None],
    to: Reading,
    false_discovery: float,
) -> Handout:
    """The content of a window's report.

    where            the documents of a story; None where addresses are not kept
    false_discovery  share of findings that may be flukes
    """
    t = to.t
    share = f"{100 * false_discovery:g}"
    report = plain(report)
    before = report.compared_with
    stories = report.significant_stories()[:STORIES]
    first, *others = [lead.sentence for lead in brief.leads(report, t)] or [
        brief.quiet_headline(report, t)
    ]
    return Handout(
        language=t.language,
        title=t("kicker", window=t.window(report.snapshot.label)),
        against="" if before is None else t("against", window=t.window(before.label)),
        headline=first,
        lede=(*others, *brief.lede(report, t), brief.read(report, t)),
        notes=tuple(brief.say(report.notes, report.snapshot.label, t)),
        stories_title=t("stories"),
        stories_none=t("stories_none"),
        stories=tuple(_story(story, report, where(story, report), to) for story in stories),
        rankings=tuple(_rankings(report, to)),
        sources_title=t("completeness"),
        sources=tuple((source.source, source.documents) for source in report.by_source()),
        documents_title=t("evidence"),
        explained=(
            t("explain", term=t("sure"), gloss=t("gloss_clear", share=share)),
            t("explain", term=t("stories"), gloss=t("gloss_stories")),
        ),
        page=to.paths.window(report.snapshot.id),
        page_title=t("handout_page"),
        basis=t(
            "basis",
            estimator=report.estimator,
            digest=report.config_digest[:8],
            id=report.snapshot.id,
        ),
    )


def _story(
    story: Story, report: TrendReport, where: StoryDocuments | None, to: Reading
) -> HandoutStory:
    words = [w for w in story.words if to.paths.word(w.word)][:WORDS]
    documents = () if where is None else where.documents
    return HandoutStory(
        title=" · ".join(formats.short_word(word) for word in story.title),
        sentences=story_sentences(story, report, to.t),
        words=tuple(
            HandoutWord(
                word=formats.short_word(w.word),
                role=to.t(f"role_{w.role}"),
                documents=to.t("in_documents", n=formats.number(w.documents))
                + (f" · {to.t('authors_n', n=formats.number(w.authors))}" if w.authors else ""),
                page=to.paths.word(w.word),
            )
            for w in words
        ),
        chart=_chart([w.word for w in story.words[:LINES]], report, to.t),
        documents=tuple((page.url, page.source, page.published.isoformat()) for page in documents),
    )


def _chart(words: Sequence[str], report: TrendReport, t: PageText) -> RateChart:
    """Of words that are in one of the rankings; what was before the report is not known."""
    rows: dict[str, TrendRow] = {}
    for name in RANKINGS:
        for row in getattr(report, name):
            rows.setdefault(row.word, row)
    n = len(report.windows)
    lines = []
    for word in words:
        if word in rows:
            series = rows[word].series[-n:]
            lines.append((formats.short_word(word, 24), (*[None] * (n - len(series)), *series)))
    labels = tuple(formats.short_label(label) for label in report.windows)
    return RateChart(t("frequency_about").rstrip("."), labels, tuple(lines))


def _rankings(report: TrendReport, to: Reading) -> list[HandoutRanking]:
    rankings = []
    for name in RANKINGS:
        rows = tuple(
            (
                formats.short_word(row.word),
                " ".join(row_sentences(name, row, report, to.t)),
                sureness(row.q, to.t, significant=True),
                to.paths.word(row.word),
            )
            for row in report.significant(name)[:ROWS]
        )
        if rows:
            rankings.append(HandoutRanking(to.t(name), rows))
    return rankings
