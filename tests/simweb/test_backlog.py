from __future__ import annotations

from yeoron_simweb.backlog import PastArticles


def test_a_part_that_nobody_reads_does_not_count() -> None:
    backlog = PastArticles(10)
    backlog.publish("board", "a", 1)
    assert backlog.count(2) == 0
    backlog.read("board", 2)
    assert backlog.count(2) == 1


def test_a_fetched_document_does_not_count_and_a_second_fetch_is_counted_as_such() -> None:
    backlog = PastArticles(10)
    backlog.read("board", 0)
    backlog.publish("board", "a", 1)
    backlog.publish("board", "b", 1)
    backlog.fetch("board", "a", 2)
    backlog.fetch("board", "a", 3)
    assert backlog.count(3) == 1
    assert backlog.fetches["a"] == 2


def test_a_reader_that_died_is_waited_for_only_so_long() -> None:
    backlog = PastArticles(10)
    backlog.read("board", 0)
    backlog.publish("board", "a", 100)
    assert backlog.count(109) == 1
    assert backlog.count(111) == 0
    backlog.publish("board", "b", 112)
    backlog.fetch("board", "b", 113)
    assert backlog.count(114) == 1, "it reads again, so the older document counts again"


def test_a_skipped_document_is_given_up_in_the_end() -> None:
    backlog = PastArticles(10)
    backlog.read("board", 0)
    backlog.publish("board", "skipped", 0)
    for second in range(1, 60):
        backlog.publish("board", f"{second}", second)
        backlog.fetch("board", f"{second}", second)
    assert backlog.count(60) == 0
    assert backlog.given_up["board"] == 1
