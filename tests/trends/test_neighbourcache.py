"""Nearest words among the frequent ones, maps, two words together, any two windows."""

from __future__ import annotations

import numpy as np
import pytest

from embedding.kernel.errors import InputError
from embedding.trends.history import together
from embedding.trends.mapping import neighbour_map, scaled, turned
from embedding.trends.nearest import NeighbourCache
from embedding.trends.report import build_between, build_report


def test_with_all_words_frequent_they_are_the_nearest_of_all(store):
    snapshot = store.open()
    neighbour_cache = NeighbourCache(len(snapshot))
    for word in ("코로나", "확진", "마스크"):
        codes, cosines = neighbour_cache.nearest(snapshot, snapshot.index(word), 10)
        exact = snapshot.neighbours(word, 10)
        assert [neighbour_cache.names[code] for code in codes] == [name for name, _ in exact]
        assert cosines == pytest.approx([cosine for _, cosine in exact], abs=1e-5)


def test_only_frequent_words_are_named(store):
    snapshot = store.open()
    neighbour_cache = NeighbourCache(100)
    codes, _ = neighbour_cache.nearest(snapshot, snapshot.index("코로나"), 30)
    least = np.sort(np.asarray(snapshot.counts))[-100]
    counts = [
        snapshot.counts[snapshot.index(neighbour_cache.names[code])] for code in codes.tolist()
    ]
    assert len(counts) == 30
    assert min(counts) >= least


def test_a_row_is_found_with_any_guess(store):
    snapshot = store.open()
    row = snapshot.index("확진")
    assert [snapshot.index("확진", guess) for guess in (-1, 0, row, 10**9)] == [row] * 4
    assert snapshot.index("없는말", row) is None
    snapshot.release()
    assert snapshot.neighbours("확진", 1)
    assert np.array_equal(snapshot.read_vectors(np.array([row])), snapshot.vectors[[row]])


def test_a_plane_keeps_what_lies_in_a_plane_and_turns_back():
    rng = np.random.default_rng(3)
    angles = rng.uniform(0, 0.6, 8)
    flat = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1).astype(np.float32)
    places, kept = scaled(flat)
    assert kept == pytest.approx(1.0, abs=1e-4)
    assert places[0] == pytest.approx([0, 0])
    apart = np.linalg.norm(places[1:] - places[0], axis=1)
    assert apart == pytest.approx(np.linalg.norm(flat[1:] - flat[0], axis=1), abs=1e-3)
    mirrored = places @ np.array([[0.0, 1.0], [1.0, 0.0]])
    assert mirrored @ turned(mirrored, places) == pytest.approx(places, abs=1e-6)


def test_a_map_is_the_same_each_time_and_empty_for_unknown_words(store):
    assert neighbour_map(store, "확진") == neighbour_map(store, "확진")
    assert neighbour_map(store, "없는말").windows == ()


def test_a_word_comes_near_another_when_it_moves(store):
    points = together(store, "코로나", "바이러스")
    assert len(points) == len(store.list())
    assert points[-1].cosine > points[0].cosine + 0.2
    assert [point.cosine for point in together(store, "코로나", "없는말")] == [None] * len(points)


def test_the_window_before_gives_the_report_and_others_their_own(store):
    first, *_, before, last = (ref.id for ref in store.list())
    own, usual = build_between(store, before, last), build_report(store)
    assert [row.word for row in own.moved] == [row.word for row in usual.moved]
    assert build_between(store, first, last).compared_with.id == first
    with pytest.raises(InputError, match="does not lie before"):
        build_between(store, last, first)
