"""Values that are kept between questions: those used last, or one for some seconds."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class Recent(Generic[V]):
    """The values used last, at most `size` of them; safe between threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Hashable, V] = OrderedDict()
        self._lock = threading.Lock()

    def peek(self, key: Hashable) -> V | None:
        with self._lock:
            return self._values.get(key)

    def values(self) -> list[V]:
        with self._lock:
            return [*self._values.values()]

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The kept value, or a new one; two threads may both make it, one is kept."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            value = self._values.setdefault(key, value)
            while len(self._values) > self._size:
                self._values.popitem(last=False)
        return value


class Fresh(Generic[V]):
    """One value, made again once it is older than `seconds`; safe between threads."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last: tuple[float, Hashable, V] | None = None
        self._lock = threading.Lock()

    def get(self, make: Callable[[], V], key: Hashable = None) -> V:
        """The kept value where it is of this key; else others wait until it is made."""
        with self._lock:
            now, last = time.monotonic(), self._last
            if last is None or last[1] != key or now - last[0] > self._seconds:
                self._last = last = (now, key, make())
            return last[2]
