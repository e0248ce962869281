"""The two lists of near words on a word's page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from embedding.trends.history import WordHistory, word_history
from embedding.trends.rows import NeighbourRow
from embedding.web.text import PageText
from embedding.web.wordview import NearLine, word_view


@pytest.fixture(scope="module")
def history(planted, tmp_path_factory) -> WordHistory:
    plan = planted.Plan(windows=2, fillers=60)
    return word_history(planted.make_store(str(tmp_path_factory.mktemp("near")), plan), "코로나")


def states(history: WordHistory, *, by_use: tuple[bool, bool]) -> set[str]:
    """The marks of both lists, where each has a word of its own."""
    near = (NeighbourRow("백신", 0.8), NeighbourRow("병원", 0.7)), (NeighbourRow("백신", 0.9),)
    points = tuple(
        replace(point, neighbours=words, by_use=used)
        for point, words, used in zip(history.points[-2:], near, by_use, strict=True)
    )
    view = word_view(replace(history, points=points), None, None, PageText("en"))
    lines: tuple[NearLine, ...] = view.then_lines + view.now_lines
    return {line.state for line in lines}


def test_a_word_that_is_near_no_more_is_marked(history: WordHistory) -> None:
    assert states(history, by_use=(True, True)) == {"", "lost"}
    assert states(history, by_use=(False, False)) == {"", "lost"}


def test_lists_that_do_not_compare_mark_nothing(history: WordHistory) -> None:
    assert states(history, by_use=(False, True)) == {""}
