"""Words without a topic stand in no list, and a finding stays whatever its word."""

from __future__ import annotations

from dataclasses import replace

import pytest

from embedding.trends.report import build_report
from embedding.trends.rows import ContextPull, NeighbourRow, TrendReport
from embedding.web.findings import row_sentences
from embedding.web.plain import plain
from embedding.web.text import PageText


@pytest.fixture(scope="module")
def report(planted, tmp_path_factory) -> TrendReport:
    plan = planted.Plan(windows=4, fillers=100)
    return build_report(planted.make_store(str(tmp_path_factory.mktemp("plain")), plan))


def test_function_words_go_and_topics_stay(report: TrendReport) -> None:
    topics = ["병원", "백신", "정부", "의원", "나침반", "좋다"]
    words = ["하다", "관하다", *topics, "모두", "새로", "그리고", "the", "of"]
    near = tuple(NeighbourRow(word, 0.9) for word in words)
    shown = plain(replace(report, moved=(replace(report.moved[0], neighbours=near),))).moved[0]
    assert [row.word for row in shown.neighbours] == topics


def test_a_sentence_counts_the_words_that_are_shown(report: TrendReport) -> None:
    near = (
        NeighbourRow("하다", 0.9, True),
        NeighbourRow("백신", 0.8, True),
        NeighbourRow("병원", 0.7),
    )
    row = replace(
        report.moved[0],
        neighbours=near,
        neighbours_before=(NeighbourRow("모두", 0.8, True), *near[2:]),
        contexts=(ContextPull("그리고", 0.5, 0.1, 0.4), ContextPull("접종", 0.4, 0.0, 0.3)),
    )
    shown = plain(replace(report, moved=(row,))).moved[0]
    assert [one.word for one in shown.neighbours] == ["백신", "병원"]
    said = " ".join(row_sentences("moved", shown, report, PageText("en")))
    assert said.startswith("1 of its 2 closest words are new since")
    assert said.endswith("It now appears more often with 접종.")


def test_a_find_stays_and_a_row_within_chance_goes(report: TrendReport) -> None:
    found = replace(report.risen[0], word="하다", significant=True)
    chance = replace(found, word="모두", significant=False)
    shown = plain(replace(report, risen=(found, chance)))
    assert [row.word for row in shown.risen] == ["하다"]
