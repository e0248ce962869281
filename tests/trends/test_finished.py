"""A finished report answers while it is of these snapshots and settings, and for no longer."""

from __future__ import annotations

import json

import pytest

from embedding.ask.answers import Answers
from embedding.ask.config import AskConfig
from embedding.kernel.records import SnapshotRef
from embedding.trends import storage
from embedding.trends.config import TrendsConfig
from embedding.trends.report import build_report
from embedding.trends.storage import FinishedReports

CONFIG = TrendsConfig()


@pytest.fixture(scope="module")
def saved(store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    report = build_report(store)
    storage.save(report, folder)
    return folder, report


def test_it_is_read_with_its_figures_and_not_computed(store, saved, monkeypatch) -> None:
    from embedding.trends import report as computing

    folder, report = saved
    finished = FinishedReports(store.list(), CONFIG, folder)
    assert finished.report(report.snapshot.id).to_dict() == report.to_dict()
    assert len(finished.scores(report.snapshot.id)) == len(report.scores)
    monkeypatch.setattr(computing, "build_report", None)
    answers = Answers(AskConfig(snapshots=store.uri, reports=folder))
    again = answers.report(report.snapshot.id, None)
    assert again.to_dict() == report.to_dict()
    assert answers.scores(again, None).key == report.scores.key


def test_other_settings_and_other_snapshots_are_no_finished_report(store, saved) -> None:
    folder, report = saved
    name, refs = report.snapshot.id, store.list()
    assert FinishedReports(refs, TrendsConfig(min_count=19), folder).report(name) is None
    assert FinishedReports(refs[1:], CONFIG, folder).report(name) is None, "one was withdrawn"
    assert FinishedReports(refs, CONFIG, None).report(name) is None
    assert FinishedReports(refs, CONFIG, folder).report(refs[0].id) is None
    assert FinishedReports(refs, CONFIG, folder).report("2031-01-00000000") is None


@pytest.mark.parametrize("at", [0, -1])
def test_an_amended_snapshot_makes_its_own_report_and_later_ones_stale(store, saved, at) -> None:
    folder, report = saved
    refs = store.list()
    refs[at] = SnapshotRef.from_dict(refs[at].to_dict() | {"revision": 2})
    assert FinishedReports(refs, CONFIG, folder).report(report.snapshot.id) is None


def test_one_that_cannot_be_read_or_says_not_what_it_is_of_is_computed_again(
    store, tmp_path, caplog
) -> None:
    report = build_report(store)
    path = storage.save(report, tmp_path) / storage.REPORT
    whole = path.read_text("utf-8")
    finished = FinishedReports(store.list(), CONFIG, tmp_path)
    old = json.loads(whole)
    del old["key"]
    path.write_text(json.dumps(old), "utf-8")
    assert finished.report(report.snapshot.id) is None, "of a version that did not say it"
    assert storage.load(tmp_path, report.snapshot.id).to_dict() == report.to_dict()
    path.write_text(whole[:-20], "utf-8")
    assert finished.report(report.snapshot.id) is None
    assert "computed again" in caplog.text
    answers = Answers(AskConfig(snapshots=store.uri, reports=tmp_path))
    again = answers.report(report.snapshot.id, None)
    assert again.to_dict() == report.to_dict()
