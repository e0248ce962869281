"""How far readers are behind: published documents that nobody has fetched."""

from __future__ import annotations

from collections import Counter

from yeoron_simweb.config import PARTS


class PastArticles:
    """Counts published, unfetched documents of the parts that somebody reads.

    A part counts from the first request to it on. It stops counting while `patience` seconds
    passed without a fetch of one of its documents, and a document stops counting after four times
    as long, so that a reader that died or skips a document cannot stop the clock for good.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._waiting: dict[str, dict[str, float]] = {part: {} for part in PARTS}
        self._progress: dict[str, float] = {}
        self.fetches: Counter[str] = Counter()
        """Fetches by document id."""
        self.given_up: Counter[str] = Counter()
        """Documents by part for which the clock waited long enough."""

    def read(self, part: str, wall: float) -> None:
        """Somebody asked for this part at `wall`."""
        self._progress.setdefault(part, wall)

    def publish(self, part: str, key: str, wall: float) -> None:
        """A document appeared at `wall`."""
        if self.fetches[key]:
            return
        waiting = self._waiting[part]
        if not waiting and part in self._progress:
            self._progress[part] = max(self._progress[part], wall)
        waiting[key] = wall

    def fetch(self, part: str, key: str, wall: float) -> None:
        """A document was delivered at `wall`."""
        self.fetches[key] += 1
        if self._waiting[part].pop(key, None) is not None:
            self._progress[part] = wall

    def count(self, wall: float) -> int:
        """How many documents the clock should wait for at `wall`."""
        total = 0
        for part, since in self._progress.items():
            waiting = self._waiting[part]
            self._drop_oldest(part, wall)
            if wall - since <= self._patience:
                total += len(waiting)
        return total

    def _drop_oldest(self, part: str, wall: float) -> None:
        waiting = self._waiting[part]
        while waiting:
            oldest = next(iter(waiting))
            if wall - waiting[oldest] <= 4 * self._patience:
                return
            del waiting[oldest]
            self.given_up[part] += 1
