from __future__ import annotations

from yeoron_simweb.world import PastArticles


def test_a_part_that_nobody_reads_does_not_count() -> None:
    backlog = PastArticles()
    backlog.publish("board", "a")
    assert backlog.count() == 0
    backlog.read("board")
    assert backlog.count() == 1


def test_a_fetched_document_does_not_count_and_a_second_fetch_is_counted_as_such() -> None:
    backlog = PastArticles()
    backlog.read("board")
    backlog.publish("board", "a")
    backlog.publish("board", "b")
    backlog.fetch("board", "a")
    backlog.fetch("board", "a")
    assert backlog.count() == 1
    assert backlog.fetches["a"] == 2


def test_a_document_that_was_fetched_before_it_was_published_does_not_count() -> None:
    backlog = PastArticles()
    backlog.read("board")
    backlog.fetch("board", "a")
    backlog.publish("board", "a")
    assert backlog.count() == 0
