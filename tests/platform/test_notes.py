"""What is not in order is said in a sentence."""

from __future__ import annotations

from embedding.platform.notes import notes


def test_nothing_to_say_about_a_healthy_stream() -> None:
    report = {"sources": {"news": {"errors": {"duplicate": 3}, "last_error": ""}}, "full_waits": 0}
    assert notes({"nodes": {"n0": {"state": "active", "report": report}}}) == []


def test_errors_full_queues_and_lost_nodes_are_named() -> None:
    report = {
        "sources": {
            "news": {
                "errors": {"timeout": 2, "undated": 3},
                "dated": {"guess": 4, "metadata": 9},
                "last_error": "http://x: no answer.",
            }
        },
        "full_waits": 4,
        "queue_capacity": 200_000,
        "last_error": "server away.",
        "text": {"given_up": 7, "left_out": {"http://y/1": "preparing it raised ValueError"}},
    }
    found = notes({"nodes": {"n0": {"state": "gone", "last_seen_s": 9.0, "report": report}}})
    text = "\n".join(found)
    for part in (
        "9 s",
        "4 date_guess, 2 timeout, 3 undated. Last: http://x",
        "http://x",
        "200,000",
        "4 times",
        "server away",
        "replay_ratio",
        "7 texts could not be read and were left out",
        "http://y/1 (preparing it raised ValueError)",
    ):
        assert part in text
    assert len(found) == 5


def of_texts(text: dict[str, object]) -> list[str]:
    return notes({"nodes": {"n0": {"state": "active", "report": {"text": text}}}})


def test_it_is_said_which_of_many_texts_left_out_are_named() -> None:
    left_out = {"a.jsonl:7": "not UTF-8 text"}
    (some,) = of_texts({"given_up": 2, "left_out": left_out})
    assert some.endswith("left out, of which the last 1 are named: a.jsonl:7 (not UTF-8 text).")
    assert "named" not in of_texts({"given_up": 1, "left_out": left_out})[0]


def test_a_server_without_nodes_is_fine() -> None:
    assert notes({}) == []


def ref(month: int, *lacks: str) -> dict[str, object]:
    start, end = f"2020-{month:02}-01T00:00:00+00:00", f"2020-{month + 1:02}-01T00:00:00+00:00"
    return {"window_start": start, "window_end": end, "lacks": list(lacks)}


def test_what_the_latest_windows_lack_is_said_and_how_many_more_do() -> None:
    refs = [ref(month, f"month {month} lacks it.") for month in range(1, 7)]
    assert notes({"snapshots": refs}) == [
        *(f"month {month} lacks it." for month in (4, 5, 6)),
        "3 more windows lack something; `yeoron snapshot list` names them.",
    ]


def test_of_a_window_that_was_amended_the_last_snapshot_counts() -> None:
    assert notes({"snapshots": [ref(1, "january."), ref(1), ref(2)]}) == []
    of_before = {name: value for name, value in ref(3).items() if name != "lacks"}
    assert notes({"snapshots": [of_before]}) == [], "a server that does not say it"


def test_for_whom_a_window_waits_and_what_came_after_its_cut_is_said() -> None:
    windows = {"2020-01": {"late_documents": 3}, "2020-02": {"late_documents": 0}, "2020-03": {}}
    waits = {"2020-03": "window 2020-03 waits for n0 to hand in how it used words."}
    assert notes({"windows": windows, "waits": waits}) == [
        "window 2020-03 waits for n0 to hand in how it used words.",
        (
            "2020-01: 3 documents came after it was cut and are not in it. "
            "`yeoron snapshot amend 2020-01` has it read again."
        ),
    ]
