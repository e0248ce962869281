"""How long a node is at work, without the time that a policy holds it back."""

from __future__ import annotations

import time

from embedding.exchange.protocol import PulledRows


class PushStopwatch:
    """Runs from push to push; waiting for text counts, waiting for other nodes does not."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._held = 0.0

    def start(self) -> None:
        """A push has ended."""
        self._began, self._held = time.monotonic(), 0.0

    def held(self, rows: PulledRows, before: float = 0.0) -> None:
        """A pull was held back, and for `before` seconds by a round of L-BFGS."""
        self._held += before + rows.waited_s

    def busy(self) -> float:
        """Seconds since the last push, less those held back; 0 before the first push.

        The first stretch is not measured: kernels are compiled in it.
        """
        if self._began is None:
            return 0.0
        return max(time.monotonic() - self._began - self._held, 1e-3)
