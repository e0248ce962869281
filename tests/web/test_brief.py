"""The front page's sentences say what was judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from embedding.trends.config import TrendsConfig
from embedding.trends.report import build_report
from embedding.trends.rows import TrendReport
from embedding.web.brief import lede
from embedding.web.text import Words


@pytest.fixture(scope="module")
def waning(planted, tmp_path_factory) -> TrendReport:
    """A word that came up in the window before: against that one alone it hardly rose."""
    plan = planted.Plan(windows=4, fillers=150, moved={}, born={}, lone={}, risen={"마스크": 2})
    return build_report(planted.make_store(str(tmp_path_factory.mktemp("waning")), plan))


def test_the_sentence_of_what_rose_names_the_windows_it_was_judged_against(waning) -> None:
    row = waning.risen[0]
    assert row.word == "마스크"
    assert row.significant
    assert row.rate_before == pytest.approx(row.rate, rel=0.15)
    assert row.rate_usual < 0.6 * row.rate
    now, usual = f"{row.rate:.1f}", f"{row.rate_usual:.1f}"
    said = lede(waning, Words("en"))[-1]
    assert f": {now} of 1,000 documents use it, against {usual} in the 3 windows before." in said
    said = lede(waning, Words("ko"))[-1]
    assert f"1,000건 가운데 {now}건에 쓰였고, 앞선 창 3개를 합치면 {usual}건" in said


def test_one_window_before_and_a_report_of_old_name_that_window(waning, planted, tmp_path) -> None:
    plan = planted.Plan(windows=3, fillers=150, moved={}, born={}, lone={}, risen={"마스크": 2})
    store = planted.make_store(str(tmp_path), plan)
    single = build_report(store, config=TrendsConfig(baseline_windows=1))
    assert "in the window before." in lede(single, Words("en"))[-1]
    assert single.risen[0].rate_usual == pytest.approx(single.risen[0].rate_before, rel=0.01)
    old = replace(waning, risen=(replace(waning.risen[0], rate_usual=None),))
    before = f"{waning.risen[0].rate_before:.1f}"
    assert f"against {before} in the window before." in lede(old, Words("en"))[-1]
    assert f"바로 앞 창에서는 {before}건" in lede(old, Words("ko"))[-1]
