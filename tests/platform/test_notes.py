"""What is not in order is said in a sentence."""

from __future__ import annotations

from embedding.platform.notes import notes


def test_nothing_to_say_about_a_healthy_stream() -> None:
    report = {"sources": {"news": {"errors": {"duplicate": 3}, "last_error": ""}}, "full_waits": 0}
    assert notes({"nodes": {"n0": {"state": "active", "report": report}}}) == []


def test_errors_full_queues_and_lost_nodes_are_named() -> None:
    report = {
        "sources": {"news": {"errors": {"timeout": 2}, "last_error": "http://x: no answer."}},
        "full_waits": 4,
        "queue_capacity": 200_000,
        "last_error": "server away.",
        "text": {"given_up": 7, "left_out": {"http://y/1": "preparing it raised ValueError"}},
    }
    found = notes({"nodes": {"n0": {"state": "gone", "last_seen_s": 9.0, "report": report}}})
    text = "\n".join(found)
    for part in (
        "9 s",
        "2 timeout",
        "http://x",
        "200,000",
        "4 times",
        "server away",
        "replay_ratio",
        "7 texts could not be prepared and were left out",
        "http://y/1 (preparing it raised ValueError)",
    ):
        assert part in text
    assert len(found) == 5


def test_a_server_without_nodes_is_fine() -> None:
    assert notes({}) == []
