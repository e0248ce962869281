"""Waiting for what another process, thread or task does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
What = str | Callable[[], object]
PAUSE_S, LONGEST_S = 0.02, 0.25
_LATE = "it did not come about in time"


def until(condition: Callable[[], T], what: What = _LATE, seconds: float = 300.0) -> T:
    """What `condition` gives, as soon as it is true; AssertionError where it takes too long.

    what  a sentence for that error, or what says at that moment how things stand
    """
    deadline = (asked := time.monotonic()) + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(_pause(asked))
        asked = time.monotonic()
    return found


def _pause(asked: float) -> float:
    """Seconds until it is asked again, which takes a quarter of the time at most.

    Looking through all processes of a busy machine takes 50 ms: else it would keep a core busy.
    """
    return min(max(PAUSE_S, 3 * (time.monotonic() - asked)), LONGEST_S)


async def eventually(condition: Callable[[], T], what: What = _LATE, seconds: float = 300.0) -> T:
    """`until` for what another task of this event loop does."""
    deadline = (asked := time.monotonic()) + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        await asyncio.sleep(_pause(asked))
        asked = time.monotonic()
    return found
