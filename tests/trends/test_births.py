"""Which words are born, and when: on windows whose documents are known."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from embedding.kernel.records import SnapshotData, Window, WindowUnit, WordCounts
from embedding.snapshots.store import SnapshotStore
from embedding.trends.arrivals import _waiting, births
from embedding.trends.config import TrendsConfig
from embedding.trends.history import word_history
from embedding.trends.material import gather
from embedding.trends.report import build_report

SOURCE, READ = "글판", 1000
USUAL = [f"말{i}" for i in range(80)]


def publish(
    uri: str, use: dict[str, list[int]], late: str = "", *, told: bool = True
) -> SnapshotStore:
    """A window for each entry of `use`: documents that hold the word; usual words hold 50 each.

    late  a word that has its row from the second window on; told: its snapshot counts it in the
          first
    """
    store, parent = SnapshotStore(uri), None
    windows = len(next(iter(use.values())))
    rng = np.random.default_rng(0)
    for at in range(windows):
        held = {**{w: int(rng.poisson(50)) for w in USUAL}, **{w: n[at] for w, n in use.items()}}
        held = {word: n for word, n in held.items() if n and (at or word != late)}
        words, n = list(held), len(held)
        window = Window.holding(datetime(2001, at + 1, 5, tzinfo=UTC), WindowUnit.MONTH)
        vectors = rng.normal(size=(n, 8)).astype(np.float32)
        counts = np.array(list(held.values()))
        data = SnapshotData(
            window=window,
            words=words,
            ids=np.array([[*USUAL, *use].index(word) for word in words]),
            counts=counts,
            last_seen=np.full(n, window.start.timestamp()),
            vectors=vectors,
            contexts=vectors,
            by_source=WordCounts(
                words, [SOURCE] * n, np.full(n, int(window.start.timestamp())), counts, counts
            ),
            tokens={SOURCE: 10 * READ},
            documents={SOURCE: READ},
            parent=parent,
            earlier=_first(use[late][0], late) if late and told and at == 1 else None,
        )
        parent = store.publish(data).id
    return store


def _first(n: int, word: str) -> WordCounts:
    """Counts of a word in the first window."""
    start = int(datetime(2001, 1, 1, tzinfo=UTC).timestamp())
    return WordCounts([word], [SOURCE], np.array([start]), np.array([n]), np.array([n]))


def born_in(store: SnapshotStore, word: str, config: TrendsConfig | None = None) -> list[int]:
    refs = store.list()
    return [
        at
        for at in range(1, len(refs))
        if word in births(gather(store, refs[at].id), config or TrendsConfig(), 1.0).words
    ]


@pytest.mark.parametrize(
    ("documents", "windows"),
    [
        ([0, 0, 0, 9, 20, 30, 20, 20], [3]),  # at once
        ([0, 0, 1, 0, 2, 4, 20, 30], [5]),  # here and there, then it rises
        ([0, 0, 0, 2, 0, 2, 0, 0], []),  # never enough
        ([1, 0, 0, 0, 0, 9, 9, 9], []),  # the oldest window used it: nobody knows since when
        ([9, 9, 9, 0, 0, 9, 9, 9], []),  # back again
    ],
)
def test_a_word_is_born_once_when_enough_documents_hold_it(tmp_path, documents, windows) -> None:
    store = publish(str(tmp_path), {"새말": documents})
    assert born_in(store, "새말") == windows


def test_a_word_first_read_long_ago_is_not_born(tmp_path) -> None:
    store = publish(str(tmp_path), {"새말": [0, 1, 0, 0, 0, 0, 9, 9]})
    assert born_in(store, "새말", TrendsConfig().model_copy(update={"born_windows": 3})) == []
    assert born_in(store, "새말", TrendsConfig().model_copy(update={"born_windows": 5})) == [6]


@pytest.mark.parametrize("told", [True, False])
def test_a_word_that_waited_for_its_row_is_not_born_where_a_later_snapshot_counts_it(
    tmp_path, told
) -> None:
    use = {"감염": [2, 60, 60]}
    store = publish(str(tmp_path), use, "감염", told=told)
    report = build_report(store, store.list()[1].id)
    rows = {name: [row.word for row in report.significant(name)] for name in ("born", "risen")}
    assert rows == ({"born": [], "risen": ["감염"]} if told else {"born": ["감염"], "risen": []})
    points = word_history(store, "감염").points
    assert [point.documents for point in points] == [2 if told else 0, 60, 60]
    assert [gather(store).past[at].documents_of(["감염"]).tolist() for at in (0, 1)] == [
        [2 if told else 0],
        [60],
    ]


def test_mentions_before_a_row_are_counted_once(tmp_path) -> None:
    """Of five mentions before the second window its snapshot counts two, in the first one."""
    store = publish(str(tmp_path / "one"), {"감염": [2, 60]}, "감염")
    one = store.open(store.list()[1].id)
    more = np.where(np.array(one.words) == "감염", 5, 0)
    data = {name: getattr(one, name) for name in ("words", "ids", "last_seen", "by_source")}
    ref = store.publish(
        SnapshotData(
            **data,
            window=one.manifest.as_window(),
            counts=np.asarray(one.counts) + more,
            vectors=one.vectors,
            contexts=one.contexts,
            tokens=one.manifest.tokens,
            documents=one.manifest.documents,
            parent=one.manifest.parent,
            config={"server": {"min_count": 9}},
            earlier=one.earlier,
        )
    )
    material = gather(store, ref.id)
    assert _waiting(["감염"], material, 3).tolist() == [3]


def test_what_rises_ranks_before_what_trickles_in(tmp_path) -> None:
    use = {"솟음": [0, 0, 1, 1, 1, 12], "방울": [0, 1, 1, 1, 1, 1], "한꺼번": [0, 0, 0, 0, 0, 30]}
    report = build_report(publish(str(tmp_path), use))
    assert [row.word for row in report.born] == ["한꺼번", "솟음", "방울"]
    rows = {row.word: row for row in report.born}
    assert rows["한꺼번"].significant
    assert rows["솟음"].significant
    assert not rows["방울"].significant
    assert not {row.word for row in report.risen} & set(use)


def test_a_word_of_the_model_that_no_window_counted_is_not_born(planted, tmp_path) -> None:
    """As `test_run_ahead.py`, with a window between."""
    stream = planted.stream(planted.Plan(windows=4, born={"신천지": ("바이러스", 3)}))
    one = stream[0]
    known = replace(
        one,
        words=[*one.words, "신천지"],
        ids=np.append(one.ids, 10_000),
        counts=np.append(one.counts, 1_000_000),
        last_seen=np.append(one.last_seen, one.last_seen[-1]),
        vectors=np.vstack([one.vectors, one.vectors[:1]]),
        contexts=np.vstack([one.contexts, one.contexts[:1]]),
    )
    store, parent = SnapshotStore(str(tmp_path)), None
    for data in (known, *stream[1:]):
        parent = store.publish(replace(data, parent=parent)).id
    assert "신천지" not in [row.word for row in build_report(store).born]
