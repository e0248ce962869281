"""Tables in a narrow terminal."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from embedding.show.terminal import ROOM, fitted

LONG = "가나다라마바사 " * 12


def table(*lists: str, word: str = "코로나 *") -> Table:
    made = Table(title="moved · [2020]", caption="* significant")
    made.add_column("#", justify="right")
    made.add_column("word")
    made.add_column("z", justify="right")
    for title in lists:
        made.add_column(title)
    made.add_row("1", escape(word), "13.9", *(escape(f"[a] {title} {LONG}") for title in lists))
    made.add_row("12", "말", "2.0", *("– → b" for _ in lists))
    return made


def shown(one: Table, long: int, width: int) -> list[str]:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(fitted(one, long, width))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_with_room_it_is_the_table() -> None:
    one = table("neighbours")
    assert fitted(one, 1, ROOM) is one


def test_a_list_of_words_stands_below_its_row_in_the_whole_width() -> None:
    lines = shown(table("neighbours"), 1, 80)
    assert lines[:5] == [
        "moved · [2020]",
        " #  word         z",
        "    neighbours",
        " 1  코로나 *  13.9",
        f"    [a] neighbours {'가나다라마바사 ' * 4}".rstrip(),
    ]
    assert lines[-4:] == ["12  말         2.0", "    – → b", "", "* significant"]


def test_of_two_lists_each_says_which_it_is() -> None:
    lines = shown(table("뉴스", "게시판"), 2, 80)
    assert lines[1:3] == [" #  word         z", " 1  코로나 *  13.9"]
    assert lines[3].startswith("    뉴스: [a] 뉴스 가나다")
    assert sum(line.startswith("    게시판: ") for line in lines) == 2


@pytest.mark.parametrize("width", [20, 40, 80])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    lines = shown(table("neighbours", word="<script>" * 5), 1, width)
    assert max(map(cell_len, lines)) <= width
    assert any("…" in line for line in lines) == (width < 80)
