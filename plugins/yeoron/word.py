"""One word through all windows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from embedding.trends.history import HistoryPoint, SourceUse, WordHistory
from embedding.trends.rows import WordChange
from yeoron.table import Table

_SHOWN = ("window", "count", "documents", "authors", "per_1000_documents", "shift", "neighbours")


class Word:
    """What the windows of a store say about a word.

    word   the word
    parts  the words that it was read as before it was one; empty for most
    """

    def __init__(self, history: WordHistory, change: Callable[[], WordChange]) -> None:
        self.word, self.parts = history.word, history.parts
        self._history, self._change = history, change

    @cached_property
    def change(self) -> WordChange:
        """What the reports of all windows say of it; those not known yet are computed."""
        return self._change()

    @property
    def changed(self) -> str | None:
        """The window since which it is used differently; None where no window calls that."""
        return self.change.since if self.change.kind == "moved" else None

    @property
    def born(self) -> str | None:
        """The window in which it was new; None where no window calls that, or it changed since."""
        return self.change.since if self.change.kind == "born" else None

    def history(self) -> Table:
        """A row a window, oldest first.

        per_1000_documents  documents that hold the word; None where nothing was read
        shift               share of the words nearest to it in the model that were not so
                            near in the window before
        shift_low, _high    95 % interval of it
        neighbours          words that were used in the window as it was
        """
        rows = [_row(point) for point in self._history.points]
        notes = [note.text for note in self._history.notes]
        return Table(rows, f"{self.word}, window by window", notes, _SHOWN)

    def sources(self) -> Table:
        """A row for each window and source: how often the source used the word."""
        rows = [
            {"window": point.label, "source": use.source, **_counted(use)}
            for point in self._history.points
            for use in point.sources
        ]
        return Table(rows, f"{self.word} by source")

    def __repr__(self) -> str:
        return "\n".join([repr(self.history()), *self._dated()])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self.history()._repr_html_() + "".join(f"<p>{line}</p>" for line in self._dated())

    def _dated(self) -> list[str]:
        happened = {"moved": "Used differently since", "born": "New in", None: ""}
        change = self.change
        return [f"{happened[change.kind]} {change.since}."] if change.kind else []


def _counted(use: HistoryPoint | SourceUse) -> dict[str, object]:
    names = ("count", "documents", "authors", "per_1000_documents")
    return {name: getattr(use, name) for name in names}


def _row(point: HistoryPoint) -> dict[str, object]:
    shift = point.shift_previous
    return {
        "window": point.label,
        **_counted(point),
        "shift": None if shift is None else shift.shift,
        "shift_low": None if shift is None else shift.low,
        "shift_high": None if shift is None else shift.high,
        "neighbours": [near.word for near in point.neighbours],
        "snapshot": point.snapshot,
    }
