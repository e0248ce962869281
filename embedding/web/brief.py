"""The front page's content: what a morning brief says, taken from a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from embedding.trends.contrast import Disagreement
from embedding.trends.rows import RANKINGS, Note, Story, TrendReport, judged
from embedding.trends.stories import StoryDocuments
from embedding.web import findings, formats
from embedding.web.text import PageText

FRONT_ROWS = 10
"""Words shown in each ranking of a page."""


def headline(report: TrendReport) -> list[str]:
    """Up to three words for the headline: the surest of each story, then further ones."""
    titles = [story.title for story in report.significant_stories()]
    if titles:
        words = [title[at] for at in range(3) for title in titles[:3] if at < len(title)]
        return words[:3]
    sure = [report.significant(name) for name in RANKINGS]
    words = [row.word for part in (slice(1), slice(1, 3)) for rows in sure for row in rows[part]]
    return list(dict.fromkeys(words))[:3]


def quiet_headline(report: TrendReport, t: PageText) -> str:
    """What stands there where no word is clear: that there is none, or that none was judged."""
    return t("nothing_moved" if judged(report) else "unjudged")


@dataclass(frozen=True)
class LeadSentence:
    """A word of the headline as it is shown, and the sentence that says what happened to it."""

    word: str
    shown: str
    sentence: str


def leads(report: TrendReport, t: PageText) -> list[LeadSentence]:
    """The words of the headline in sentences, the surest first."""
    rows = {row.word: (name, row) for name in RANKINGS[::-1] for row in report.significant(name)}
    return [
        LeadSentence(
            word,
            formats.short_word(word, findings.HEADLINE_WORD),
            findings.headline_sentence(*rows[word], report, t),
        )
        for word in headline(report)
        if word in rows
    ]


def lede(report: TrendReport, t: PageText) -> list[str]:
    """How many stories there are and how sure all of them are; where there is none, the surest
    word of each kind in sentences, or that there is none.
    """
    if report.compared_with is None:
        return []
    if stories := report.significant_stories():
        least = max(story.q for story in stories)
        sure = findings.sureness(least, t, significant=True)
        return [f"{t('lede_stories', n=len(stories))} {sure}"]
    sentences = []
    for name in RANKINGS:
        if rows := report.significant(name):
            happened = findings.words_sentence(name, [rows[0].word], report.snapshot.label, t)
            figures = " ".join(findings.row_sentences(name, rows[0], report, t))
            sure = findings.sureness(rows[0].q, t, significant=True)
            sentences.append(" ".join(part for part in (happened, figures, sure) if part))
    if not sentences:
        return [t("lede_none")] if judged(report) else []
    if not report.significant("moved") and report.ranked.get("moved"):
        sentences.insert(0, t("lede_not_moved", n=formats.number(report.ranked["moved"])))
    return sentences


def read(report: TrendReport, t: PageText) -> str:
    """How much was read, and which sources are missing."""
    documents = report.snapshot.documents
    sentence = t(
        "lede_read",
        documents=formats.number(report.snapshot.total_documents),
        n=sum(1 for n in documents.values() if n),
        window=t.window(report.snapshot.label),
    )
    missing = [formats.short_word(s.source, 30) for s in report.by_source() if s.missing]
    return f"{sentence} {t('lede_missing', sources=', '.join(missing))}" if missing else sentence


def differ(disagreement: Disagreement | None, t: PageText) -> list[str]:
    """The word that a source uses most differently than the others, where one is clear."""
    if disagreement is None or not disagreement.uses:
        return []
    first = disagreement.uses[0]
    word, source = formats.short_word(first.use.word), formats.short_word(first.source, 24)
    return [t("lede_differ", word=word, source=source)]


@dataclass(frozen=True)
class StoryView:
    """A story in sentences, and where it stands; None where addresses are not kept."""

    story: Story
    sentences: tuple[str, str]
    where: StoryDocuments | None


def story_views(
    report: TrendReport,
    n: int,
    where: Callable[[Story, TrendReport], StoryDocuments | None],
    t: PageText,
) -> list[StoryView]:
    """The n surest significant stories.

    where  the documents of a story
    """
    return [
        StoryView(story, findings.story_sentences(story, report, t), where(story, report))
        for story in report.significant_stories()[:n]
    ]


def say(notes: Sequence[Note], label: str, t: PageText) -> list[str]:
    """Notes in the reader's language, each kind once."""
    sentences = []
    for note in notes:
        window = note.window or label
        sentence = t(
            f"note_{note.code}",
            window=t.window(window),
            label=window,
            words=t.window(note.words) or t("note_nodes"),
            documents=t("in_documents", n=formats.number(note.documents))
            if note.documents
            else t("note_some_documents"),
        )
        more = t("words_needed", words=formats.number(note.needed)) if note.needed else ""
        sentences.append(f"{sentence} {more}".strip())
    return list(dict.fromkeys(sentences))
