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
from typing import Any

from embedding.kernel.records import Window
from embedding.server.words.readers import Wait

logger = logging.getLogger(__name__)

_LOG_EVERY_S = 60.0
"""Seconds between two sentences in the log about a window that waits for the same nodes."""


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
        self._since: dict[Window, float] = {}
        self._converged: dict[Window, bool] = {}
        self._forced: set[Window] = set()
        self._free: set[Window] = set()
        self._waits: dict[Window, str] = {}
        self._logged: dict[Window, tuple[str, float]] = {}

    def may_cut(self, window: Window, now: float | None = None) -> bool:
        """Whether a complete window waits no longer; asked again and again until it is so.

        While an earlier one waits it waits too: a report may come between asking for both.
        """
        now = time.monotonic() if now is None else now
        self._since.setdefault(window, now)
        if any(one.start < window.start and self._holds_up(one, now) for one in self.waiting):
            return False
        if self._holds(window, now):
            return False
        self._free.add(window)
        return True

    def force(self, window: Window) -> None:
        """Cut it without what is not handed in."""
        self._forced.add(window)

    def overdue(self, window: Window) -> bool:
        """Whether it is rehearsed no longer: nodes are to hand in what they have."""
        return window in self._converged

    @property
    def waiting(self) -> list[Window]:
        """Windows that could be cut and are not yet, in order."""
        return sorted(self._since, key=lambda one: one.start)

    @property
    def sentences(self) -> dict[str, str]:
        return {one.label: sentence for one, sentence in tuple(self._waits.items())}

    def ended(self, window: Window) -> dict[str, float]:
        """`settled` of a window that is cut, 1 or 0; nothing where it was not waited for."""
        for kept in (self._since, self._waits, self._logged):
            kept.pop(window, None)
        self._forced.discard(window)
        self._free.discard(window)
        converged = self._converged.pop(window, None)
        return {} if converged is None or not self._limit_s else {"settled": float(converged)}

    def _holds_up(self, earlier: Window, now: float) -> bool:
        """Whether later windows wait for one that was asked for before."""
        within = now - self._since[earlier] < self._limit_s
        return earlier not in self._free and (within or bool(self._wait(earlier)))

    def _wait(self, window: Window) -> Wait:
        return Wait() if window in self._forced else self._handed(window)

    def _holds(self, window: Window, now: float) -> bool:
        """Whether a window waits for its own nodes."""
        if not self._rehearsed(window, now):
            return True
        wait = self._wait(window)
        if not wait:
            self._waits.pop(window, None)
            return False
        self._waits[window] = sentence = waits_for(window, wait)
        before, at = self._logged.get(window, ("", -math.inf))
        if sentence != before or now - at >= _LOG_EVERY_S:
            # A node hands in within a second mostly: that is worth no warning.
            late = now - self._since[window] >= _LOG_EVERY_S
            logger.log(logging.WARNING if late else logging.INFO, "%s", sentence)
            self._logged[window] = sentence, now
        return True

    def _rehearsed(self, window: Window, now: float) -> bool:
        if window in self._converged:
            return True
        since = self._since[window]
        converged = not self._limit_s or all(
            _has_converged(report, window, heard=at >= since) for at, report in self._reports()
        )
        if not converged and now - since < self._limit_s:
            return False
        if not converged:
            logger.warning(
                "window %s is cut before its nodes had learnt it to the end: %g s are over "
                "(server.convergence_seconds)",
                window.label,
                self._limit_s,
            )
        self._converged[window] = converged
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
