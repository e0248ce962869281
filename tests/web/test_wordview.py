"""The two lists of near words on a word's page, and what its axis says of each window."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from embedding.trends.axis import ALL, AxisHistory, AxisPoint
from embedding.trends.history import WordHistory, word_history
from embedding.trends.rows import NeighbourRow, WordChange
from embedding.web.text import PageText
from embedding.web.wordview import axis_view, history_sentences, word_view


@pytest.fixture(scope="module")
def history(planted, tmp_path_factory) -> WordHistory:
    plan = planted.Plan(windows=2, fillers=60)
    return word_history(planted.make_store(str(tmp_path_factory.mktemp("near")), plan), "코로나")


def states(
    history: WordHistory, *, by_use: tuple[bool, bool], kind: str | None = "moved", ago: int = 0
) -> set[str]:
    """The marks of both lists, where each has a word of its own.

    kind  of the verdict of the last window, or of `ago` windows before it
    """
    near = (NeighbourRow("백신", 0.8), NeighbourRow("병원", 0.7)), (NeighbourRow("백신", 0.9),)
    points = tuple(
        replace(point, neighbours=words, by_use=used)
        for point, words, used in zip(history.points[-2:], near, by_use, strict=True)
    )
    since = points[-1 - ago].label
    change = WordChange(history.word, kind, since, 0.001, (), len(points))  # type: ignore[arg-type]
    view = word_view(replace(history, points=points), None, None, PageText("en"), change)
    sides = {"lost": view.then_lines, "new": view.now_lines}
    return {mark if line.changed else "" for mark, lines in sides.items() for line in lines}


def test_a_word_that_is_near_no_more_is_marked(history: WordHistory) -> None:
    assert states(history, by_use=(True, True)) == {"", "lost"}
    assert states(history, by_use=(False, False)) == {"", "lost"}


def test_lists_that_do_not_compare_mark_nothing(history: WordHistory) -> None:
    assert states(history, by_use=(False, True)) == {""}


def test_a_word_that_did_not_change_between_both_windows_marks_nothing(
    history: WordHistory,
) -> None:
    assert states(history, by_use=(True, True), kind=None) == {""}
    assert states(history, by_use=(True, True), kind="born") == {""}
    assert states(history, by_use=(True, True), ago=1) == {""}


def test_the_models_shift_is_told_only_where_its_words_are_shown(history: WordHistory) -> None:
    def sentences(*, by_use: bool) -> str:
        points = tuple(replace(point, by_use=by_use) for point in history.points)
        return " ".join(history_sentences(replace(history, points=points), PageText("ko")))

    told = r"가까운 말의 \d+ %가 바뀌었습니다\(95 % 구간 \d+–\d+ %\)"
    assert re.search(told, sentences(by_use=False))
    assert not re.search(told, sentences(by_use=True))


def test_a_window_of_an_axis_names_every_source_that_used_the_word() -> None:
    figures = [("2020-01", ALL, 0.5), ("2020-01", "게시판", -0.25), ("2020-01", "뉴스", 0.75)]
    points = tuple(
        AxisPoint("id", label, source, 10, position, None, None)
        for label, source, position in figures
    )
    history = AxisHistory("방역", ("좋다",), ("나쁘다",), (1, 1), points)
    chart = axis_view("sentiment", history, PageText("ko"), ("게시판", "뉴스"), ["2020-01"])[
        "chart"
    ]
    (tip,) = chart["tips"]
    _, *lines = tip.split("\n")
    assert lines == [
        f"{PageText('ko')('all_sources')}: +0.50 (10)",
        "게시판: −0.25 (10)",
        "뉴스: +0.75 (10)",
    ]
    assert [line["values"] for line in chart["lines"]] == [[-0.25], [0.75], [0.5]]


def test_a_chart_keeps_its_time_axis_and_leaves_gaps() -> None:
    """For a window in which the word has no position, and for one that the store lacks."""
    points = (AxisPoint("id", "2020-02", ALL, 10, 0.5, None, None),)
    history = AxisHistory("방역", ("좋다",), ("나쁘다",), (1, 1), points)
    windows = ["2020-01", "2020-02", "2020-05"]
    chart = axis_view("sentiment", history, PageText("ko"), (), windows)["chart"]
    assert chart["labels"] == ["20.01", "20.02", "", "", "20.05"]
    assert [line["values"] for line in chart["lines"]] == [[None, 0.5, None, None, None]]
    assert len(chart["tips"]) == 5


@pytest.mark.parametrize(
    ("label", "later", "n"),
    [
        ("2020-12", "2021-01", 0),
        ("2020-12", "2021-03", 2),
        ("2020-02-28", "2020-03-01", 1),
        ("2020-01-01T23", "2020-01-02T01", 1),
        ("20200101T0000_20200108T0000", "20200301T0000_20200308T0000", 0),
    ],
)
def test_windows_between_two_are_counted_by_the_calendar(label: str, later: str, n: int) -> None:
    history = AxisHistory(
        "방역", ("좋다",), ("나쁘다",), (1, 1), (AxisPoint("id", label, ALL, 10, 0.5, None, None),)
    )
    view = axis_view("sentiment", history, PageText("ko"), (), [label, later])
    assert view["chart"]["labels"][1:-1] == [""] * n
