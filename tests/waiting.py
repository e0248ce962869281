"""Waiting for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(
    condition: Callable[[], object],
    what: str | Callable[[], object] = "it did not come about in time",
    seconds: float = 150.0,
) -> None:
    """Return as soon as `condition` holds; AssertionError with `what` where it takes too long.

    what  a sentence, or what says at that moment how things stand
    """
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.02)
