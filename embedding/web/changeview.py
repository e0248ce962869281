"""What is said of when a word changed: the date with its interval, or that there is none."""

from __future__ import annotations

from dataclasses import dataclass

from embedding.trends.dating import ChangeDate, WordChange
from embedding.web.text import PageText


@dataclass(frozen=True)
class ChangeView:
    """The date (or that none stands out), and what stands beside it."""

    text: str
    about: str


def change_view(change: WordChange, t: PageText) -> ChangeView:
    """A date is named only when it stands out among words of like frequency."""
    if change.date is None:
        return ChangeView(t("change_unknown"), t("change_unknown_about"))
    if not change.clear:
        return ChangeView(t("change_unclear"), "" if change.p is None else _share(change.p, t))
    window = t.window(change.date.since)
    beside = [interval(change.date, t), "" if change.p is None else _share(change.p, t)]
    return ChangeView(window, " · ".join(part for part in beside if part))


def interval(date: ChangeDate, t: PageText) -> str:
    """Its ends; one window when they are the same."""
    low, high = (t.window(end) for end in (date.low, date.high))
    return t("change_surely") if low == high else f"{low} – {high}"


def _share(p: float, t: PageText) -> str:
    return t("change_share", share=f"{100 * p:.1f}".removesuffix(".0"))
