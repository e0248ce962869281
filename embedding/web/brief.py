"""The front page's content: what a morning brief says, taken from a report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from embedding.trends.rows import Note, TrendReport, TrendRow
from embedding.web import formats
from embedding.web.text import Words


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
    """Up to three words for the headline: surest mover, new word and riser first."""
    first = [rows[:1] for rows in _sure(report)]
    more = [rows[1:3] for rows in _sure(report)]
    words = [row.word for rows in (*first, *more) for row in rows]
    return list(dict.fromkeys(words))[:3]


def lede(report: TrendReport, t: Words) -> list[str]:
    """One sentence for each ranking that has something sure to say."""
    moved, born, risen = _sure(report)
    out = []
    if moved:
        out.append(t("lede_moved", word=formats.short_word(moved[0].word)))
    if born:
        key = "lede_born" if len(born) > 1 else "lede_born_one"
        cut = len(born) == len(report.born) < report.ranked.get("born", 0)
        more = f"{len(born)}+" if cut else str(len(born))
        out.append(t(key, word=formats.short_word(born[0].word), n=more))
    if risen:
        out.append(_risen(risen[0], len(report.baseline), t))
    if not out and report.compared_with is not None:
        out.append(t("lede_none"))
    return out


def _risen(row: TrendRow, windows: int, t: Words) -> str:
    """How often the word is used, and how often in the windows that it was judged against."""
    word, now = formats.short_word(row.word), formats.rate(row.rate)
    usual = row.rate_before if row.rate_usual is None else row.rate_usual
    key = "lede_risen_one" if row.rate_usual is None or windows < 2 else "lede_risen"
    return t(key, word=word, now=now, usual=formats.rate(usual), windows=windows)


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
    moved, born, risen = (
        [row for row in rows if row.significant]
        for rows in (report.moved, report.born, report.risen)
    )
    return moved, born, risen
