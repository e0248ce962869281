"""A table of answers: rows as dictionaries, frames of pandas and polars, and how it is shown."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa
from rich.cells import cell_len

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

Row = Mapping[str, Any]
SHOWN_ROWS = 20
"""Rows that are shown where a table is printed; frames hold all."""


class Table(Sequence[Row]):
    """Rows of one kind, in order.

    rows   dictionaries with the same keys; a cell that holds several words is a list of text
    title  what the rows are, in a sentence
    notes  what a reader has to know beside them
    shown  the columns that are shown where the table is printed; None: all

    `table[0]` is a dictionary, `table[:5]` a table.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        title: str,
        notes: Sequence[str] = (),
        shown: Sequence[str] | None = None,
    ) -> None:
        self.title, self.notes = title, tuple(notes)
        self._rows = tuple(rows)
        self._shown = tuple(shown) if shown is not None else self.columns

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns; none where there is no row."""
        return tuple(self._rows[0]) if self._rows else ()

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Table: ...
    def __getitem__(self, at: int | slice) -> Row | Table:
        if isinstance(at, slice):
            return Table(self._rows[at], self.title, self.notes, self._shown)
        return self._rows[at]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def to_arrow(self) -> pa.Table:
        """All rows and columns as an Arrow table."""
        return pa.Table.from_pylist([dict(row) for row in self._rows])

    def to_pandas(self) -> pd.DataFrame:
        """All rows and columns as a frame of pandas; needs pandas."""
        import pandas as pd

        return pd.DataFrame.from_records([dict(row) for row in self._rows])

    def to_polars(self) -> pl.DataFrame:
        """All rows and columns as a frame of polars; needs polars."""
        import polars as pl

        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def __repr__(self) -> str:
        lines = [self.title]
        if self._rows:
            cells = [[_cell(row[name]) for name in self._shown] for row in self._rows[:SHOWN_ROWS]]
            widths = [
                max(cell_len(name), *(cell_len(line[at]) for line in cells))
                for at, name in enumerate(self._shown)
            ]
            lines += [_line(line, widths) for line in (self._shown, *cells)]
        return "\n".join([*lines, *self._last()])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self._shown)
        body = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape(_cell(row[name]))}</td>" for name in self._shown)
            + "</tr>"
            for row in self._rows[:SHOWN_ROWS]
        )
        rows = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        under = "".join(f"<p>{html.escape(line)}</p>" for line in self._last())
        return f"<p><b>{html.escape(self.title)}</b></p>{rows if self._rows else ''}{under}"

    def _last(self) -> list[str]:
        more = len(self._rows) - SHOWN_ROWS
        left = [f"… and {more:,} more rows; to_pandas() holds all."] if more > 0 else []
        nothing = [] if self._rows else ["No rows."]
        return [*left, *nothing, *self.notes]


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return " ".join(_cell(item) for item in value)
    return str(value)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell + " " * (wide - cell_len(cell)) for cell, wide in zip(cells, widths, strict=True)
    ]
    return "  ".join(padded).rstrip()
