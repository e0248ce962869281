"""Log-odds of document frequencies, spread over sources, and counting."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from embedding.kernel.records import WordCounts
from embedding.trends import arrivals
from embedding.trends.arrivals import emergence, log_odds, source_spread, usual_change
from embedding.trends.frequency import Frequency, add


def frequency(table: dict[str, dict[str, int]], read: dict[str, int]) -> Frequency:
    """documents by word and source; every document holds the word twice."""
    rows = [(w, s, n) for w, by_source in table.items() for s, n in by_source.items()]
    return Frequency.of(
        WordCounts(
            words=[w for w, _, _ in rows],
            sources=[s for _, s, _ in rows],
            windows=np.zeros(len(rows), np.int64),
            counts=np.asarray([2 * n for _, _, n in rows], np.int64),
            documents=np.asarray([n for _, _, n in rows], np.int64),
        ),
        {source: 50 * n for source, n in read.items()},
        read,
    )


READ = {"뉴스": 1000, "댓글": 1000}


def judged(before, after, words, read_before=READ, read_after=READ):
    return emergence(
        frequency(after, read_after), frequency(before, read_before), words, prior_documents=100
    )


def test_a_rise_in_all_sources_ranks_above_the_same_rise_in_one():
    before = {"고루": {"뉴스": 10, "댓글": 10}, "혼자": {"뉴스": 20}}
    after = {"고루": {"뉴스": 100, "댓글": 100}, "혼자": {"뉴스": 200}}
    rise = judged(before, after, ["고루", "혼자"])
    assert rise.score[0] > rise.score[1] > 0
    assert rise.spread[0] == pytest.approx(1.0)
    assert rise.spread[1] == pytest.approx(0.5)


def test_a_changed_mix_of_sources_is_no_rise():
    """The word keeps its share in each source; only one source was read more."""
    before = {"말": {"뉴스": 200, "댓글": 10}}
    after = {"말": {"뉴스": 800, "댓글": 10}}
    rise = judged(before, after, ["말"], READ, {"뉴스": 4000, "댓글": 1000})
    assert abs(rise.z[0]) < 0.5
    assert rise.p[0] > 0.5


def test_a_fall_is_negative_and_as_sure_as_the_rise():
    table0, table1 = {"말": {"뉴스": 20, "댓글": 20}}, {"말": {"뉴스": 90, "댓글": 90}}
    up, down = judged(table0, table1, ["말"]), judged(table1, table0, ["말"])
    assert up.z[0] == pytest.approx(-down.z[0])
    assert up.z[0] > 4


def test_rare_words_need_more_than_a_ratio():
    before = {"드묾": {"뉴스": 1}, "흔함": {"뉴스": 100}}
    after = {"드묾": {"뉴스": 4}, "흔함": {"뉴스": 400}}
    rise = judged(before, after, ["드묾", "흔함"])
    assert rise.z[1] > 3 * rise.z[0]


def test_words_that_all_fluctuate_are_not_all_sure():
    rng = np.random.default_rng(0)
    words = [f"말{i}" for i in range(400)]
    base = rng.integers(20, 200, len(words))
    swing = np.exp(rng.standard_normal(len(words)) * 0.5)
    before = {w: {"뉴스": int(n)} for w, n in zip(words, base, strict=True)}
    after = {w: {"뉴스": int(n * s)} for w, n, s in zip(words, base, swing, strict=True)}
    rise = judged(before, after, words)
    assert rise.inflation > 2
    assert (rise.q <= 0.05).mean() < 0.02


def test_sources_that_share_no_window_are_pooled():
    rise = judged(
        {"말": {"뉴스": 10}}, {"말": {"댓글": 300}}, ["말"], {"뉴스": 1000}, {"댓글": 1000}
    )
    assert rise.pooled
    assert rise.z[0] > 3


def test_log_odds_by_hand():
    ratio, variance = log_odds(
        np.asarray([[30]]), np.asarray([100]), np.asarray([[10]]), np.asarray([100]),
        np.asarray([[2.0]]), 10.0,
    )  # fmt: skip
    assert ratio[0, 0] == pytest.approx(np.log(32 / 78) - np.log(12 / 98))
    assert variance[0, 0] == pytest.approx(1 / 32 + 1 / 12 + 1 / 78 + 1 / 98)


def test_spread_counts_rates_and_ignores_silent_sources():
    held = np.asarray([[10.0, 1.0, 0.0], [5.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    spread = source_spread(held, np.asarray([1000.0, 100.0, 0.0]))
    assert spread[0] == pytest.approx(1.0)
    assert spread[1] == pytest.approx(0.5)
    assert np.isfinite(spread).all()


def test_frequency_sums_windows_and_takes_unknown_words_as_zero():
    by_source = WordCounts(
        words=pa.array(["가", "나", "가"]).dictionary_encode(),
        sources=pa.array(["b", "a", "b"]).dictionary_encode(),
        windows=np.asarray([0, 0, 9]),
        counts=np.asarray([3, 1, 4]),
        documents=np.asarray([2, 1, 3]),
    )
    one = Frequency.of(by_source, {"a": 10, "b": 20}, {"a": 1, "b": 5, "c": 4})
    assert one.sources == ("a", "b", "c")
    counts, documents = one.take(["가", "다", "나"], ["b", "a", "없음"])
    assert counts.tolist() == [[7, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert documents.tolist() == [[5, 0, 0], [0, 0, 0], [0, 1, 0]]
    assert one.totals(["b", "없음"])[1].tolist() == [5, 0]
    assert one.rate(["가", "다"]).tolist() == [500.0, 0.0]


def test_windows_add_up():
    first = frequency({"가": {"뉴스": 3}}, {"뉴스": 10})
    second = frequency({"가": {"댓글": 2}, "나": {"뉴스": 1}}, {"뉴스": 5, "댓글": 6})
    total = add([first, second])
    assert total.take(["가", "나"], ["뉴스", "댓글"])[1].tolist() == [[3, 2], [1, 0]]
    assert total.totals(["뉴스", "댓글"])[1].tolist() == [15, 6]
    assert add([first]) is first


def test_a_window_without_anything_is_empty():
    assert frequency({}, {}).empty
    assert frequency({}, {"뉴스": 0}).empty
    assert not frequency({"가": {"뉴스": 1}}, {"뉴스": 1}).empty


def test_the_usual_rate_is_that_of_the_windows_before_in_the_sources_of_now() -> None:
    before = frequency({"말": {"뉴스": 10, "판": 9}}, {"뉴스": 100, "판": 900})
    now = frequency({"말": {"뉴스": 30, "새": 8}}, {"뉴스": 300, "판": 100, "새": 400})
    # 300 × 10 % and 100 × 1 %; a source that was not read before as all did: 400 × 1.9 %.
    assert before.usual_rate(["말"], now) == pytest.approx([(30 + 1 + 7.6) / 800 * 1000])


def lengths(growth: float) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
    """600 words of all frequencies in documents that become longer; two change besides."""
    random = np.random.default_rng(7)
    shares = np.exp(random.uniform(np.log(0.01), np.log(0.5), 600))
    later = 1.0 - (1.0 - shares) ** growth
    names = [f"말{i}" for i in range(600)]
    before, after = (
        {name: {"뉴스": int(n)} for name, n in zip(names, random.binomial(2000, p), strict=True)}
        for p in (shares, later)
    )
    before |= {"오름": {"뉴스": 100}, "내림": {"뉴스": 300}, "그대로": {"뉴스": 300}}
    after |= {"오름": {"뉴스": 500}, "내림": {"뉴스": 120}, "그대로": {"뉴스": 310}}
    return before, after


def test_longer_documents_are_no_rise_of_all_words_and_no_fall_of_some(monkeypatch):
    before, after = lengths(1.8)
    words = [*before]
    read = {"뉴스": 2000}
    rise = judged(before, after, words, read, read)
    sure = {words[at] for at in np.flatnonzero((rise.q <= 0.05) & (rise.z > 0)).tolist()}
    fell = {words[at] for at in np.flatnonzero((rise.q <= 0.05) & (rise.z < 0)).tolist()}
    assert "오름" in sure
    assert "내림" in fell
    assert len(sure | fell) <= 4, "and hardly any of 600 others"
    assert rise.z[words.index("그대로")] == 0.0, "it rose less than usual words, and has not fallen"
    monkeypatch.setattr(arrivals, "usual_change", lambda change, *_: np.zeros(len(change)))
    bare = judged(before, after, words, read, read)
    assert int((bare.q <= 0.05).sum()) > 100
    monkeypatch.undo()
    plain = judged(*lengths(1.0), words, read, read)
    assert {words[at] for at in np.flatnonzero(plain.q <= 0.05).tolist()} >= {"오름", "내림"}


def test_the_usual_change_is_that_of_words_of_like_frequency():
    share = np.linspace(0.0, 1.0, 1001)
    change = np.where(share < 0.5, 0.2, -0.3)
    change[7], change[990] = 9.0, -9.0
    found = usual_change(change, share, np.ones(1001, bool))
    assert found[:250] == pytest.approx(0.2)
    assert found[-250:] == pytest.approx(-0.3)
    few = usual_change(change, share, np.arange(1001) < 20)
    assert not few.any()
    assert len(usual_change(np.zeros(0), np.zeros(0), np.zeros(0, bool))) == 0
