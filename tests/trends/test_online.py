"""Over the life of a stream few windows call anything by chance."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.show.notifying import NotifyConfig
from embedding.trends import storage
from embedding.trends.config import TrendsConfig
from embedding.trends.online import OnlineTests
from embedding.trends.report import build_report
from embedding_airflow.notices.notice import compose

ALPHA = 0.05
STREAM = TrendsConfig(control="stream")


def played(lowest: np.ndarray) -> OnlineTests:
    """The sequence after windows whose smallest q are `lowest`."""
    control = OnlineTests()
    for q in lowest:
        control = control.next(ALPHA)
        control = control.decided(bool(q <= control.level))
    return control


def test_levels_are_those_of_lord():
    control = OnlineTests().next(ALPHA)
    assert control.level == pytest.approx(ALPHA / 2 * np.log(2) / 12.6451, rel=1e-6)
    control = control.decided(True).next(ALPHA)
    share = [np.log(2) / t / np.exp(np.sqrt(np.log(t))) / 12.6451 for t in (2, 1)]
    assert control.level == pytest.approx(ALPHA / 2 * sum(share), rel=1e-6)
    control = control.decided(True).next(ALPHA)  # τ = 1, 2; t = 3
    shares = {t: np.log(max(t, 2)) / t / np.exp(np.sqrt(np.log(t))) / 12.6451 for t in (1, 2, 3)}
    expected = ALPHA / 2 * (shares[3] + shares[2]) + ALPHA * shares[1]
    assert control.level == pytest.approx(expected, rel=1e-6)


def test_of_streams_of_500_windows_without_change_few_call_anything():
    random = np.random.default_rng(4)
    streams, wrong, alone, words = 200, 0, 0, 40
    for _ in range(streams):
        p = np.sort(random.random((500, words)), axis=1)
        lowest = (p * words / np.arange(1, words + 1)).min(axis=1)  # Benjamini and Hochberg's q
        wrong += bool(played(lowest).called)
        alone += int((lowest <= ALPHA).sum())
    assert alone / (streams * 500) > 0.04, "each window by itself calls one in twenty"
    assert wrong / streams <= ALPHA


def test_of_windows_that_call_few_are_false_where_some_change():
    random = np.random.default_rng(5)
    false = true = changed = 0
    for _ in range(40):
        lowest = random.random(500)
        real = random.random(500) < 0.2
        lowest[real] = 10.0 ** random.uniform(-12, -3, int(real.sum()))
        called = np.array(played(lowest).called, dtype=int) - 1
        false += int((~real[called]).sum())
        true += int(real[called].sum())
        changed += int(real.sum())
    assert false / (false + true) <= ALPHA
    assert true / changed > 0.7


@given(st.lists(st.booleans(), max_size=60))
def test_more_is_called_after_calls_and_never_more_than_asked(calls):
    control = quiet = OnlineTests()
    spent = 0.0
    for call in calls:
        control, quiet = control.next(ALPHA), quiet.next(ALPHA)
        assert quiet.level <= control.level + 1e-12
        assert control.level < ALPHA
        spent += control.level
        control = control.decided(call)
    assert spent <= ALPHA * max(1, len(control.called) + 1)
    assert control.windows == len(calls)


def test_a_report_calls_what_its_place_in_the_stream_allows(store, tmp_path):
    refs = store.list()
    plain = build_report(store, refs[-1].id)
    sure = [row.word for row in plain.significant("moved") if row.q <= 1e-6]
    assert sure, "the planted change is very sure"
    called: dict[str, tuple[int, ...]] = {}
    for at, ref in enumerate(refs[1:], 1):
        report = build_report(store, ref.id, STREAM, tmp_path)
        storage.save(report, tmp_path)
        held = storage.load(tmp_path, ref.id).control
        assert held.keys() == report.control.keys()
        assert all(held[family].called == report.control[family].called for family in held)
        for family, one in report.control.items():
            assert one.windows == at
            assert one.called[: len(called.get(family, ()))] == called.get(family, ())
            called[family] = one.called
        level = report.control["moved"].level
        assert [row.significant for row in report.moved] == [row.q <= level for row in report.moved]
    assert set(sure) <= {row.word for row in report.significant("moved")}
    assert len(report.significant("risen")) <= len(plain.significant("risen"))
    again = build_report(store, refs[-1].id, STREAM, tmp_path)
    assert json.loads(storage.dumps(again)) == json.loads(storage.dumps(report))
    assert [note.code for note in report.notes].count("stream_control") == 1
    assert plain.control == {}


def test_without_saved_reports_less_is_called(store, tmp_path):
    last = store.list()[-1].id
    bare = build_report(store, last, STREAM, tmp_path / "none")
    windows = len(store.list()) - 1
    for one in bare.control.values():
        assert one.windows == windows
        assert one.level == OnlineTests(windows - 1).next(ALPHA).level


def test_a_notice_tells_findings_of_the_stream_alone(store, tmp_path):
    last = store.list()[-1].id
    report = build_report(store, last, STREAM, tmp_path)
    notice = compose(report, (), NotifyConfig(false_discovery=1.0), "http://p")
    told = {line.word for title, lines in notice.sections if title != "Stories" for line in lines}
    names = ("moved", "born", "risen", "fallen")
    assert told <= {row.word for name in names for row in report.significant(name)}
