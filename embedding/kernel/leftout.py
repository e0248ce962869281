"""What could not be read and was left out: names with reasons, and a count, in bounded memory."""

from __future__ import annotations

from typing import Any

_KEPT = 10_000
_MOST_NAMED = 20
"""Those that a report names: the latest."""


class LeftOut(dict[str, str]):
    """Reasons by name, of the latest."""

    def __init__(self) -> None:
        super().__init__()
        self._forgotten = 0

    def add(self, name: str, reason: str) -> None:
        self[name] = reason
        if len(self) > _KEPT:
            del self[next(iter(self))]
            self._forgotten += 1

    @property
    def count(self) -> int:
        return self._forgotten + len(self)

    def report(self) -> dict[str, Any]:
        """JSON-safe: how many in all, and the latest with their reasons."""
        return {"given_up": self.count, "left_out": dict(list(self.items())[-_MOST_NAMED:])}
