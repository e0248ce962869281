"""Which contexts pulled words, by window, until it is forgotten (`worker/usage`)."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np

from embedding.exchange.payload import ContextShift
from embedding.kernel.records import FloatArray, IntArray
from embedding.server.parts import Content, Part, PushArrival, Saved

_MOST = 4_000_000
"""Contexts of words that are held, all windows together; later ones are passed over."""
_COLUMNS = ("ids", "weights", "sizes", "contexts", "figures")


@dataclass(frozen=True)
class PullingContexts:
    """What nodes said of some windows, added up: a row a word and context.

    words, contexts  int64 [m], row ids, sorted by word
    figures          float32 [m, 3]: share of the word's pairs before, in the window, and of its
                     shift; of what a node did not tell 0
    """

    words: IntArray
    contexts: IntArray
    figures: FloatArray


_Owner = tuple[int, str, str]
"""Window, node, and the mark of its process."""


class ContextShifts(Part):
    """What processes say of windows that are not forgotten, the last of what each said. Not
    thread-safe: the server's lock guards it.

    wanted  False keeps none
    """

    def __init__(self, *, wanted: bool) -> None:
        self.wanted = wanted
        self.dropped = 0
        self._held: dict[_Owner, ContextShift] = {}

    def learnt(self, arrival: PushArrival, now: float, closed: Container[int]) -> None:
        push = arrival.push
        for shift in push.shifts if self.wanted else ():
            if shift.window in closed:
                continue
            owner = shift.window, push.node, push.incarnation
            self._held.pop(owner, None)
            if (
                sum(len(other.contexts) for other in self._held.values()) + len(shift.contexts)
                > _MOST
            ):
                self.dropped += len(shift.ids)
                continue
            self._held[owner] = shift

    def drop(self, window: int, incarnation: str) -> None:
        """Another process speaks now for this one."""
        for owner in [key for key in self._held if (key[0], key[2]) == (window, incarnation)]:
            del self._held[owner]

    def held(self, starts: Container[int]) -> PullingContexts | None:
        """What was said of some windows; None: nothing."""
        return added_up(
            [shift for owner, shift in sorted(self._held.items()) if owner[0] in starts]
        )

    def free(self, start: int) -> None:
        self._held = {owner: shift for owner, shift in self._held.items() if owner[0] != start}

    def save(self) -> Saved:
        arrays = {
            f"shift.{number}.{name}": getattr(shift, name)
            for number, shift in enumerate(self._held.values())
            for name in _COLUMNS
        }
        return Saved({"shifts": [list(owner) for owner in self._held]}, lambda _: arrays)

    def load(self, content: Content) -> None:
        for number, fact in enumerate(content.facts["shifts"] if self.wanted else ()):
            window, node, incarnation = fact
            columns = (np.array(content.arrays[f"shift.{number}.{name}"]) for name in _COLUMNS)
            self._held[int(window), node, incarnation] = ContextShift(window, *columns)


def added_up(shifts: Sequence[ContextShift]) -> PullingContexts | None:
    """What several nodes say, weighted by the pairs that each read; None of nothing."""
    shifts = [shift for shift in shifts if len(shift.contexts)]
    if not shifts:
        return None
    ids = np.concatenate([shift.ids for shift in shifts])
    known, at = np.unique(ids, return_inverse=True)
    weights = np.zeros(len(known), dtype=np.float64)
    np.add.at(weights, at, np.concatenate([shift.weights for shift in shifts]))
    words = np.repeat(at, np.concatenate([shift.sizes for shift in shifts]))
    contexts = np.concatenate([shift.contexts for shift in shifts])
    order = np.lexsort((contexts, words))
    words, contexts = words[order], contexts[order]
    figures = np.concatenate([shift.figures for shift in shifts])[order].astype(np.float64)
    first = np.flatnonzero(
        np.concatenate([[True], (np.diff(words) != 0) | (np.diff(contexts) != 0)])
    )
    figures = np.add.reduceat(figures, first, axis=0) / weights[words[first], None]
    return PullingContexts(known[words[first]], contexts[first], figures.astype(np.float32))
