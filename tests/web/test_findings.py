"""Each sentence of a row says what its record says, in one measure and one direction."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.trends.contrast import ContrastRow
from embedding.trends.report import build_report
from embedding.trends.rows import (
    RANKINGS,
    NeighbourRow,
    Story,
    StoryWord,
    TrendReport,
    TrendRow,
    WindowFigures,
)
from embedding.web.findings import one_in, row_sentences, story_sentences, sureness, use_sentences
from embedding.web.text import PageText

EN, KO = PageText("en"), PageText("ko")
LABELS = ("2020-01", "2020-02", "2020-03", "2020-04")
FIGURE = r"([\d,]+(?:\.\d+)?)"


def window(label: str) -> WindowFigures:
    return WindowFigures(
        id=f"{label}-abc",
        label=label,
        start=f"{label}-01T00:00:00+00:00",
        end=f"{label}-28T00:00:00+00:00",
        words=100,
        documents={"뉴스": 1000},
        tokens={"뉴스": 9000},
    )


REPORT = TrendReport(
    snapshot=window(LABELS[-1]),
    compared_with=window(LABELS[-2]),
    baseline=("a", "b", "c"),
    estimator="usage",
    config_digest="0" * 16,
    windows=LABELS,
)
rates = st.floats(0, 1000, allow_nan=False)
counts = st.integers(0, 10_000)
shares = st.floats(0, 1, allow_nan=False)


@st.composite
def records(draw) -> TrendRow:
    """Any record, also one that no report would have."""
    near = [
        NeighbourRow(f"말{at}", 0.5, draw(st.booleans())) for at in range(draw(st.integers(0, 10)))
    ]
    return TrendRow(
        word=draw(st.sampled_from(["코로나", "일본", "K-pop", "{0}", "</b>"])),
        score=1.0,
        z=draw(st.floats(-10, 10)),
        p=draw(shares),
        q=draw(shares),
        significant=draw(st.booleans()),
        count_before=draw(counts),
        count=draw(counts),
        documents_before=draw(counts),
        documents=draw(counts),
        rate_before=draw(rates),
        rate=draw(rates),
        sources=(),
        neighbours_before=tuple(near),
        neighbours=tuple(near),
        series=tuple(draw(st.lists(rates, min_size=4, max_size=4))),
        rate_usual=draw(st.none() | rates),
    )


def number(text: str) -> float:
    return float(text.replace(",", ""))


@given(records(), st.sampled_from(["risen", "fallen"]))
def test_a_word_used_more_never_shows_a_fall_nor_one_used_less_a_rise(row, name):
    (said,) = row_sentences(name, row, REPORT, EN)
    found = re.search(
        rf"in {FIGURE} of 1,000 documents(?:, (up|down) from {FIGURE} in (.+))?\.", said
    )
    assert found
    assert "→" not in said
    now, way, usual, than = found.groups()
    assert number(now) == pytest.approx(row.rate, abs=0.51)
    if way is not None:
        assert way == ("up" if name == "risen" else "down")
        assert (number(now) > number(usual)) == (name == "risen")
        assert number(usual) == pytest.approx(row.usual, abs=0.51)
        assert than == ("the 3 months before" if row.rate_usual is not None else "March 2020")
    elif abs(row.rate - row.usual) > 1e-5:
        assert (row.rate > row.usual) != (name == "risen"), "only a contradiction is left unsaid"
    korean = row_sentences(name, row, REPORT, KO)[0]
    assert ("많습니다" in korean, "적습니다" in korean) == (way == "up", way == "down")


@given(records())
def test_a_new_word_has_one_count_and_no_direction(row):
    (said,) = row_sentences("born", row, REPORT, EN)
    assert number(re.match(rf"It is in {FIGURE} documents?", said)[1]) == row.documents
    assert "→" not in said
    assert len(re.findall(r"\d documents?\b", said)) == 1
    first = next((label for label, rate in zip(LABELS, row.series, strict=True) if rate), None)
    assert ("Up to March 2020 no document had it." in said) == (first == LABELS[-1])
    two = replace(REPORT, windows=LABELS[-2:])
    (alone,) = row_sentences("born", replace(row, series=(0.0, row.rate)), two, EN)
    assert ("No document of March 2020 had it." in alone) == (row.rate > 0)
    if first in LABELS[1:-1]:
        assert f"first seen in {EN.window(first)}" in said


@given(records())
def test_a_word_of_changed_meaning_counts_the_words_that_are_marked(row):
    said = " ".join(row_sentences("moved", row, REPORT, EN))
    changed = sum(one.changed for one in row.neighbours)
    if not row.neighbours or not row.significant:
        assert said == "", "a word that is not clear has nothing to compare"
    elif changed:
        assert f"{changed} of its {len(row.neighbours)} closest words are new since March" in said
    else:
        assert said == f"Its {len(row.neighbours)} closest words are those of March 2020."


@given(shares)
def test_one_in_n_is_never_surer_than_q(q):
    n = one_in(q)
    assert 1 <= n <= 1000
    assert q <= 1 / n or n == 1
    assert ("fluke" in sureness(q, EN, significant=True)) == (n > 1)
    assert sureness(q, EN, significant=False) == "It may be chance."


@given(
    st.sampled_from(RANKINGS),
    st.sampled_from(LABELS),
    counts,
    st.integers(0, 9),
    st.floats(0, 0.05),
    st.lists(st.sampled_from(["뉴스", "게시판", "댓글", "카페"]), unique=True, min_size=1),
)
def test_a_story_says_what_since_when_by_whom_and_how_surely(
    role, first, documents, voices, q, sources
):
    words = (StoryWord("코로나", role, q, 0, 0), StoryWord("마스크", role, q, documents, documents))
    story = Story("s", first, words, q, True, documents, voices, tuple(sources))
    happened, who = story_sentences(story, REPORT, EN)
    assert "“코로나” and “마스크”" in happened
    assert "in April 2020." in happened
    assert (f"The story began in {EN.window(first)}." in happened) == (first != LABELS[-1])
    assert ("less often" in happened) == (role == "fallen")
    assert ("more often" in happened) == (role == "risen")
    month = "March 2020" if role == "fallen" else "April 2020"
    named = "코로나" if documents == 0 else "마스크"
    assert re.match(rf"“{named}” is in {documents:,} documents? of {month}", who)
    assert ("Few authors" in who) == story.few_authors
    # The window that REPORT is about was read in 뉴스 alone.
    assert all((name in who) == (sources != ["뉴스"]) for name in sources[:3])
    assert f"1 in {one_in(q):,} findings" in who
    assert all(story_sentences(story, REPORT, KO))


def test_the_documents_of_a_story_are_those_of_the_word_that_is_named() -> None:
    words = (
        StoryWord("공적마스크", "born", 0.0, 0, 34),
        StoryWord("마스크", "risen", 0.0, 263, 355),
        StoryWord("일본", "fallen", 0.0, 900, 45),
    )
    story = Story("s", LABELS[-1], words, 0.0, True, 355, 0, ("뉴스",))
    assert story.most_used == words[1]
    assert story_sentences(story, REPORT, EN) == (
        "“공적마스크” emerged in April 2020.",
        (
            "Its most used word, “마스크”, is in 355 documents of April 2020. "
            "At most 1 in 1,000 findings this clear is a fluke."
        ),
    )
    assert story_sentences(story, REPORT, KO) == (
        "2020년 4월에 ‘공적마스크’가 새로 떠올랐습니다.",
        (
            "함께 묶인 말 가운데 가장 많이 쓰인 ‘마스크’는 2020년 4월 문서 355건에 나옵니다. "
            "이 정도로 뚜렷한 결과 가운데 우연인 것은 많아야 1,000건에 1건입니다."
        ),
    )


def test_a_difference_of_sources_says_who_used_it_how_often() -> None:
    row = ContrastRow("배", 5.0, 0.001, 0.01, True, 1200, 40, (), ())
    assert use_sentences(row, "게시판", "뉴스", KO) == (
        "게시판에서는 ‘배’를 뉴스 쪽과 다르게 씁니다.",
        "게시판 1,200회, 뉴스 40회 썼습니다.",
    )


@pytest.fixture(scope="module")
def planted_report(planted, tmp_path_factory) -> TrendReport:
    return build_report(planted.make_store(str(tmp_path_factory.mktemp("rows"))))


@pytest.mark.parametrize("name", RANKINGS)
def test_rows_of_a_real_report_go_the_way_of_their_ranking(planted_report, name) -> None:
    for row in getattr(planted_report, name):
        said = " ".join(row_sentences(name, row, planted_report, EN))
        if name == "risen":
            assert row.rate > row.usual
            assert "up from" in said
        elif name == "fallen":
            assert row.rate < row.usual
            assert "down from" in said
        elif name == "born":
            assert f"It is in {row.documents:,} document" in said
        else:
            assert (f"{len(row.neighbours)} closest words" in said) == row.significant


def test_an_old_report_without_its_baseline_names_the_window_before() -> None:
    row = replace(records_example(), rate_usual=None, rate_before=10.0, rate=20.0)
    said = row_sentences("risen", row, REPORT, EN)[0]
    assert said == "It is in 20.0 of 1,000 documents, up from 10.0 in March 2020."


def records_example() -> TrendRow:
    return TrendRow(
        *("코로나", 1.0, 3.0, 0.001, 0.01, True, 1, 1, 1, 1, 1.0, 2.0),
        *((), (), (), (0.0, 0.0, 1.0, 2.0)),
    )


def test_months_that_were_not_read_are_not_among_those_a_rate_is_compared_with() -> None:
    row = replace(records_example(), rate_usual=10.0, rate=20.0)
    apart = replace(REPORT, baseline=("2019-07-a", "2020-02-b", "2020-03-c"))
    (said,) = row_sentences("risen", row, apart, EN)
    assert said.endswith("in the 3 months that were read from July 2019 to March 2020.")
    (korean,) = row_sentences("risen", row, apart, KO)
    assert "2019년 7월부터 2020년 3월까지 글을 읽은 3개월 평균 10.0건보다 많습니다" in korean
    near = replace(REPORT, baseline=("2020-01-a", "2020-02-b", "2020-03-c"))
    assert row_sentences("risen", row, near, EN)[0].endswith("in the 3 months before.")
