"""How far the simulated web may play: as far as the nodes keep up.

A month ends once all of its documents are learnt, and the next one begins once it is cut. So no
document is late and no snapshot holds text of a later month, however slow the machine is.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import httpx

from embedding.kernel.records import Window

log = logging.getLogger(__name__)

LOOKS_S = 0.5
"""Seconds between two looks at the nodes."""
QUIET_LOOKS, UNREAD_LOOKS = 30, 240
"""Looks at nodes that have nothing pending and learn nothing, after which what nobody has learnt
are texts that nobody will: a copy, or one that is empty without its personal data. The latter where
some were not even fetched: a page that cannot be read."""
EDGE_S = 0.5
"""Event seconds around a month's end at which the clock stops."""


@dataclass(frozen=True)
class PlayProgress:
    """What is known of a play.

    event      event time of the clock (Unix seconds)
    published  documents that appeared; unread: those of them that nobody has fetched
    learnt     documents that were learnt; pending: those that nodes have found and not learnt
    cut        labels of the windows that have a snapshot
    """

    event: float
    published: int
    unread: int
    learnt: int
    pending: int
    cut: frozenset[str]

    @classmethod
    def of(cls, web: Mapping[str, Any], status: Mapping[str, Any]) -> PlayProgress:
        """From the statistics of the simulated web and the status of the server."""
        windows = status["windows"].items()
        return cls(
            event=web["event"],
            published=web["published"],
            unread=web["backlog"],
            learnt=status["documents"],
            pending=sum(source["pending"] for source in status["sources"].values()),
            cut=frozenset(label for label, window in windows if window["snapshot"]),
        )

    @property
    def unlearnt(self) -> int:
        """Documents that were fetched and not learnt: a copy or an empty text never is."""
        return max(min(self.pending, self.published - self.unread - self.learnt), 0)


class PlayLimit:
    """A pure state machine: takes what is known, and says up to which event time to play."""

    def __init__(self, windows: Sequence[Window]) -> None:
        self._windows = windows
        self._ended = ""
        self._last: PlayProgress | None = None
        self._quiet = 0

    def until(self, seen: PlayProgress) -> float:
        """Event time (Unix seconds) up to which documents may appear now."""
        left = [window for window in self._windows if window.label not in seen.cut]
        if not left:
            return math.inf
        label, end = left[0].label, left[0].end.timestamp()
        if self._ended != label and seen.event >= end - 2 * EDGE_S and self._all_learnt(seen):
            self._ended = label
        return end + EDGE_S if self._ended == label else end - EDGE_S

    def _all_learnt(self, seen: PlayProgress) -> bool:
        self._quiet = 0 if seen.pending or seen != self._last else self._quiet + 1
        self._last = seen
        enough = UNREAD_LOOKS if seen.unread else QUIET_LOOKS
        return seen.learnt >= seen.published or self._quiet > enough


class Pacer:
    """Paces a simulated web in a thread, from `with` to its end; then the web plays on unpaced.

    web, status  addresses of the simulated web and of the server's status
    """

    def __init__(self, windows: Sequence[Window], web: str, status: str) -> None:
        self._pace, self._web, self._status = PlayLimit(windows), web, status
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pace", daemon=True)

    def __enter__(self) -> Self:
        with httpx.Client(timeout=10, trust_env=False) as client:
            self._look(client)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with httpx.Client(timeout=10, trust_env=False) as client:
            while not self._stop.wait(LOOKS_S):
                self._look(client)
            with suppress(httpx.HTTPError):
                client.post(f"{self._web}/control/pace")

    def _look(self, client: httpx.Client) -> None:
        """Where one of them does not answer the web plays no further than it may already."""
        try:
            web = client.get(f"{self._web}/control/stats").raise_for_status().json()
            status = client.get(self._status).raise_for_status().json()
            seen = PlayProgress.of(web, status)
            until = self._pace.until(seen)
            asked: dict[str, float] = {"unlearnt": seen.unlearnt}
            if until < math.inf:
                asked["until"] = until
            client.post(f"{self._web}/control/pace", params=asked).raise_for_status()
        except (httpx.HTTPError, ValueError, KeyError) as error:
            log.debug("the pace stays: %s", error)
