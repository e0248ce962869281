"""The front page's sentences say what was judged, and how surely."""

from __future__ import annotations

from dataclasses import replace

import pytest

from embedding.ask.answers import Answers
from embedding.trends.config import TrendsConfig
from embedding.trends.report import build_report
from embedding.trends.rows import ContextPull, Story, StoryWord, TrendReport
from embedding.web.brief import headline, leads, lede, read, story_views
from embedding.web.text import PageText


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
    bare = replace(waning, stories=())
    said = lede(bare, PageText("en"))[-1]
    assert f"in {now} of 1,000 documents, up from {usual} in the 3 months before." in said
    said = lede(bare, PageText("ko"))[-1]
    assert f"1,000건 중 {now}건에 쓰여, 앞선 3개월 평균 {usual}건보다 많습니다." in said


def test_one_window_before_names_that_window(waning, planted, tmp_path) -> None:
    plan = planted.Plan(windows=3, fillers=150, moved={}, born={}, lone={}, risen={"마스크": 2})
    store = planted.make_store(str(tmp_path), plan)
    single = build_report(store, config=TrendsConfig().model_copy(update={"baseline_windows": 1}))
    said = lede(replace(single, stories=()), PageText("en"))[-1]
    assert f"in {PageText('en').window(single.compared_with.label)}." in said
    assert single.risen[0].rate_usual == pytest.approx(single.risen[0].rate_before, rel=0.01)


def test_where_no_story_leads_every_find_has_its_sentences(planted, tmp_path) -> None:
    report = build_report(planted.make_store(str(tmp_path), planted.Plan(fillers=150)))
    (said,) = lede(report, PageText("ko"))
    n = len(report.significant_stories())
    assert said.startswith(f"평소 변동 범위를 벗어난 변화가 {n}가지 있었습니다."), (
        "the stories say it"
    )
    bare = replace(report, stories=())
    said = lede(bare, PageText("ko"))
    assert [one.count("우연인 것은 많아야") for one in said] == [1] * 3
    assert f"‘{report.moved[0].word}’의 의미가 달라졌습니다." in said[0]
    born = report.born[0]
    assert f"‘{born.word}’가 새로 떠올랐습니다. " in said[1]
    assert f"문서 {born.documents}건에 쓰였습니다." in said[1]
    assert "까지는 쓰이지 않았습니다." in said[1]


def test_a_word_that_documents_judge_is_told_by_what_stands_beside_it(planted, tmp_path) -> None:
    report = build_report(planted.make_store(str(tmp_path), planted.Plan(fillers=150)))
    pulls = (ContextPull("마스크", 0.5, 0.0, 0.2), ContextPull("원룸", 0.3, 0.2, 0.0))
    told = replace(report, stories=(), moved=(replace(report.moved[0], contexts=pulls),))
    assert "이번 달에는 마스크와 함께 더 자주 쓰였습니다." in lede(told, PageText("ko"))[0]
    assert "It now appears more often with 마스크." in lede(told, PageText("en"))[0]


def test_where_no_meaning_moved_the_brief_says_so_beside_what_rose(waning) -> None:
    assert not any(row.significant for row in waning.moved)
    compared = f"{waning.ranked['moved']:,}"
    assert f"No word clearly changed in meaning ({compared} were compared)." in lede(
        replace(waning, stories=()), PageText("en")
    )
    nothing = replace(waning, stories=(), risen=(), born=(), moved=())
    assert lede(nothing, PageText("en")) == ["This month’s changes are no larger than usual."]


def test_what_was_read_names_the_sources_that_brought_nothing(waning) -> None:
    now, before = waning.snapshot, waning.compared_with
    report = replace(
        waning,
        snapshot=replace(now, documents={"뉴스": 3000}),
        compared_with=replace(before, documents={"뉴스": 2900, "게시판": 2000}),
    )
    assert read(report, PageText("ko")) == (
        f"{PageText('ko').window(now.label)}에 출처 1곳에서 문서 3,000건을 읽었습니다. "
        "아무것도 읽지 못한 출처: 게시판, 댓글."
    )


def test_the_headline_names_the_surest_stories(planted, tmp_path) -> None:
    report = build_report(planted.make_store(str(tmp_path), planted.Plan(fillers=150)))
    sure = [one for one in report.stories if one.significant]
    firsts = [one.words[0].word for one in sure[:3]]
    assert headline(report)[: len(firsts)] == firsts
    alone = replace(report, stories=sure[:1])
    assert headline(alone) == [*sure[0].title]
    assert headline(replace(report, stories=())) != []


def test_a_lead_says_what_since_when_and_how_much(planted, tmp_path) -> None:
    report = build_report(planted.make_store(str(tmp_path), planted.Plan(fillers=150)))
    born, moved = report.born[0], report.moved[0]
    assert not any(born.series[:-1])
    pulls = (
        ContextPull("졸업", 0.3, 0.4, 0.0),
        ContextPull("도로", 0.3, 0.0, 0.4),
        ContextPull("학교", 0.2, 0.3, 0.1),
        ContextPull("버스", 0.2, 0.1, 0.3),
    )
    turned = replace(moved, contexts=pulls, since=report.compared_with.label)
    told = replace(report, stories=(), moved=(turned,), risen=(), fallen=())
    rate = f"{born.rate:.0f}" if born.rate >= 100 else f"{born.rate:.1f}"
    assert [one.sentence for one in leads(told, PageText("ko"))] == [
        f"‘{moved.word}’: 졸업·학교 곁에서 도로·버스 곁으로 (2020년 1월부터)",
        f"‘{born.word}’ 2020년 2월에 처음 등장, 문서 1,000건에 {rate}건",
    ]
    assert [one.sentence for one in leads(told, PageText("en"))] == [
        f"“{moved.word}” moved from beside 졸업, 학교 to beside 도로, 버스 (since January 2020)",
        f"“{born.word}” first appeared in February 2020, in {rate} of 1,000 documents",
    ]
    assert [one.shown for one in leads(told, PageText("en"))] == [moved.word, born.word]


