"""What a notice says of a report: words that passed the threshold, and watched words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from embedding.ask.questions import WatchedCounts
from embedding.show.notifying import NotifyConfig
from embedding.show.terminal import documents_of
from embedding.trends.rows import Story, TrendReport, TrendRow

_TITLES = {
    "moved": "Moved in meaning",
    "born": "New words",
    "risen": "Became frequent",
    "fallen": "Became rare",
}
_NEAR = 3


@dataclass(frozen=True)
class NoticeLine:
    """One word: what is said of it, and where more of it stands (empty: nowhere)."""

    word: str
    detail: str
    address: str


@dataclass(frozen=True)
class Notice:
    """A notice as its channels write it: words and figures only, no text of documents.

    sections  title and lines of each part, empty ones left out
    """

    subject: str
    sections: tuple[tuple[str, tuple[NoticeLine, ...]], ...]
    address: str

    def __bool__(self) -> bool:
        return bool(self.sections)


def compose(
    report: TrendReport, watched: Sequence[WatchedCounts], config: NotifyConfig, page: str
) -> Notice:
    """The notice of a report; it is false when there is nothing to say.

    watched  the words that are in it in any case
    page     address of the trends page, under which words have theirs
    """
    page = page.rstrip("/")
    sections = []
    stories = [
        story
        for story in report.stories
        if _is_sure(story, report, config) and story.by_role().keys() & {*config.rankings}
    ]
    if stories:
        lines = tuple(_story(story, page) for story in stories[: config.most])
        sections.append(("Stories", lines))
    for name in config.rankings:
        rows: Sequence[TrendRow] = getattr(report, name)
        sure = [row for row in rows if _is_sure(row, report, config)][: config.most]
        if sure:
            lines = tuple(
                NoticeLine(row.word, _of(row, name), _address(page, row.word)) for row in sure
            )
            sections.append((_TITLES[name], lines))
    if watched:
        sections.append(("Watched", tuple(_watched(word, page) for word in watched)))
    words = sum(len(lines) for title, lines in sections if title in _TITLES.values())
    subject = f"Yeoron {report.snapshot.label}: {words} words"
    return Notice(subject, tuple(sections), f"{page}/")


def _is_sure(row: Story | TrendRow, report: TrendReport, config: NotifyConfig) -> bool:
    """Whether it is sure enough; of a stream that is tested as a whole findings alone."""
    return row.q <= config.false_discovery and (row.significant or not report.control)


def _story(story: Story, page: str) -> NoticeLine:
    detail = f"{documents_of(story)}; since {story.first}; q {story.q:.2g}"
    return NoticeLine(" · ".join(story.title), detail, _address(page, story.words[0].word))


def _of(row: TrendRow, name: str) -> str:
    """One measure, that of its ranking; the windows' counts of documents may go the other way."""
    detail = f"{row.documents:,} documents"
    if name in ("risen", "fallen"):
        detail = f"{row.usual:,.1f} → {row.rate:,.1f} per 1,000 documents"
    parts = [detail, f"q {row.q:.2g}"]
    if row.since is not None:
        parts.append(f"since {row.since}")
    near = [neighbour.word for neighbour in row.neighbours if neighbour.changed][:_NEAR]
    near = near or [neighbour.word for neighbour in row.neighbours][:_NEAR]
    if near:
        parts.append(f"near {', '.join(near)}")
    return "; ".join(parts)


def _watched(watched: WatchedCounts, page: str) -> NoticeLine:
    detail = f"{watched.documents_before:,} → {watched.documents:,} documents"
    if watched.rankings:
        detail += f"; {_TITLES[watched.rankings[0]].lower()}"
    return NoticeLine(watched.word, detail, _address(page, watched.word))


def _address(page: str, word: str) -> str:
    return f"{page}/word/{quote(word, safe='')}"
