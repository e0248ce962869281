"""When a node is started again, and with which sentence it ends."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.kernel.logs import log_place
from embedding.worker.process.node import Death, Restarts, _unstated

HEALTHY_SECONDS = 600.0
SAME_REASON = 3

KILLED = Death("crawler", "killed by SIGKILL", outside=True)
DEFECT = Death("crawler", "ValueError in text/morphemes.py, line 107")


def test_a_failure_with_the_same_reason_ends_after_three_restarts() -> None:
    restarts = Restarts(20)
    assert [restarts.refused(DEFECT, 1.0) for _ in range(SAME_REASON)] == ["", "", ""]
    assert restarts.refused(DEFECT, 1.0) == (
        "its crawler process died 4 times with the same reason: "
        "ValueError in text/morphemes.py, line 107."
    )
    assert restarts.total == 3


def test_another_reason_or_a_kill_from_outside_begins_again() -> None:
    restarts = Restarts(20)
    for _ in range(5):
        assert not restarts.refused(DEFECT, 1.0)
        assert not restarts.refused(KILLED, 1.0)
    assert not any(restarts.refused(KILLED, 1.0) for _ in range(10))
    assert restarts.refused(KILLED, 1.0) == (
        "its crawler process died (killed by SIGKILL), and 20 restarts (node.restarts) did not "
        "help."
    )


@given(st.integers(0, 5), st.lists(st.booleans(), max_size=30))
def test_what_came_before_a_healthy_while_is_not_counted(most: int, healthy: list[bool]) -> None:
    """The longest run of deaths without a healthy while decides, not a whole life."""
    restarts, run = Restarts(most), 0
    for well in healthy:
        run = 1 if well else run + 1
        refused = restarts.refused(KILLED, HEALTHY_SECONDS if well else 1.0)
        assert bool(refused) == (run > most)
        if refused:
            return


@pytest.mark.parametrize(
    ("code", "reason", "outside"),
    [
        (-signal.SIGSEGV, "killed by SIGSEGV", False),
        (-signal.SIGKILL, "killed by SIGKILL", True),
        (3, "exit code 3", False),
    ],
)
def test_a_process_that_says_nothing_is_judged_by_its_exit_code(
    code: int, reason: str, outside: bool
) -> None:
    assert _unstated("gradient", code) == Death("gradient", reason, outside=outside)


def test_the_log_of_a_service_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YEORON_PLATFORM", "/home/me/yeoron")
    monkeypatch.setenv("SUPERVISOR_PROCESS_NAME", "dask-worker-0")
    assert log_place() == "/home/me/yeoron/logs/dask-worker-0.log"
    monkeypatch.delenv("SUPERVISOR_PROCESS_NAME")
    assert log_place() == "standard error"
