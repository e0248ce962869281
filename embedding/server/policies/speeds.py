"""How quickly each source is read and learnt, without the time that nodes wait for each other."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection

_SpeedStream = tuple[str, str]
"""A node and a source that it reads."""


class Speeds:
    """Tokens a second of each source at each node over the last `window_s` seconds.

    A node says with each push how long it took, less what a policy held it back: under a barrier
    all nodes learn at the pace of the slowest, and only so it shows that they need not.
    """

    def __init__(self, window_s: float = 30.0) -> None:
        self.window_s = window_s
        self._heard: dict[_SpeedStream, deque[tuple[float, int, float]]] = {}

    def __len__(self) -> int:
        return len(self._heard)

    def add(self, node: str, tokens: dict[str, int], seconds: float, now: float) -> None:
        """A node learnt `tokens` of each source in `seconds`; of no length: not measured."""
        if not seconds > 0:
            return
        for source, n in tokens.items():
            heard = self._heard.setdefault((node, source), deque())
            heard.append((now, n, seconds))
            while len(heard) > 1 and heard[0][0] < now - self.window_s:
                heard.popleft()

    def rates(self, nodes: Collection[str]) -> dict[_SpeedStream, float]:
        """Tokens a second of every stream of these nodes."""
        return {
            stream: sum(n for _, n, _ in heard) / sum(seconds for _, _, seconds in heard)
            for stream, heard in self._heard.items()
            if stream[0] in nodes
        }

    def variation(self, nodes: Collection[str]) -> float | None:
        """Coefficient of variation of the rates; None until two streams of every node are known.

        Standard deviation (of the population) over mean.
        """
        rates = list(self.rates(nodes).values())
        known = {node for node, _ in self._heard}
        if len(rates) < 2 or not all(node in known for node in nodes):
            return None
        mean = sum(rates) / len(rates)
        spread = math.sqrt(sum((rate - mean) ** 2 for rate in rates) / len(rates))
        return spread / mean if mean else 0.0
