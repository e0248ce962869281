"""Taking words, sources and old snapshots out of a store, over every kind of place."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import pytest

from embedding.kernel.errors import SnapshotError
from embedding.kernel.records import Phrase

WORD, SOURCE = "마스크", "뉴스"


def test_a_word_is_erased_and_the_snapshot_keeps_its_id(store, make):
    phrase = Phrase("마스크팩", (WORD, "팩"), 1.0, 1.0, 0)
    first, second = store.publish(make(month=1)), store.publish(make(phrases=(phrase,)))
    without = store.publish(make(month=3, words=("말", "글")))
    assert store.holding(word=WORD) == sorted([first.id, second.id])
    store.erase([first.id, second.id], word=WORD)
    assert store.holding(word=WORD) == []
    assert [ref.id for ref in store.list()] == [first.id, second.id, without.id]
    snapshot = store.open(second.id)
    snapshot.verify()
    assert snapshot.index(WORD) is None
    assert snapshot.index("방역") == 7, "rows keep their places"
    assert WORD not in snapshot.by_source.words
    assert snapshot.phrases == {}
    assert store.broken() == {}


def test_a_word_is_erased_from_the_counts_of_windows_before(store, make):
    data = make()
    ref = store.publish(replace(data, earlier=make(month=1).by_source))
    store.erase([ref.id], word=WORD)
    snapshot = store.open(ref.id)
    snapshot.verify()
    assert snapshot.earlier is not None
    assert WORD not in snapshot.earlier.words.to_pylist()
    january = make(month=1).window
    assert snapshot.source_counts(WORD, january) == {}
    assert snapshot.source_counts("방역", january) == {"청원": (8, 1, 0), "뉴스": (16, 1, 0)}


def test_a_source_is_erased_after_a_word(store, make):
    ref = store.publish(make())
    store.erase([ref.id], word=WORD)
    store.erase([ref.id], source=SOURCE)
    snapshot = store.open(ref.id)
    snapshot.verify()
    assert dict(snapshot.manifest.tokens) == {"청원": 36}
    assert set(snapshot.by_source.sources) == {"청원"}
    assert snapshot.index(WORD) is None
    assert store.holding(word=WORD) == store.holding(source=SOURCE) == []


def test_erasing_what_is_not_there_changes_nothing(store, make):
    ref = store.publish(make())
    before = store.manifest(ref.id)
    store.erase([ref.id], word="없는말")
    assert store.manifest(ref.id) == before
    with pytest.raises(SnapshotError, match=r"2020-02-00000000: manifest\.json"):
        store.erase(["2020-02-00000000"], word=WORD)


def test_a_withdrawn_snapshot_is_erased_from_too(store, make):
    ref = store.publish(make())
    store.withdraw([ref.id], "a test")
    assert store.holding(word=WORD) == [ref.id]
    store.erase([ref.id], word=WORD)
    assert store.holding(word=WORD) == []


def test_publishing_again_brings_nothing_back(store, make):
    ref = store.publish(make())
    store.erase([ref.id], word=WORD)
    assert store.publish(make()).id == ref.id
    assert store.open(ref.id).index(WORD) is None


def test_old_snapshots_go_but_the_newest_and_those_that_are_kept(store, make):
    ids = [store.publish(make(month=month)).id for month in (1, 2, 3, 4)]
    store.withdraw([ids[1]], "a test")
    assert store.expire(time.time() - 3600, ()) == []
    assert store.expire(math.inf, {ids[0]}, dry=True) == ids[1:3]
    assert len(store.list()) == 3, "a dry run removes nothing"
    assert store.expire(math.inf, {ids[0]}) == ids[1:3]
    assert [ref.id for ref in store.list()] == [ids[0], ids[3]]
    assert store.broken() == {}
    assert store.expire(math.inf, {ids[0]}) == []


def test_sweeping_a_whole_store_changes_nothing(store, make):
    store.sweep()
    ref = store.publish(make())
    store.erase([ref.id], word=WORD)
    store.sweep()
    store.open(ref.id).verify()
