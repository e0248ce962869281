"""`yeoron trends moved --all` and `trends score`: the figures of all words that were compared."""

from __future__ import annotations

import csv
import io
import json
from itertools import pairwise
from pathlib import Path

import pytest

from embedding.snapshots.store import SnapshotStore

FIGURES = ("z", "p", "q", "shift", "count_before", "count")


@pytest.fixture(scope="module")
def store(planted, tmp_path_factory) -> SnapshotStore:
    plan = planted.Plan(fillers=200, extra=("2020",))
    return planted.make_store(str(tmp_path_factory.mktemp("scores")), plan)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Reports are kept here."""
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path))
    return tmp_path / "trends"


def rows_of(done) -> list[dict]:
    assert done.code == 0, done.err
    return json.loads(done.out)["rows"]


def listed(tmp_path: Path, *words: str) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("\n".join(words) + "\n", encoding="utf-8")
    return path


def test_all_words_begin_with_the_rows_of_the_report(yeoron, store) -> None:
    call = ("trends", "moved", "--snapshots", store.uri, "--json")
    every, first = rows_of(yeoron(*call, "--all")), rows_of(yeoron(*call, "-n", "50"))
    assert len(every) > 200 > len(first)
    assert [row["rank"] for row in every] == list(range(1, len(every) + 1))
    assert every[0]["word"] == "코로나"
    for one, other in zip(every, first, strict=False):
        assert {name: one[name] for name in ("word", *FIGURES)} == {
            name: other[name] for name in ("word", *FIGURES)
        }
    assert all(one["z"] >= other["z"] for one, other in pairwise(every))


def test_the_same_words_as_csv_and_as_lines(yeoron, store) -> None:
    call = ("trends", "moved", "--all", "--snapshots", store.uri)
    every = rows_of(yeoron(*call, "--json"))
    table = [*csv.DictReader(io.StringIO(yeoron(*call, "--csv").out))]
    assert [row["word"] for row in table] == [row["word"] for row in every]
    assert [float(row["z"]) for row in table] == pytest.approx([row["z"] for row in every])
    title, header, *lines = yeoron(*call).out.splitlines()
    assert title == "moved · 2020-02 against 2020-01"
    assert header.split() == ["rank", "z", "q", "shift", "mentions", "word"]
    assert len(lines) == len(every)
    assert lines[0].split()[0] == "1"


def test_named_words_have_the_same_figures_in_the_order_of_the_file(
    yeoron, store, tmp_path: Path
) -> None:
    call = ("--snapshots", store.uri, "--json")
    every = {row["word"]: row for row in rows_of(yeoron("trends", "moved", "--all", *call))}
    path = listed(tmp_path, "백신", "없는말", "코로나", "", "2020", "신천지")
    found = rows_of(yeoron("trends", "score", "--words", path, *call))
    assert [row["word"] for row in found] == ["백신", "없는말", "코로나", "2020", "신천지"]
    for row in found:
        reason = row.pop("reason")
        if row["word"] in every:
            assert reason is None
            assert row == every[row["word"]]
        else:
            assert row["z"] is None
            assert row["count"] is None
    reasons = {
        r["word"]: r["reason"] for r in rows_of(yeoron("trends", "score", "--words", path, *call))
    }
    assert reasons["없는말"] == "neither 2020-01 nor 2020-02 knows it"
    assert reasons["신천지"] == "2020-01 does not know it"
    assert reasons["2020"].startswith("a number, a sign or a mark")
    lines = yeoron("trends", "score", "--words", path, "--snapshots", store.uri).out
    assert "없는말: neither 2020-01 nor 2020-02 knows it" in lines


def test_two_windows_that_are_no_neighbours_are_compared(yeoron, store, tmp_path: Path) -> None:
    refs = store.list()
    call = ("trends", "score", "--words", listed(tmp_path, "코로나"), "--snapshots", store.uri)
    done = yeoron(*call, "--between", "2019-11", "2020-02", "--json")
    assert json.loads(done.out)["compared_with"]["id"] == refs[0].id
    assert rows_of(done)[0]["z"] > 3
    by_id = yeoron(*call, "--between", refs[0].id, "latest", "--json")
    assert by_id.out == done.out
    moved = ("trends", "moved", "--snapshots", store.uri, "--json")
    between = rows_of(yeoron(*moved, "--all", "--between", "2019-11", "2020-02"))
    assert between[0] == {k: v for k, v in rows_of(done)[0].items() if k != "reason"}
    before = rows_of(yeoron(*moved, "--between", "2019-11", "2020-01"))
    assert before[0]["word"] != "코로나"


def refused(yeoron, *call: object) -> str:
    done = yeoron("trends", *call)
    assert (done.code, done.out) == (2, "")
    assert done.err.count("\n") == 1
    return done.err


def test_what_cannot_be_scored_is_one_sentence(yeoron, store, tmp_path: Path) -> None:
    def score(path: Path, *more: str) -> str:
        return refused(yeoron, "score", "--words", path, "--snapshots", store.uri, *more)

    twice = listed(tmp_path, "코로나", "백신", "코로나")
    assert "line 3: '코로나' stands in line 1 too" in score(twice)
    assert "there is no such file" in score(tmp_path / "none.txt")
    assert "it holds no word" in score(listed(tmp_path, ""))
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in score(tmp_path / "bytes.txt")
    good = listed(tmp_path, "코로나")
    said = score(good, "--between", "2018-01", "2020-02")
    assert "'2018-01': no snapshot and no window of the store" in said
    assert "2019-12, 2020-01, 2020-02" in said
    assert "does not lie before" in score(good, "--between", "2020-02", "2019-11")
    last = store.list()[-1].id
    assert "not accepted with --between" in score(
        good, "--id", last, "--between", "2019-11", "2020-02"
    )


def test_a_withdrawn_window_is_named(yeoron, planted, tmp_path: Path) -> None:
    store = planted.make_store(str(tmp_path / "own"), planted.Plan(windows=3, fillers=80))
    gone = store.list()[0].id
    store.withdraw([gone], "spam")
    path = listed(tmp_path, "코로나")
    for name in ("2019-11", gone):
        call = ("score", "--words", path, "--snapshots", store.uri, "--between", name, "2020-01")
        assert f"snapshot {gone}: it was withdrawn" in refused(yeoron, *call)


def test_saved_figures_answer_until_they_are_stale(yeoron, planted, tmp_path, monkeypatch) -> None:
    from embedding.trends import report

    store = planted.make_store(str(tmp_path / "own"), planted.Plan(fillers=80))
    call = ("trends", "moved", "--all", "--snapshots", store.uri, "--json")
    computed = yeoron(*call).out
    built = []
    real = report.build_report
    monkeypatch.setattr(report, "build_report", lambda *a, **k: built.append(1) or real(*a, **k))
    assert yeoron("trends", "report", "--snapshots", store.uri).code == 0
    built.clear()
    assert yeoron(*call).out == computed
    assert built == []
    monkeypatch.setenv("YEORON_TRENDS__MIN_COUNT", "250")
    assert len(rows_of(yeoron(*call))) < len(json.loads(computed)["rows"])
    assert built == [1]
    monkeypatch.delenv("YEORON_TRENDS__MIN_COUNT")
    store.withdraw([store.list()[0].id], "spam")
    assert json.loads(yeoron(*call).out)["compared_with"]["label"] == "2020-01"
    assert built == [1, 1]
