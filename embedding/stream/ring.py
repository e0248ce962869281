"""A ring of sentences: bounded storage with O(1) insertion and eviction, the oldest leave first."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from embedding.kernel.errors import ConfigError, InputError
from embedding.kernel.positions import ranges
from embedding.kernel.records import CodeArray, FloatArray, IntArray

MINIMUM = 100
_TOKENS_PER_SLOT = 4  # slots are kept for sentences of this length on average


class SentenceRing:
    """Sentences as row ids, in one int64 [capacity] ring; each has a serial number.

    Serial numbers grow by one a sentence and are never reused: those in [oldest, next) are held.
    A sentence's tokens may wrap around the end of the ring. Besides `capacity` tokens, at most
    `slots` = capacity / 4 sentences are held, so that memory does not depend on their length.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < MINIMUM:
            raise ConfigError(
                f"replay memory: capacity must be at least {MINIMUM} tokens, got {capacity}; "
                "less holds no useful mix of sentences."
            )
        self.capacity = capacity
        self.slots = max(1, capacity // _TOKENS_PER_SLOT)
        self._tokens = np.zeros(capacity, np.int64)
        self._ends = np.zeros(self.slots + 1, np.int64)  # total tokens ever added, by serial
        self.oldest = 0
        self.next = 0

    def __len__(self) -> int:
        return self.next - self.oldest

    @property
    def tokens(self) -> int:
        return int(self._end(self.next) - self._end(self.oldest))

    @property
    def nbytes(self) -> int:
        return self._tokens.nbytes + self._ends.nbytes

    def slot(self, serials: IntArray) -> IntArray:
        """Storage slot in [0, slots) of held serials."""
        return serials % self.slots

    def add(self, tokens: IntArray, sentences: CodeArray) -> IntArray:
        """Insert sentences, evicting the oldest; returns their serials.

        Empty sentences are left out (their serial is -1 in the result, int64 [m]); a sentence
        longer than the capacity is cut.
        """
        offsets = np.asarray(sentences, np.int64)
        values = np.asarray(tokens, np.int64)
        lengths = np.diff(offsets)
        if len(offsets) == 0 or offsets[-1] != len(values) or (lengths < 0).any() or offsets[0]:
            raise InputError("replay memory: sentence offsets do not match the tokens.")
        serials = np.full(len(lengths), -1, np.int64)
        for at in _parts(lengths, self.capacity, self.slots):
            chosen = at[lengths[at] > 0]
            if len(chosen):
                serials[chosen] = self._insert(values, offsets, lengths, chosen)
        return serials

    def _insert(
        self, values: IntArray, offsets: IntArray, lengths: IntArray, chosen: IntArray
    ) -> IntArray:
        """Insert sentences that fit together."""
        sizes = np.minimum(lengths[chosen], self.capacity)
        start = self._end(self.next)
        ends = start + np.cumsum(sizes)
        serials = np.arange(self.next, self.next + len(chosen))
        # The oldest go until the tokens and the serials fit.
        first = max(self.oldest, self.next + len(chosen) - self.slots)
        serials_now, least = range(first, self.next + 1), int(ends[-1]) - self.capacity
        self.oldest = first + bisect_left(serials_now, least, key=self._end)
        flat = ranges(offsets[chosen], sizes)
        self._tokens[np.arange(start, ends[-1]) % self.capacity] = values[flat]
        self._ends[(serials + 1) % (self.slots + 1)] = ends
        self.next += len(chosen)
        return serials

    def _end(self, serial: int) -> int:
        return int(self._ends[serial % (self.slots + 1)])

    def gather(
        self, n_tokens: int, draw: Callable[[int], IntArray]
    ) -> tuple[IntArray, CodeArray, IntArray]:
        """Tokens int64 [n], offsets int32 [m+1], serials int64 [m] of sentences from `draw(count)`.

        Draws until `n_tokens` are reached and cuts the last sentence to fit.
        """
        if n_tokens < 0:
            raise InputError(f"replay memory: cannot draw {n_tokens} tokens.")
        parts: list[IntArray] = []
        missing = n_tokens if len(self) else 0
        mean = max(1.0, self.tokens / max(1, len(self)))
        while missing > 0:
            serials = draw(int(missing / mean * 1.1) + 8)
            total = np.cumsum(self.lengths(serials))
            needed = int(np.searchsorted(total, missing, side="left")) + 1
            parts.append(serials[:needed])
            missing -= int(total[min(needed, len(total)) - 1])
        serials = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        lengths = self.lengths(serials)
        if len(lengths):
            lengths[-1] += min(0, missing)
        starts = self._ends[serials % (self.slots + 1)]
        tokens = self._tokens[ranges(starts, lengths) % self.capacity]
        offsets = np.zeros(len(lengths) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        return tokens, offsets, serials

    def lengths(self, serials: IntArray) -> IntArray:
        """Tokens, int64 [m], of held serials."""
        size = self.slots + 1
        lengths: IntArray = self._ends[(serials + 1) % size] - self._ends[serials % size]
        return lengths


def _parts(lengths: IntArray, capacity: int, slots: int) -> list[IntArray]:
    """Indices split into runs that each fit into an empty ring, so that one run is one insert."""
    parts: list[IntArray] = []
    first = 0
    while first < len(lengths):
        total = np.cumsum(np.minimum(lengths[first : first + slots], capacity))
        count = max(1, int(np.searchsorted(total, capacity, side="right")))
        parts.append(np.arange(first, first + count))
        first += count
    return parts


Measure = Literal["none", "loss", "gradient"]
"""What `update` wants to be told of a sentence: nothing, its loss or the norm of its gradient."""


@dataclass(frozen=True)
class Sample:
    """Sentences drawn from a replay memory.

    tokens     int64 [n] row ids
    sentences  int32 [m+1] token offsets
    keys       int64 [m] what `update` expects for each sentence
    weights    float32 [m] importance weight of each sentence (1 for uniform draws)
    """

    tokens: IntArray
    sentences: CodeArray
    keys: IntArray
    weights: FloatArray


def sample_alike(
    ring: SentenceRing, n_tokens: int, random: np.random.Generator, since: int | None = None
) -> Sample:
    """Sentences drawn uniformly from a ring, of those from key `since` on."""
    first = max(ring.oldest, ring.oldest if since is None else since)

    def draw(count: int) -> IntArray:
        return random.integers(first, ring.next, size=count)

    tokens, sentences, keys = ring.gather(n_tokens if first < ring.next else min(n_tokens, 0), draw)
    return Sample(tokens, sentences, keys, np.ones(len(keys), np.float32))


def check_priority(priority: FloatArray | None, expected: int) -> None:
    """Raise InputError unless `priority` is None or `expected` finite numbers, none negative."""
    if priority is None:
        return
    values = np.asarray(priority)
    if values.shape != (expected,):
        raise InputError(
            f"replay memory: {expected} priorities expected, one a sentence, got {values.shape}."
        )
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError("replay memory: priorities must be finite and not negative.")


def of_sentences(priority: FloatArray, documents: CodeArray) -> FloatArray:
    """float32 [m]: sentences inherit the priority of their document.

    priority float32 [d]; documents int32 [d + 1], sentence offsets of documents
    """
    return np.repeat(priority, np.diff(documents))
