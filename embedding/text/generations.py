"""A bounded map that forgets what was not used for longest, at the price of two dict look-ups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Generations(Generic[K, V]):
    """Least-recently-used by halves: when the young half is full it becomes the old one.

    An entry stays while it is used at least once in `capacity` / 2 insertions; no entry costs more
    than a dict entry, unlike a linked list.
    """

    def __init__(self, capacity: int) -> None:
        self._half = max(1, capacity // 2)
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value of `key`, which thereby counts as used, or None."""
        value = self._young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: K, value: V) -> None:
        """Set a value (never None)."""
        if len(self._young) >= self._half and key not in self._young:
            self._old, self._young = self._young, {}
        self._young[key] = value

    def drop(self, unwanted: Callable[[K], bool]) -> None:
        """Forget the keys that `unwanted` says; takes time with all that is held."""
        self._young = {key: self._young[key] for key in self._young if not unwanted(key)}
        self._old = {key: self._old[key] for key in self._old if not unwanted(key)}

    def __len__(self) -> int:
        """Entries held; one that was used in both halves counts twice."""
        return len(self._young) + len(self._old)

    def clear(self) -> None:
        """Forget everything."""
        self._young.clear()
        self._old.clear()
