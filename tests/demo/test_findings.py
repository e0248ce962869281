"""The end of a demo shows findings and only findings, with how sure they are."""

from __future__ import annotations

from dataclasses import replace

from embedding.snapshots.store import SnapshotStore
from embedding.trends.config import TrendsConfig
from embedding.trends.report import build_report
from embedding.trends.rows import Story, StoryWord
from yeoron_demo.summary import (
    STORIES,
    listed,
    nothing_else,
    of_report,
    of_sources,
    what_happened,
)

SOURCES = ("뉴스", "글판", "댓글")


def published(uri: str, planted, odd: int | None) -> SnapshotStore:
    """A window in which one source uses the word of row `odd` in its own way."""
    store = SnapshotStore(uri)
    (data,) = planted.stream(planted.Plan(windows=1, fillers=120))
    n, dim = data.vectors.shape
    usage = planted.source_usage(n, dim, SOURCES, None if odd is None else (SOURCES[0], odd))
    store.publish(data, usage)
    return store


def test_what_is_not_sure_is_not_listed(planted, tmp_path) -> None:
    report = build_report(planted.make_store(str(tmp_path)), "latest", TrendsConfig())
    assert report.born
    assert report.moved
    sure = replace(report.born[0], significant=True, q=1e-9)
    perhaps = replace(report.born[0], word="혹시", significant=False, q=0.2)
    found = of_report(replace(report, moved=(perhaps,), born=(sure, perhaps)))
    assert found["moved"] == []
    assert found["born"] == [{"word": sure.word, "q": 1e-9}]
    assert found["compared"]["moved"] == report.ranked["moved"] > 0

    assert found["stories"] == of_report(report)["stories"]

    lines = nothing_else({"trends": [found], "contrasts": []})
    assert lines[0] == "No word is surely used differently by one of the sources."
    assert f"{report.ranked['moved']:,} comparisons" in lines[1]


def test_what_happened_is_told_by_stories(planted, tmp_path) -> None:
    report = build_report(planted.make_store(str(tmp_path)), "latest", TrendsConfig())
    words = tuple(
        StoryWord(word, role, 0.0004, 10, 1_200)
        for word, role in (("나침반", "moved"), ("버스", "born"))
    )
    story = Story("2020-02-나침반", "2020-02", words, 0.0004, True, 1_200, 14, ("뉴스",))
    few = replace(story, voices=2, q=0.02)
    assert what_happened([replace(report, stories=())]) == []
    assert what_happened([replace(report, stories=(story, few))]) == [
        report.snapshot.label,
        "   나침반 · 버스   q < 0.001",
        "      changed in meaning: 나침반",
        "      new: 버스",
        "      since 2020-02; 1,200 documents by 14 authors or more; 뉴스",
        "   나침반 · 버스   q 0.020",
        "      changed in meaning: 나침반",
        "      new: 버스",
        "      since 2020-02; 1,200 documents by few authors; 뉴스",
    ]
    lines = what_happened([replace(report, stories=(story,) * (STORIES + 2))])
    assert lines[-1] == f"   2 more: yeoron trends stories --id {report.snapshot.id}"


def test_more_words_than_fit_are_counted() -> None:
    rows = [{"word": f"말{i}", "q": 0.0123} for i in range(5)]
    assert listed(rows, 2) == "말0 (q 0.012), 말1 (q 0.012), 3 more"
    assert listed([], 2) == "–"


def test_sources_that_differ_are_named_with_the_word(planted, tmp_path) -> None:
    store = published(str(tmp_path / "odd"), planted, 30)
    word = store.open("latest").words[30]
    found = of_sources(store, TrendsConfig())
    assert [(row["word"], row["source"]) for row in found] == [(word, "뉴스")]
    lines = nothing_else({"trends": [], "contrasts": found})
    assert lines[0].startswith(f"뉴스 uses differently from all others: {word} (q ")
    assert of_sources(published(str(tmp_path / "alike"), planted, None), TrendsConfig()) == []
