"""A table in a terminal too narrow for its long columns: these become lines of their own."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

ROOM = 110
"""Cells from which a table with lists of words is read well as it is."""
GAP, INDENT = 2, 4


def fitted(table: Table, long: int, width: int) -> RenderableType:
    """The table where the terminal has room, else its rows with the long columns below each.

    long   how many of the last columns are lists of words
    width  cells of the terminal
    """
    if width >= ROOM:
        return table
    short, rest = table.columns[:-long], table.columns[-long:]
    cells, lists = [_texts(column) for column in short], [_texts(column) for column in rest]
    widths = _widths([max(map(cell_len, column), default=0) for column in cells], width)
    made: list[RenderableType] = [] if table.title is None else [_marked_up(table.title, "bold")]
    for at, line in enumerate(zip(*cells, strict=True)):
        made.append(_line(line, short, widths, "dim" if at == 0 else ""))
        for column in lists:
            label = f"{column[0]}: " if at and long > 1 else ""
            below = Text(label, "dim") + Text(column[at], "" if at else "dim")
            if at or long == 1:
                made.append(Padding(below, (0, 0, 0, INDENT)))
    if table.caption is not None:
        made += ["", _marked_up(table.caption)]
    return Group(*made)


def _marked_up(text: object, style: str = "") -> Text:
    return Text.from_markup(str(text), style=style)


def _texts(column: Column) -> list[str]:
    """What its header and its cells show, without their markup."""
    return [Text.from_markup(str(cell)).plain for cell in (column.header, *column.cells)]


def _widths(wanted: list[int], width: int) -> list[int]:
    """Cells of each column; the widest gives way where they do not fit."""
    over = sum(wanted) + GAP * (len(wanted) - 1) - width
    if over > 0:
        widest = wanted.index(max(wanted))
        wanted[widest] = max(wanted[widest] - over, 1)
    return wanted


def _line(
    cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], style: str
) -> Text:
    placed = [
        _placed(cell, size, right=column.justify == "right")
        for cell, column, size in zip(cells, columns, widths, strict=True)
    ]
    return Text((" " * GAP).join(placed).rstrip(), style)


def _placed(cell: str, size: int, *, right: bool) -> str:
    if cell_len(cell) > size:
        return set_cell_size(cell, size - 1) + "…"
    return " " * (size - cell_len(cell)) + cell if right else set_cell_size(cell, size)
