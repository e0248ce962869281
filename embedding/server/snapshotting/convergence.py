"""Whether a window that is complete may be cut: when its nodes have learnt it and said how it
used words.

Nodes go on rehearsing a window after its last text came (worker/learning), and say in each
report which window is the first that has not converged. A cut waits for that, within a limit.
It waits without a limit until every node that read text of the window has handed in how that used
words (`server/words/readers.py`): what a snapshot says of them must not hang on how fast a machine
is. For whom it waits is in the log and in the status.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from embedding.kernel.records import Window
from embedding.server.words.readers import Wait

logger = logging.getLogger(__name__)

_LOG_EVERY_S = 60.0
"""Seconds between two sentences in the log about a window that waits for the same nodes."""


@dataclass
class _WaitingWindow:
    """A window that could be cut.

    since      from when on (monotonic seconds)
    converged  how its rehearsal ended; None: it goes on
    forced     it is cut without what is not handed in
    free       it waits no longer
    sentence   for whom it waits, empty where for nobody; logged: when that was last written
    """

    since: float
    converged: bool | None = None
    forced: bool = False
    free: bool = False
    sentence: str = ""
    logged: float = -math.inf


class WindowConvergence:
    """Remembers since when each window could be cut, and how its wait ended.

    reports  when (monotonic seconds) and what each present node reported last
    handed   for whom a window waits until all is handed in
    limit_s  seconds that a window waits at most to be learnt to the end; 0: none does
    """

    def __init__(
        self,
        reports: Callable[[], Iterable[tuple[float, dict[str, Any]]]],
        limit_s: float,
        handed: Callable[[Window], Wait] = lambda _: Wait(),
    ) -> None:
        self._reports = reports
        self._limit_s = limit_s
        self._handed = handed
        self._windows: dict[Window, _WaitingWindow] = {}

    def may_cut(self, window: Window, now: float | None = None) -> bool:
        """Whether a complete window waits no longer; asked again and again until it is so.

        While an earlier one waits it waits too: a report may come between asking for both.
        """
        now = time.monotonic() if now is None else now
        waiting = self._windows.setdefault(window, _WaitingWindow(now))
        if any(
            earlier.start < window.start and self._holds_up(earlier, now)
            for earlier in self.waiting
        ):
            return False
        waiting.free = waiting.free or not self._holds(window, waiting, now)
        return waiting.free

    def force(self, window: Window) -> None:
        """Cut it without what is not handed in."""
        self._windows.setdefault(window, _WaitingWindow(time.monotonic())).forced = True

    def overdue(self, window: Window) -> bool:
        """Whether it is rehearsed no longer: nodes are to hand in what they have."""
        waiting = self._windows.get(window)  # None: it was cut meanwhile
        return waiting is not None and waiting.converged is not None

    @property
    def waiting(self) -> list[Window]:
        """Windows that could be cut and are not yet, in order."""
        return sorted(self._windows, key=lambda window: window.start)

    @property
    def sentences(self) -> dict[str, str]:
        waiting = tuple(self._windows.items())
        return {window.label: state.sentence for window, state in waiting if state.sentence}

    def ended(self, window: Window) -> dict[str, float]:
        """`settled` of a window that is cut, 1 or 0; nothing where it was not waited for."""
        waiting = self._windows.pop(window, None)
        if waiting is None or waiting.converged is None or not self._limit_s:
            return {}
        return {"settled": float(waiting.converged)}

    def _holds_up(self, earlier: Window, now: float) -> bool:
        """Whether later windows wait for one that was asked for before."""
        waiting = self._windows.get(earlier)
        if waiting is None or waiting.free:
            return False
        return now - waiting.since < self._limit_s or bool(self._wait(earlier, waiting))

    def _wait(self, window: Window, waiting: _WaitingWindow) -> Wait:
        return Wait() if waiting.forced else self._handed(window)

    def _holds(self, window: Window, waiting: _WaitingWindow, now: float) -> bool:
        """Whether a window waits for its own nodes."""
        if not self._rehearsed(window, waiting, now):
            return True
        wait = self._wait(window, waiting)
        before, waiting.sentence = waiting.sentence, waits_for(window, wait) if wait else ""
        if wait and (waiting.sentence != before or now - waiting.logged >= _LOG_EVERY_S):
            # A node hands in within a second mostly: that is worth no warning.
            late = now - waiting.since >= _LOG_EVERY_S
            logger.log(logging.WARNING if late else logging.INFO, "%s", waiting.sentence)
            waiting.logged = now
        return bool(wait)

    def _rehearsed(self, window: Window, waiting: _WaitingWindow, now: float) -> bool:
        if waiting.converged is not None:
            return True
        converged = not self._limit_s or all(
            _has_converged(report, window, heard=at >= waiting.since)
            for at, report in self._reports()
        )
        if not converged and now - waiting.since < self._limit_s:
            return False
        if not converged:
            logger.warning(
                "window %s is cut before its nodes had learnt it to the end: %g s are over "
                "(server.convergence_seconds)",
                window.label,
                self._limit_s,
            )
        waiting.converged = converged
        return True


def waits_for(window: Window, wait: Wait) -> str:
    """A sentence that says for whom and for what a window waits."""
    reasons = []
    if wait.readers:
        reasons.append(f"for {', '.join(wait.readers)} to hand in how it used words")
    if wait.lost:
        sources = sorted({source for _, source in wait.lost})
        reasons.append(
            f"for the node that takes {', '.join(sources)} over ({' or '.join(wait.heirs)}) to "
            "read again what a dead one read"
        )
    return f"window {window.label} waits {' and '.join(reasons)}."


def _has_converged(report: dict[str, Any], window: Window, *, heard: bool) -> bool:
    """Whether a node has no window before this one's end left to rehearse.

    heard  it said so since the window was complete; no news is waited for of one that rehearses
           nothing
    """
    rehearsal = report.get("rehearsal")
    if not isinstance(rehearsal, dict):
        return True
    if not heard and rehearsal.get("rehearses") is True:
        return False
    first = rehearsal.get("unconverged")
    if not isinstance(first, (int, float)) or not math.isfinite(first):
        return True
    return float(first) >= window.end.timestamp()
