"""A store of many windows: a report holds a few of them at a time."""

from __future__ import annotations

from weakref import ref

from embedding.trends.frequency import Frequency
from embedding.trends.report import build_report

WINDOWS = 30
AT_ONCE = 14


def test_a_report_holds_a_few_windows_at_a_time(planted, tmp_path, monkeypatch):
    store = planted.make_store(str(tmp_path), planted.Plan(windows=WINDOWS, fillers=60))
    read, most, whole, last = [], 0, Frequency.read, store.list()[-1].id

    def counted(snapshot, later=()):
        nonlocal most
        found = whole(snapshot, later)
        if snapshot.id == last:
            return found
        read.append((snapshot.id, ref(found)))
        most = max(most, sum(held() is not None for _, held in read))
        return found

    monkeypatch.setattr(Frequency, "read", counted)
    report = build_report(store)
    assert report.risen or report.fallen
    assert len({name for name, _ in read}) == WINDOWS - 1
    assert most <= AT_ONCE
