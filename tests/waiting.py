"""Waiting for what another process, thread or task does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
What = str | Callable[[], object]
PAUSE_S = 0.02
_LATE = "it did not come about in time"


def until(condition: Callable[[], T], what: What = _LATE, seconds: float = 150.0) -> T:
    """What `condition` gives, as soon as it is true; AssertionError where it takes too long.

    what  a sentence for that error, or what says at that moment how things stand
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(PAUSE_S)
    return found


async def eventually(condition: Callable[[], T], what: What = _LATE, seconds: float = 150.0) -> T:
    """`until` for what another task of this event loop does."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        await asyncio.sleep(PAUSE_S)
    return found
