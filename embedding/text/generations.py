"""A bounded map that forgets what was not used for longest, at the price of two dict look-ups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Generations(Generic[K, V]):
    """Least-recently-used by halves: when the young half is full it becomes the old one.

    An entry stays while it is used at least once in `capacity` / 2 insertions; no entry costs more
    than a dict entry, unlike a linked list. `capacity` counts entries, or with `weigh` the bytes
    that it says of each; what a value gains later is told by `grew`.
    """

    def __init__(self, capacity: int, weigh: Callable[[K, V], int] | None = None) -> None:
        self._half = max(1, capacity // 2)
        self._weigh = weigh
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}
        self._filled = self._aged = 0
        self.forgotten = 0
        """Entries that had to go for others."""

    def get(self, key: K) -> V | None:
        """The value of `key`, which thereby counts as used, or None."""
        value = self._young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is not None:
                self.put(key, value)
        return value

    def put(self, key: K, value: V) -> None:
        if key not in self._young:
            size = 1 if self._weigh is None else self._weigh(key, value)
            if self._young and self._filled + size > self._half:
                self.forgotten += sum(old not in self._young for old in self._old)
                self._old, self._young = self._young, {}
                self._aged, self._filled = self._filled, 0
            self._filled += size
        self._young[key] = value

    def grew(self, size: int) -> None:
        """A value that was just got has become larger by so much."""
        self._filled += size

    @property
    def weight(self) -> int:
        """Entries or bytes held, in the unit of `capacity`; never more than that, but for one entry
        and for what has grown since the last `put`."""
        return self._filled + self._aged

    def drop(self, unwanted: Callable[[K], bool]) -> None:
        """Forget the keys that `unwanted` says; takes time with all that is held."""
        for half in (self._young, self._old):
            for key in [key for key in half if unwanted(key)]:
                del half[key]
        self._filled, self._aged = self._sum(self._young), self._sum(self._old)

    def _sum(self, half: dict[K, V]) -> int:
        """What a half weighs, without what its values have gained since."""
        if self._weigh is None:
            return len(half)
        return sum(self._weigh(key, value) for key, value in half.items())

    def values(self) -> Iterator[V]:
        yield from self._young.values()
        yield from (value for key, value in self._old.items() if key not in self._young)

    def __len__(self) -> int:
        """Entries held; one that was used in both halves counts twice."""
        return len(self._young) + len(self._old)
