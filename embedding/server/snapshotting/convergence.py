"""Whether a window that is complete may be cut: when its nodes have learnt it as far as they will.

Nodes go on rehearsing a window after its last text came (worker/learning), and say in each
report which window is the first that has not converged. A cut waits for that, within a limit.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable
from typing import Any, Protocol

from embedding.kernel.records import Window

logger = logging.getLogger(__name__)


class Reports(Protocol):
    """What the nodes reported last."""

    def latest_reports(self) -> Iterable[tuple[float, dict[str, Any]]]:
        """When (monotonic seconds) and what each present node reported last."""


class WindowConvergence:
    """Remembers since when each window could be cut, and how its wait ended.

    limit_s  seconds that a window waits at most; 0: none does
    """

    def __init__(self, reports: Reports, limit_s: float) -> None:
        self._reports = reports
        self._limit_s = limit_s
        self._since: dict[Window, float] = {}
        self._converged: dict[Window, bool] = {}

    def may_cut(self, window: Window, now: float | None = None) -> bool:
        """Whether a complete window waits no longer; asked again and again until it is so.

        While an earlier one waits it waits too: a report may come between asking for both.
        """
        now = time.monotonic() if now is None else now
        if not self._limit_s:
            return True
        since = self._since.setdefault(window, now)
        if any(
            one.start < window.start and one not in self._converged and now - asked < self._limit_s
            for one, asked in tuple(self._since.items())
        ):
            return False
        converged = all(
            _has_converged(report, window)
            and _has_closed(report, window)
            and (at >= since or not _rehearses(report))
            for at, report in self._reports.latest_reports()
        )
        if not converged and now - since < self._limit_s:
            return False
        if window not in self._converged and not converged:
            logger.warning(
                "window %s is cut before its nodes had learnt it to the end: %g s are over "
                "(server.convergence_seconds)",
                window.label,
                self._limit_s,
            )
        self._converged[window] = converged
        return True

    @property
    def latest(self) -> int | None:
        """Start (Unix seconds) of the latest window that waits, or waited and is not cut yet."""
        return max((int(one.start.timestamp()) for one in tuple(self._since)), default=None)

    def ended(self, window: Window) -> dict[str, float]:
        """`settled` of a window that is cut, 1 or 0; nothing where it was not waited for."""
        self._since.pop(window, None)
        converged = self._converged.pop(window, None)
        return {} if converged is None else {"settled": float(converged)}


def _rehearses(report: dict[str, Any]) -> bool:
    """Whether a node rehearses at all: from others no news is waited for."""
    rehearsal = report.get("rehearsal")
    return isinstance(rehearsal, dict) and rehearsal.get("rehearses") is True


def _has_closed(report: dict[str, Any], window: Window) -> bool:
    """Whether a node has said how words were used in a window, if it ever does."""
    closed = report.get("closed")
    return not isinstance(closed, int) or closed >= int(window.start.timestamp())


def _has_converged(report: dict[str, Any], window: Window) -> bool:
    """Whether a node has no window before this one's end left to rehearse."""
    rehearsal = report.get("rehearsal")
    if not isinstance(rehearsal, dict):
        return True
    first = rehearsal.get("unconverged", rehearsal.get("unsettled"))  # as nodes of version 13 say
    if not isinstance(first, (int, float)) or not math.isfinite(first):
        return True
    return float(first) >= window.end.timestamp()
