"""`yeoron trends` reads finished reports and compares nothing then; its sentences agree."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from embedding.commands import trends
from embedding.trends import report, storage
from embedding.trends.config import TrendsConfig
from embedding.trends.rows import RANKINGS
from incomplete import incomplete_store


@pytest.fixture
def store(planted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path / "home"))
    return planted.make_store(str(tmp_path / "own"), planted.Plan(fillers=80))


def test_a_finished_report_is_shown_without_comparing_anything(yeoron, store, monkeypatch) -> None:
    calls = [
        ("trends", command, "--snapshots", store.uri)
        for command in ("stories", "moved", "born", "risen", "fallen")
    ]
    computed = [yeoron(*call) for call in calls]
    assert yeoron("trends", "report", "--all", "--snapshots", store.uri).code == 0
    for command in ("stories", "moved", "born"):
        assert needless(command, store.uri) == set(), command
    monkeypatch.setattr(report, "build_report", None)
    for call, before in zip(calls, computed, strict=True):
        read = yeoron(*call)
        assert read.code == 0, read.err
        assert read.err == ""
        assert read.out.splitlines()[0] == before.out.splitlines()[0]
        assert yeoron(*call, "--json").code == 0


def test_what_lasts_says_why_on_standard_error(yeoron, store, monkeypatch) -> None:
    """The moment after which it is said is no part of the answer: here it is at once."""
    monkeypatch.setattr(trends, "QUIET_S", 0.0)
    call = ("trends", "moved", "--snapshots", store.uri, "--json")
    done = yeoron(*call)
    assert "There is no finished report" in done.err
    assert done.out.startswith("{")
    assert "one's choice" in yeoron(*call, "--between", "2019-11", "2020-02").err


MODULES = """
import sys
from embedding import cli
sys.argv = ["yeoron", "trends", sys.argv[1], "--snapshots", sys.argv[2]]
try:
    cli.main()
except SystemExit:
    print("modules:", *sys.modules)
"""
NEEDLESS = {
    *("scipy", "pandas", "numba", "sqlalchemy", "httpx", "torch", "fastapi", "babel"),
    *("embedding.trends.report", "embedding.trends.permutation", "embedding.trends.moved"),
    *("embedding.trends.dating", "embedding.trends.history", "embedding.trends.pair"),
}


def needless(command: str, store: str) -> set[str]:
    """What a process imports that it does not need to show a finished report."""
    done = subprocess.run(
        [sys.executable, "-c", MODULES, command, store],
        capture_output=True,
        text=True,
        check=True,
        timeout=170,
    )
    (line,) = [one for one in done.stdout.splitlines() if one.startswith("modules:")]
    return set(line.split()) & NEEDLESS


def test_rankings_and_stories_agree_on_the_last_finding(yeoron, store, tmp_path) -> None:
    """Found by an operator: "no window has a finding" stood against "the last one is April"."""
    config, folder = TrendsConfig(), tmp_path / "home" / "trends"
    for ref, kept in zip(store.list(), ("", "", "risen", ""), strict=True):
        found = report.build_report(store, ref.id, config)
        rows = dict.fromkeys(RANKINGS, ())
        if kept:
            (first, *_) = report.build_report(store).risen
            rows[kept] = (replace(first, q=0.001, significant=True),)
        storage.save(replace(found, stories=(), **rows), folder)
    january = store.list()[2].id
    of = f"--snapshots {store.uri} --id {january}"
    expected = {
        "stories": f"The last window with a finding is 2020-01 (1): yeoron trends stories {of}",
        "risen": "The last window with a word used more often is 2020-01 (1): "
        f"yeoron trends risen {of}",
        "moved": "No window before 2020-02 has a word changed in meaning.\nThe last one with "
        f"another finding is 2020-01 (1): yeoron trends stories {of}",
    }
    for name, sentences in expected.items():
        said = yeoron("trends", name, "--snapshots", store.uri).out
        assert said.endswith(f"\n{sentences}\n"), name


def test_a_month_without_its_use_gives_the_reason_and_no_table(
    yeoron, planted, tmp_path, store
) -> None:
    broken = incomplete_store(tmp_path / "broken", planted)
    call = ("--id", "2020-01", "--snapshots", broken.uri)
    moved = yeoron("trends", "moved", *call).out
    assert "neighbours" not in moved
    assert "yeoron snapshot amend 2020-01" in moved
    assert "enough documents" not in moved
    for name in ("born", "risen", "fallen"):
        assert "changed in meaning" not in yeoron("trends", name, *call).out
    following = " ".join(yeoron("trends", "moved", "--snapshots", broken.uri).out.split())
    assert "2020-01 could not be judged" in following
