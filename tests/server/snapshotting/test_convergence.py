"""A complete window waits until its nodes have rehearsed it, within a limit."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from embedding.kernel.records import Window
from embedding.server.snapshotting.convergence import WindowConvergence
from embedding.server.words.readers import Wait

JUNE = Window(datetime(2020, 6, 1, tzinfo=UTC), datetime(2020, 7, 1, tzinfo=UTC))
JULY = Window(JUNE.end, datetime(2020, 8, 1, tzinfo=UTC))
MAY_WINDOW = Window(datetime(2020, 5, 1, tzinfo=UTC), JUNE.start)
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
    convergence = WindowConvergence(told.latest_reports, 60.0)
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
    convergence = WindowConvergence(told.latest_reports, 60.0)
    told.say("n1", 1.0, None)
    assert not convergence.may_cut(JUNE, 1.5)
    told.say("n1", 2.0, None)
    assert convergence.may_cut(JUNE, 2.0)


def test_it_waits_no_longer_than_the_limit_and_says_so(caplog) -> None:
    told = Told()
    convergence = WindowConvergence(told.latest_reports, 60.0)
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
    assert WindowConvergence(told.latest_reports, 60.0).may_cut(JUNE, 5.0)
    assert WindowConvergence(Told().latest_reports, 60.0).may_cut(JUNE, 5.0)


def june_waits() -> tuple[Told, WindowConvergence, Window]:
    """June was asked for before its node had converged; and the window after it."""
    told = Told()
    convergence = WindowConvergence(told.latest_reports, 60.0)
    told.say("n1", 0.0, START)
    assert not convergence.may_cut(JUNE, 1.0)
    return told, convergence, JULY


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
    convergence = WindowConvergence(told.latest_reports, 0.0)
    assert convergence.may_cut(JUNE, 1.0)
    assert convergence.ended(JUNE) == {}


def test_it_waits_without_a_limit_until_all_is_handed_in_and_says_for_whom(caplog) -> None:
    caplog.set_level("INFO")
    waits = {JUNE: Wait(("n2",)), MAY_WINDOW: Wait()}
    convergence = WindowConvergence(Told().latest_reports, 60.0, lambda window: waits[window])
    assert not convergence.may_cut(JUNE, 1.0)
    assert convergence.waiting == [JUNE]
    assert convergence.overdue(JUNE), "there is nothing to rehearse"
    assert not convergence.may_cut(JUNE, 100_000.0)
    sentence = "window 2020-06 waits for n2 to hand in how it used words."
    assert convergence.sentences == {"2020-06": sentence}
    assert [r.message for r in caplog.records] == [sentence] * 2
    for second in range(50):
        convergence.may_cut(JUNE, 100_000.0 + second)
    assert len(caplog.records) == 2, "it is said once a minute"
    waits[JUNE] = Wait(lost=(("a", "뉴스"),), heirs=("n1", "n3"))
    assert not convergence.may_cut(JUNE, 100_050.0)
    assert "the node that takes 뉴스 over (n1 or n3) to read again" in caplog.records[-1].message
    waits[JUNE] = Wait()
    assert convergence.may_cut(JUNE, 100_051.0)
    assert convergence.ended(JUNE) == {"settled": 1.0}
    assert convergence.waiting == []
    assert convergence.sentences == {}


def test_a_person_may_have_it_cut_without_what_is_not_handed_in() -> None:
    convergence = WindowConvergence(Told().latest_reports, 60.0, lambda _: Wait(("n2",)))
    assert not convergence.may_cut(JUNE, 1.0)
    convergence.force(JUNE)
    assert convergence.may_cut(JUNE, 2.0)


def test_the_use_of_words_is_waited_for_also_where_nothing_is_rehearsed() -> None:
    convergence = WindowConvergence(Told().latest_reports, 0.0, lambda _: Wait(("n2",)))
    assert not convergence.may_cut(JUNE, 1.0)
    assert convergence.overdue(JUNE)


def test_a_window_that_is_published_while_others_are_looked_at_holds_nothing_up() -> None:
    """Whoever publishes it takes it out without the lock that those who ask hold."""
    handed = {MAY_WINDOW: Wait(("n2",)), JUNE: Wait(("n2",))}

    def wait(window: Window) -> Wait:
        if window == MAY_WINDOW and not handed[MAY_WINDOW]:
            convergence.ended(JUNE)
        return handed[window]

    convergence = WindowConvergence(Told().latest_reports, 0.0, wait)
    assert not convergence.may_cut(MAY_WINDOW, 1.0)
    assert not convergence.may_cut(JUNE, 1.0)
    assert convergence.waiting == [MAY_WINDOW, JUNE]
    handed[MAY_WINDOW] = Wait()
    handed[JULY] = Wait()
    assert convergence.may_cut(JULY, 2.0)
    assert not convergence.overdue(JUNE)
