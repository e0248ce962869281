"""The front page's sentences say what was judged, and how surely."""

from __future__ import annotations

from dataclasses import replace

import pytest

from embedding.trends.config import TrendsConfig
from embedding.trends.report import build_report
from embedding.trends.rows import ContextPull, TrendReport
from embedding.web.brief import headline, lede, read, story_views
from embedding.web.formats import particle
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
    assert f": {now} of 1,000 documents use it, against {usual} in the 3 windows before (q " in said
    said = lede(waning, Words("ko"))[-1]
    assert f"1,000건 가운데 {now}건에 쓰였고, 앞선 창 3개를 통틀어서는 {usual}건" in said


def test_one_window_before_and_a_report_of_old_name_that_window(waning, planted, tmp_path) -> None:
    plan = planted.Plan(windows=3, fillers=150, moved={}, born={}, lone={}, risen={"마스크": 2})
    store = planted.make_store(str(tmp_path), plan)
    single = build_report(store, config=TrendsConfig(baseline_windows=1))
    assert "in the window before (q " in lede(single, Words("en"))[-1]
    assert single.risen[0].rate_usual == pytest.approx(single.risen[0].rate_before, rel=0.01)
    old = replace(waning, risen=(replace(waning.risen[0], rate_usual=None),))
    before = f"{waning.risen[0].rate_before:.1f}"
    assert f"against {before} in the window before (q " in lede(old, Words("en"))[-1]
    assert f"바로 앞 창에서는 {before}건" in lede(old, Words("ko"))[-1]


def test_every_find_is_told_with_its_figures_and_its_q(planted, tmp_path) -> None:
    report = build_report(planted.make_store(str(tmp_path), planted.Plan(fillers=150)))
    moved, born = report.moved[0], report.born[0]
    said = lede(report, Words("ko"))
    assert f"움직임은 {moved.shift:.2f}, 비슷한 빈도의 보통 낱말은 {moved.expected:.2f}" in said[0]
    near = [one.word for one in moved.neighbours if one.changed][:3]
    assert f"새로 가까워진 말: {', '.join(near)} (q" in said[0]
    assert f"‘{born.word}’를 쓴 문서는 앞 창 0건에서 {born.documents}건" in said[1]
    assert [one[-2:] for one in said] == [")."] * 3


def test_a_word_that_documents_judge_is_told_by_what_stands_beside_it(planted, tmp_path) -> None:
    report = build_report(planted.make_store(str(tmp_path), planted.Plan(fillers=150)))
    moved = replace(report.moved[0], figures={**report.moved[0].figures, "usage": 0.4})
    bare = replace(report, estimator="usage", moved=(moved,))
    assert bare.by_documents(moved)
    said = lede(bare, Words("ko"))[0]
    assert said.startswith(
        f"의미가 가장 뚜렷이 달라진 말은 ‘{moved.word}’입니다. 새로 가까워진 말:"
    )
    assert f"{moved.shift:.2f}" not in said, "its shift is no measure of it"
    pulls = (ContextPull("마스크", 0.5, 0.0, 0.2), ContextPull("원룸", 0.3, 0.2, 0.0))
    told = replace(report, estimator="usage", moved=(replace(moved, contexts=pulls),))
    assert "곁에 더 자주 오는 말: 마스크 (q" in lede(told, Words("ko"))[0]
    assert "Beside it stand more often: 마스크 (q" in lede(told, Words("en"))[0]


def test_where_no_meaning_moved_the_brief_says_so_beside_what_rose(waning) -> None:
    assert not any(row.significant for row in waning.moved)
    compared = f"{waning.ranked['moved']:,}"
    assert f"No word moved clearly in meaning ({compared} were compared)." in lede(
        waning, Words("en")
    )


def test_what_was_read_names_the_sources_that_brought_nothing(waning) -> None:
    now, before = waning.snapshot, waning.compared_with
    report = replace(
        waning,
        snapshot=replace(now, documents={"뉴스": 3000}),
        compared_with=replace(before, documents={"뉴스": 2900, "게시판": 2000}),
    )
    assert read(report, Words("ko")) == (
        f"소스 1곳의 문서 3,000건을 {now.end[:10]} 00:00 UTC까지 읽었습니다. "
        "아무것도 읽지 못한 소스: 게시판, 댓글."
    )


@pytest.mark.parametrize(("word", "said"), [("코로나", "를"), ("일본", "을"), ("K-pop", "을(를)")])
def test_the_particle_follows_the_last_letter(word: str, said: str) -> None:
    assert particle(word, "을", "를") == said


def test_the_headline_names_the_surest_stories(planted, tmp_path) -> None:
    report = build_report(planted.make_store(str(tmp_path), planted.Plan(fillers=150)))
    sure = [one for one in report.stories if one.significant]
    firsts = [one.words[0].word for one in sure[:3]]
    assert headline(report)[: len(firsts)] == firsts
    alone = replace(report, stories=sure[:1])
    assert headline(alone) == [*sure[0].title]
    assert headline(replace(report, stories=())) != []


def test_a_story_is_shown_by_the_roles_of_its_words_and_where_it_stands(planted, tmp_path) -> None:
    report = build_report(planted.make_store(str(tmp_path), planted.Plan(fillers=150)))
    asked = []

    def seen(story, start, end):
        asked.append((story.id, start, end))

    views = story_views(report, 2, seen)
    assert len(views) == min(2, sum(one.significant for one in report.stories))
    assert asked[0] == (views[0].story.id, report.snapshot.start, report.snapshot.end)
    words = {word: role for role, own, _ in views[0].words for word in own}
    assert words == {one.word: one.role for one in views[0].story.words}
    fell = replace(report.stories[0].words[0], role="fallen")
    gone = replace(report.stories[0], words=(fell,) * 20)
    (view,) = story_views(replace(report, stories=(gone,)), 2, seen)
    assert asked[-1][1:] == (report.compared_with.start, report.compared_with.end)
    assert view.words[0][2] == 20 - len(view.words[0][1]) > 0
