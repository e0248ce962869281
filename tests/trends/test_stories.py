"""Stories: words that changed together are one, others are not, and ids go on."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from embedding.show.terminal import story_lines
from embedding.snapshots.evidence import EVIDENCE_SCHEMA, EvidenceStore
from embedding.snapshots.usage import Usage
from embedding.trends import storage
from embedding.trends.online import in_one_window, limits_of
from embedding.trends.report import build_report
from embedding.trends.rows import Story, StoryWord, TrendReport
from embedding.trends.stories import continued, groups, sightings, stories


def test_words_near_each_other_are_one_story_and_others_are_not() -> None:
    cosines = np.full((5, 5), 0.1)
    cosines[np.ix_([0, 2], [0, 2])] = 0.8
    cosines[np.ix_([1, 3], [1, 3])] = 0.6
    assert groups(cosines) == [[0, 2], [1, 3], [4]]


def test_a_chain_of_near_words_is_not_one_story() -> None:
    """Each is near the next one, the ends are not near each other."""
    cosines = np.eye(6) + 0.6 * (np.eye(6, k=1) + np.eye(6, k=-1))
    assert max(map(len, groups(cosines))) < 4


def test_no_words_are_no_stories() -> None:
    assert groups(np.zeros((0, 0))) == []
    assert groups(np.ones((1, 1))) == [[0]]


@pytest.fixture(scope="module")
def report(store) -> TrendReport:
    return build_report(store)


def test_a_report_leads_with_stories_of_all_significant_words(report, store) -> None:
    words = {one.word: one for story in report.stories for one in story.words}
    roles = {"코로나": "moved", "신천지": "born", "마스크": "risen", "도배": "risen"}
    assert {word: one.role for word, one in words.items()} == roles
    assert all(one.id.startswith("2020-02-") and one.first == "2020-02" for one in report.stories)
    assert TrendReport.from_dict(report.to_dict()).stories == tuple(
        replace(one, q=round(one.q, 6), words=tuple(map(rounded, one.words)))
        for one in report.stories
    )
    assert build_report(store).stories == report.stories


def rounded(word: StoryWord) -> StoryWord:
    return replace(word, q=round(word.q, 6))


def test_words_used_alike_are_told_once_with_their_documents(report, store) -> None:
    snapshot = store.open(report.snapshot.id)
    place = {word: snapshot.index(word) for word in ("코로나", "신천지", "마스크", "도배")}
    vectors = np.random.default_rng(1).normal(size=(len(snapshot), 50)).astype(np.float32)
    vectors[place["신천지"]] = vectors[place["코로나"]] + 0.2
    vectors[place["도배"]] = vectors[place["마스크"]] + 0.2
    units = np.zeros((len(snapshot), 64), np.float32)
    units[place["코로나"], :31] = 2.0
    units[place["신천지"], 9:20] = 1.0
    rows, sums = np.arange(len(snapshot)), np.zeros((len(snapshot), 64, 50), np.float32)
    usage = Usage(rows, ["뉴스"] * len(rows), rows, units, sums)
    told = SimpleNamespace(
        usage=replace(usage, busiest=usage),
        index=snapshot.index,
        vectors=vectors,
        dim=50,
        centre=np.zeros(50, np.float32),
        unreadable=None,
    )
    found = stories(report, told, limits_of(in_one_window(0.05)))
    by_word = {each.word: one for one in found for each in one.words}
    assert len(found) == 2
    assert by_word["코로나"] is by_word["신천지"] is not by_word["마스크"]
    assert by_word["마스크"] is by_word["도배"]
    one = by_word["코로나"]
    assert one.title[0] == one.words[0].word
    assert one.q == pytest.approx(min(1.0, 2 * min(each.q for each in one.words)))
    assert one.voices == 31, "units of documents that use its most widespread word"
    assert one.documents == max(each.documents for each in one.words)
    assert by_word["마스크"].voices == 0
    assert set(one.sources) == {"뉴스", "게시판", "댓글"}
    assert not one.few_authors
    assert replace(one, voices=2).few_authors
    assert not replace(one, voices=0).few_authors
    assert not replace(one, voices=2, documents=5).few_authors
    told.usage = usage
    nobody = stories(report, told, limits_of(in_one_window(0.05)))
    assert {each.voices for each in nobody} == {0}, "its texts name no author"
    assert not any("author" in line for each in nobody for line in story_lines(each))
    told.unreadable = "too little was read"
    assert len(stories(report, told, limits_of(in_one_window(0.05)))) == 4


def story(id: str, *words: str, first: str = "2020-02") -> Story:
    own = tuple(StoryWord(word, "moved", 0.001, 5, 9) for word in words)
    return Story(id, first, own, 0.01, True, 9, 5, ("뉴스",))


def test_a_story_keeps_its_id_while_it_goes_on() -> None:
    before = [story("2020-01-방", "n", "방", "사건", first="2020-01")]
    now = [story("2020-02-사건", "사건", "n", "성"), story("2020-02-방", "방")]
    found = continued(now, before)
    assert [(one.id, one.first) for one in found] == [
        ("2020-01-방", "2020-01"),
        ("2020-02-방", "2020-02"),
    ]
    assert continued(now, []) == tuple(now)
    other = [story("2020-01-마스크", "마스크", "손", "공", "사건", first="2020-01")]
    assert continued(now, other) == tuple(now), "one word in common of three is another story"


def test_a_story_goes_on_while_its_surest_word_does() -> None:
    february = story("2020-02-코로나", "코로나", "확진자", "우한폐렴", "방역", "확산", "전파")
    march = story("2020-03-코로나", "코로나", "팬데믹", "종식", "사태", first="2020-03")
    spread = story("2020-03-확산", "확산", "전파", "접촉", first="2020-03")
    found = continued([spread, march], [february])
    assert [one.first for one in found] == ["2020-03", "2020-02"]
    assert continued([spread], [february])[0].first == "2020-02"
    other = story("2020-03-팬데믹", "팬데믹", "코로나", "종식", "사태", first="2020-03")
    assert continued([other], [february]) == (other,), "it is about something else first"


def test_a_word_that_fell_does_not_go_on_in_a_story_that_rose() -> None:
    def of(role: str, label: str, *words: str) -> Story:
        made = story(f"{label}-{words[0]}", *words, first=label)
        return replace(made, words=tuple(replace(one, role=role) for one in made.words))

    fell = of("fallen", "2020-02", "사건", "피해자")
    rose = of("risen", "2020-03", "사건", "피해자", "n번방")
    assert continued([rose], [fell]) == (rose,)
    assert continued([replace(fell, first="2020-03")], [fell])[0].first == "2020-02"
    queue = story("2020-02-줄", "줄")
    masks = story("2020-03-공적마스크", "공적마스크", "줄", "약국")
    assert continued([masks], [queue]) == (masks,)


def test_a_saved_report_of_the_window_before_gives_its_ids(report, store, tmp_path) -> None:
    word = report.stories[0].words[0].word
    before = build_report(store, report.compared_with.id)
    going_on = story("2020-01-x", word, first="2020-01")
    storage.save(replace(before, stories=(going_on,)), tmp_path)
    again = build_report(store, report.snapshot.id, saved=tmp_path)
    assert next((one.id, one.first) for one in again.stories) == ("2020-01-x", "2020-01")
    assert again.stories[1:] == report.stories[1:]
    assert build_report(store, saved=tmp_path / "none").stories == report.stories


def test_typical_documents_hold_most_of_the_words(tmp_path) -> None:
    start = datetime(2020, 2, 1, tzinfo=UTC)
    rows = [
        ("방", "a", 3), ("방", "b", 5), ("방", "c", 20), ("n", "b", 5), ("n", "c", 20),
        ("성", "b", 5), ("성", "d", 25),
    ]  # fmt: skip
    table = pa.table(
        {
            "word": [word for word, *_ in rows],
            "source": ["뉴스"] * len(rows),
            "day": [18_293 + day for *_, day in rows],
            "hash": list(range(len(rows))),
            "url": [f"https://news.example/{url}" for _, url, _ in rows],
            "published": [start.timestamp() + 86_400 * day for *_, day in rows],
        },
        schema=EVIDENCE_SCHEMA,
    )
    store = EvidenceStore(tmp_path)
    store.add(table, "node-1")
    end = datetime(2020, 3, 1, tzinfo=UTC)
    found = sightings(story("x", "방", "n", "성"), store, start, end, n=2)
    assert [one.url[-1] for one in found.documents] == ["b", "c"]
    assert (found.first.day, found.last.day) == (6, 21)
    alone = sightings(story("x", "성"), store, start, end)
    assert [one.url[-1] for one in alone.documents] == ["d", "b"]
    none = sightings(story("x", "없다"), store, start, end)
    assert (none.documents, none.first, none.last) == ((), None, None)
