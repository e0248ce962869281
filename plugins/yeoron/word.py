"""One word through all windows."""

from __future__ import annotations

from embedding.trends.dating import WordChange
from embedding.trends.history import HistoryPoint, WordHistory
from yeoron.table import Table

_SHOWN = ("window", "count", "documents", "per_1000_documents", "shift", "neighbours")


class Word:
    """What the windows of a store say about a word.

    word     the word
    parts    the words that it was read as before it was one; empty for most
    changed  the window since which it is used differently; None where no date stands out
    """

    def __init__(self, history: WordHistory, change: WordChange) -> None:
        self.word, self.parts = history.word, history.parts
        date = change.date if change.clear else None
        self.changed = None if date is None else date.since
        self._history = history

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
            {
                "window": point.label,
                "source": use.source,
                "count": use.count,
                "documents": use.documents,
                "per_1000_documents": use.per_1000_documents,
            }
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
        return [] if self.changed is None else [f"Used differently since {self.changed}."]


def _row(point: HistoryPoint) -> dict[str, object]:
    shift = point.shift_previous
    return {
        "window": point.label,
        "count": point.count,
        "documents": point.documents,
        "per_1000_documents": point.per_1000_documents,
        "shift": None if shift is None else shift.shift,
        "shift_low": None if shift is None else shift.low,
        "shift_high": None if shift is None else shift.high,
        "neighbours": [near.word for near in point.neighbours],
        "snapshot": point.snapshot,
    }
