"""A window in which nothing happened leads to the last one in which something did."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedding.snapshots.store import SnapshotStore
from embedding.trends.report import build_report
from embedding.trends.rows import findings_of

COMPUTED = 3

BORN = 2
"""The window that brings the only news."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No report is saved there yet."""
    monkeypatch.setenv("YEORON_PATHS__HOME", str(tmp_path / "home"))


def quiet(planted, folder: Path, windows: int, born: dict[str, tuple[str, int]]) -> SnapshotStore:
    plan = planted.Plan(windows=windows, fillers=120, moved={}, risen={}, lone={}, born=born)
    return planted.make_store(str(folder), plan)


def test_a_quiet_window_names_the_last_with_a_finding_and_how_to_see_it(
    yeoron, planted, tmp_path: Path
) -> None:
    store = quiet(planted, tmp_path / "news", BORN + 2, {"신천지": ("바이러스", BORN)})
    news = store.list()[BORN].id
    assert findings_of(build_report(store, news), ("born",)) == 1
    done = yeoron("trends", "born", "--snapshots", store.uri)
    assert done.code == 0, done.err
    sentence = done.out.splitlines()[-1]
    command = f"yeoron trends born --snapshots {store.uri} --id {news}"
    assert sentence.startswith("The last window with a new word is ")
    assert sentence.endswith(f" (1): {command}")

    shown = yeoron(*command.split()[1:])
    assert "신천지 *" in shown.out
    assert "The last window" not in shown.out
    assert yeoron(*command.split()[1:-1], news.rpartition("-")[0]).out == shown.out
    assert "The last window" not in yeoron("trends", "born", "--snapshots", store.uri, "--csv").out


def test_only_saved_reports_are_read_of_windows_far_back(yeoron, planted, tmp_path: Path) -> None:
    store = quiet(planted, tmp_path / "long", BORN + COMPUTED + 2, {"신천지": ("바이러스", BORN)})
    call = ("trends", "born", "--snapshots", store.uri)
    assert (
        "\n`yeoron trends report --all` writes the reports of all windows.\n" in yeoron(*call).out
    )
    assert yeoron("trends", "report", "--all", "--snapshots", store.uri).code == 0
    assert f"--id {store.list()[BORN].id}" in yeoron(*call).out


def test_where_nothing_ever_happened_that_is_said(yeoron, planted, tmp_path: Path) -> None:
    store = quiet(planted, tmp_path / "none", 3, {})
    done = yeoron("trends", "born", "--snapshots", store.uri)
    assert done.out.splitlines()[-1].startswith("No window before ")
