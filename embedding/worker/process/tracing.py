"""How long a document was in a gradient process, as a trace shows it."""

from __future__ import annotations

import time
from collections.abc import Iterable

from embedding.kernel.tracing import Traces


class DocumentTraces:
    """Some documents, from when they were taken until they are learnt."""

    def __init__(self, traces: Traces) -> None:
        self._traces = traces
        self._taken: dict[str, tuple[float, int]] = {}

    def taken(self, keys: Iterable[str], window: int) -> None:
        """Documents of a window came."""
        for key in self._traces.sampled(keys):
            self._taken[key] = (time.time(), window)

    def learnt(self, keys: Iterable[str]) -> None:
        """The server has these."""
        for key in self._taken.keys() & set(keys):
            taken, window = self._taken.pop(key)
            self._traces.document("learn", (key,), taken, time.time(), window=window)
