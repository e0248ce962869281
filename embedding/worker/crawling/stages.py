"""Where the time between publication and the queue goes, over the latest documents."""

from __future__ import annotations

from collections import deque

import numpy as np

from embedding.kernel.records import TokenBlock

_LATEST = 512


class Stages:
    """Seconds from publication to fetching, and from there to the queue of the gradient process."""

    def __init__(self) -> None:
        self._fetched: deque[float] = deque(maxlen=_LATEST)
        self._queued: deque[float] = deque(maxlen=_LATEST)

    def queued(self, block: TokenBlock, now: float) -> None:
        """A block was put into the queue at `now` (Unix seconds)."""
        self._fetched.extend(np.maximum(block.fetched - block.available, 0.0).tolist())
        self._queued.extend(np.maximum(now - block.fetched, 0.0).tolist())

    def report(self) -> dict[str, dict[str, float]]:
        """JSON-safe: median and 95 % of each stage, in seconds; nothing before the first block."""
        named = {"published_to_fetched": self._fetched, "fetched_to_queued": self._queued}
        return {name: spread(list(values)) for name, values in named.items() if values}


def spread(values: list[float]) -> dict[str, float]:
    """Median and 95 % of some seconds."""
    middle, most = np.percentile(values, (50, 95))
    return {"p50_s": round(float(middle), 3), "p95_s": round(float(most), 3)}
