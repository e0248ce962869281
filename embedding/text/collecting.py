"""Python's cyclic garbage collector in a process that prepares text: between blocks, not within.

The cache holds a million objects that live long and are in no cycle. Left to itself the collector
looks through them again and again while a block is made: it took two fifths of the time outside of
the analyser. What a block leaves behind is looked at once, everything only now and then.
"""

from __future__ import annotations

import gc

FULL = 500
"""Blocks between two looks at everything."""


class Collecting:
    """Takes the collector over from `begin` on; `between` is called after each block."""

    def __init__(self) -> None:
        self._blocks = 0

    def begin(self) -> None:
        """What is loaded now stays and is looked at no more."""
        gc.collect()
        gc.freeze()
        gc.disable()

    def between(self) -> None:
        """Collect what the block left: the younger generations, all of them each `FULL` blocks."""
        self._blocks += 1
        gc.collect(1 if self._blocks % FULL else 2)
