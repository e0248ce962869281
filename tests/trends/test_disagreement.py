"""Which words a source uses differently than all others of a window."""

from __future__ import annotations

import pytest

from embedding.kernel.errors import InputError
from embedding.snapshots.store import SnapshotStore
from embedding.trends.config import TrendsConfig
from embedding.trends.contrast import disagreement, source_contrast

SOURCES = ("가", "나", "다", "라")
ODD = 30


@pytest.fixture
def published(planted, tmp_path):
    """A store of one window in which so many sources were read."""

    def publish(odd: str | None, sources: tuple[str, ...] = SOURCES) -> SnapshotStore:
        store = SnapshotStore(tmp_path / f"store-{odd}-{len(sources)}")
        (data,) = planted.stream(planted.Plan(windows=1, fillers=120))
        n, dim = data.vectors.shape
        wrong = None if odd is None else (odd, ODD)
        store.publish(data, planted.source_usage(n, dim, sources, wrong))
        return store

    return publish


def test_each_word_is_listed_with_the_source_that_stands_out(published):
    found = disagreement(published("다"))
    word = published("다").open().words[ODD]
    assert [(one.source, one.use.word) for one in found.uses] == [("다", word)]
    assert found.sources == SOURCES
    assert found.compared > 50


def test_looking_at_more_sources_finds_no_more_by_chance(published):
    store = published("다")
    one = source_contrast(store, "다", None).rows[0]
    (found,) = disagreement(store).uses
    assert found.use.q == pytest.approx(one.q * len(SOURCES))


def test_two_sources_are_one_comparison(published):
    store = published("나", ("가", "나"))
    (found,) = disagreement(store).uses
    assert found.use.q == source_contrast(store, "가", None).rows[0].q


def test_sources_that_write_alike_disagree_on_nothing(published):
    assert disagreement(published(None)).uses == ()


def test_one_source_cannot_disagree(published):
    with pytest.raises(InputError, match="fewer than two sources"):
        disagreement(published(None, ("가",)), TrendsConfig())
