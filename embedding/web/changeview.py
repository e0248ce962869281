"""What is said of since when a word is used differently, or is there at all."""

from __future__ import annotations

from dataclasses import dataclass

from embedding.trends.changed import WordChange
from embedding.web.findings import sureness
from embedding.web.text import PageText


@dataclass(frozen=True)
class ChangeView:
    """The window (or that none is clear), and what stands beside it."""

    text: str
    about: str


def change_view(change: WordChange, t: PageText) -> ChangeView:
    """A window is named only where its report calls the word; beside it those not compared."""
    windows = ", ".join(map(t.window, change.unjudged))
    left_out = [t("change_unjudged", windows=windows)] if windows else []
    if change.kind is None or change.since is None or change.q is None:
        known = change.windows - len(change.unjudged) > 1
        return ChangeView(t("change_none" if known else "change_unknown"), " ".join(left_out))
    window = t.window(change.since)
    text = window if change.kind == "moved" else t("change_born", window=window)
    return ChangeView(text, " ".join([sureness(change.q, t, significant=True), *left_out]))
