"""A complete window waits until its nodes have rehearsed it, within a limit."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from embedding.kernel.records import Window
from embedding.server.snapshotting.convergence import WindowConvergence

JUNE = Window(datetime(2020, 6, 1, tzinfo=UTC), datetime(2020, 7, 1, tzinfo=UTC))
MAY = datetime(2020, 5, 1, tzinfo=UTC).timestamp()
START, END = JUNE.start.timestamp(), JUNE.end.timestamp()


class Told:
    """What two nodes told, and when."""

    def __init__(self) -> None:
        self.reports: dict[str, tuple[float, dict]] = {}

    def say(self, node: str, at: float, unconverged: object, *, rehearses: bool = True) -> None:
        self.reports[node] = at, {"rehearsal": {"rehearses": rehearses, "unconverged": unconverged}}

    def latest_reports(self):
        return list(self.reports.values())


@pytest.mark.parametrize("first", [MAY, START, END - 1])
def test_it_waits_for_every_node_that_has_the_window_or_one_before_to_rehearse(first) -> None:
    told = Told()
    convergence = WindowConvergence(told, 60.0)
    told.say("n1", 1.0, None)
    told.say("n2", 1.0, first)
    assert not convergence.may_cut(JUNE, 1.0)
    told.say("n2", 2.0, END)
    told.say("n1", 2.0, None)
    assert convergence.may_cut(JUNE, 3.0)
    assert convergence.ended(JUNE) == {"settled": 1.0}
    assert convergence.ended(JUNE) == {}


def test_news_from_before_the_window_was_complete_say_nothing() -> None:
    told = Told()
    convergence = WindowConvergence(told, 60.0)
    told.say("n1", 1.0, None)
    assert not convergence.may_cut(JUNE, 1.5)
    told.say("n1", 2.0, None)
    assert convergence.may_cut(JUNE, 2.0)


def test_it_waits_no_longer_than_the_limit_and_says_so(caplog) -> None:
    told = Told()
    convergence = WindowConvergence(told, 60.0)
    told.say("n1", 1.0, START)
    assert not convergence.may_cut(JUNE, 1.0)
    assert not convergence.may_cut(JUNE, 60.9)
    assert convergence.may_cut(JUNE, 61.0)
    assert convergence.may_cut(JUNE, 61.1)
    assert convergence.ended(JUNE) == {"settled": 0.0}
    assert len([r for r in caplog.records if "convergence_seconds" in r.message]) == 1


@pytest.mark.parametrize("report", [{}, {"rehearsal": None}, {"rehearsal": {"unconverged": "x"}}])
def test_nodes_that_rehearse_nothing_hold_nothing_up(report) -> None:
    told = Told()
    told.reports["n1"] = 0.0, report
    assert WindowConvergence(told, 60.0).may_cut(JUNE, 5.0)
    assert WindowConvergence(Told(), 60.0).may_cut(JUNE, 5.0)


def june_waits() -> tuple[Told, WindowConvergence, Window]:
    """June was asked for before its node had converged; and the window after it."""
    told = Told()
    convergence = WindowConvergence(told, 60.0)
    told.say("n1", 0.0, START)
    assert not convergence.may_cut(JUNE, 1.0)
    return told, convergence, Window(JUNE.end, datetime(2020, 8, 1, tzinfo=UTC))


def test_windows_are_cut_in_their_order_also_when_news_come_in_between() -> None:
    told, convergence, july = june_waits()
    told.say("n1", 2.0, None)
    assert not convergence.may_cut(july, 1.5), "June was asked for before this news"
    assert convergence.may_cut(JUNE, 2.0)
    assert convergence.may_cut(july, 2.0)


def test_a_window_that_is_never_asked_for_again_holds_none_up_beyond_the_limit() -> None:
    told, convergence, july = june_waits()
    told.say("n1", 5.0, None)
    assert not convergence.may_cut(july, 5.0)
    assert convergence.may_cut(july, 61.0)


def test_without_a_limit_none_waits() -> None:
    told = Told()
    told.say("n1", 9.0, START)
    convergence = WindowConvergence(told, 0.0)
    assert convergence.may_cut(JUNE, 1.0)
    assert convergence.ended(JUNE) == {}


def test_it_waits_until_each_node_has_read_how_words_were_used() -> None:
    told = Told()
    convergence = WindowConvergence(told, 60.0)
    assert convergence.latest is None
    for node, closed in (("n1", int(START)), ("n2", -1), ("n3", None)):
        told.reports[node] = 1.0, {"closed": closed}
    assert not convergence.may_cut(JUNE, 1.0)
    assert convergence.latest == int(START), "nodes are asked to close it"
    told.reports["n2"] = 2.0, {"closed": int(START)}
    assert convergence.may_cut(JUNE, 2.0)
    convergence.ended(JUNE)
    assert convergence.latest is None