def test_a_lead_without_words_beside_it_names_those_that_were_used_alike(planted, tmp_path) -> None:
    report = build_report(planted.make_store(str(tmp_path), planted.Plan(fillers=150)))
    moved = replace(report.moved[0], contexts=(), since=None)
    told = replace(report, stories=(), moved=(moved,), born=(), risen=(), fallen=())
    before = [one.word for one in moved.neighbours_before if one.changed][:3]
    after = [one.word for one in moved.neighbours if one.changed][:3]
    (lead,) = leads(told, PageText("ko"))
    assert before
    assert after
    said = f"{'·'.join(before)}처럼 쓰이다가 {'·'.join(after)}처럼 쓰임"
    assert lead.sentence == f"‘{moved.word}’: {said} (2020년 2월부터)"
    bare = replace(told, moved=(replace(moved, neighbours=(), neighbours_before=()),))
    assert leads(bare, PageText("en"))[0].sentence.endswith(
        "has meant something else since February 2020"
    )


def test_what_rose_and_fell_is_led_by_its_figures(waning) -> None:
    (row,) = (one for one in waning.significant("risen") if one.word == "마스크")
    told = replace(waning, stories=(), moved=(), born=(), risen=(row,), fallen=())
    usual, now = f"{row.rate_usual:.1f}", f"{row.rate:.1f}"
    window, than = PageText("ko").window(waning.snapshot.label), "앞선 3개월 평균"
    (lead,) = leads(told, PageText("ko"))
    assert lead.sentence == f"‘마스크’ 문서 1,000건에 {now}건으로 증가 ({window}, {than} {usual}건)"
    fell = replace(row, rate=row.rate_usual, rate_usual=row.rate)
    (lead,) = leads(replace(told, risen=(), fallen=(fell,)), PageText("ko"))
    assert lead.sentence == f"‘마스크’ 문서 1,000건에 {usual}건으로 감소 ({window}, {than} {now}건)"
    same = replace(row, rate_usual=row.rate)
    (lead,) = leads(replace(told, risen=(same,)), PageText("ko"))
    assert lead.sentence == f"{window}에 ‘마스크’가 더 자주 쓰였습니다."
    since = replace(row, series=(0.0, *[row.rate] * (len(row.series) - 1)))
    (lead,) = leads(replace(told, risen=(), born=(since,)), PageText("en"))
    assert "became established in" in lead.sentence


def test_a_story_is_shown_by_the_roles_of_its_words_and_where_it_stands(planted, tmp_path) -> None:
    report = build_report(planted.make_store(str(tmp_path), planted.Plan(fillers=150)))
    asked = []

    def where(story, report):
        window = report.window_of(story)
        asked.append((story.id, window.start, window.end))

    views = story_views(report, 2, where, PageText("ko"))
    assert len(views) == min(2, sum(one.significant for one in report.stories))
    assert asked[0] == (views[0].story.id, report.snapshot.start, report.snapshot.end)
    fell = replace(report.stories[0].words[0], role="fallen")
    gone = replace(report.stories[0], words=(fell,) * 20)
    (view,) = story_views(replace(report, stories=(gone,)), 2, where, PageText("ko"))
    assert asked[-1][1:] == (report.compared_with.start, report.compared_with.end)
    assert (view.story, view.where) == (gone, None)


@pytest.mark.parametrize(
    ("language", "more"), [("ko", "외 3개"), ("en", "and 3 more")], ids=["ko", "en"]
)
def test_of_a_long_story_twelve_words_are_named_and_the_others_counted(
    client, monkeypatch, language: str, more: str
) -> None:
    report_of = Answers.report
    names = [f"낱말{number}" for number in range(18)]

    def report(answers: Answers, *asked: object) -> TrendReport:
        report = report_of(answers, *asked)
        risen = [StoryWord(name, "risen", 0.001, 3, 30) for name in names[:15]]
        fallen = [StoryWord(name, "fallen", 0.001, 30, 3) for name in names[15:]]
        label = report.snapshot.label
        story = Story("s", label, (*risen, *fallen), 0.001, True, 30, 20, ("뉴스",))
        return replace(report, stories=(story,))

    monkeypatch.setattr(Answers, "report", report)
    html = client.get("/", headers={"accept-language": language}).text
    risen, fallen = (part.partition("</p>")[0] for part in html.split('"story-words">')[1:3])
    assert [name for name in names if f">{name}</a>" in risen] == names[:12]
    assert risen.rstrip().endswith(more)
    assert [name for name in names if f">{name}</a>" in fallen] == names[15:]
    assert more not in fallen
