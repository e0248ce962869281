"""The cache in front of the morpheme analyser: what a whitespace-delimited word was analysed as.

An analysis is the words that are kept of an eojeol, as pieces of it (`morphemes.Piece`). It is
learnt from the eojeol standing in its sentence, never alone. Most eojeols are always analysed
alike; to find those that are not, a known one is analysed again at its 2nd, 8th, 32nd …
occurrence. One that then differs is kept apart by how the eojeol before it ends, which mostly
decides: 있다 is an auxiliary verb in 살고 있는 and a main verb in 집이 있는.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from embedding.text.generations import Generations
from embedding.text.morphemes import Piece

Analysis = tuple[Piece, ...]

_ENTRY = 360
_PIECE = 88
_CONTEXT = 300
"""Bytes of an eojeol with a reading, besides the eojeol and its words; of one of these words; and
of one context more."""

FIRST_CHECK = 2
MOST_CONTEXTS = 64
"""Endings before it that an eojeol of several readings is kept apart by."""


@dataclass(frozen=True, slots=True)
class EojeolReading:
    """How an eojeol was read: the words kept of it, and the ending that it shows to the next."""

    pieces: Analysis
    ending: str


@dataclass(slots=True)
class _Slot:
    """A reading, how often it was used, and how often the analyser said the same."""

    reading: EojeolReading
    seen_after: str
    check: int = FIRST_CHECK
    contexts: dict[str, _Slot] | None = None
    uses: int = 1
    votes: int = 1

    def use(self) -> EojeolReading | None:
        """The reading; None when it is time to check it."""
        self.uses += 1
        if self.uses != self.check:
            return self.reading
        self.check *= 4
        return None

    def vote(self, reading: EojeolReading) -> None:
        """The analyser said this: the majority stays (Boyer and Moore 1991)."""
        if reading.pieces == self.reading.pieces:
            self.votes += 1
        elif self.votes > 1:
            self.votes -= 1
        else:
            self.reading, self.votes = reading, 1


def _weigh(eojeol: str, slot: _Slot) -> int:
    """Bytes of an eojeol and what is known of it (CPython 3.11)."""
    size = sys.getsizeof(eojeol) + _PIECE * len(slot.reading.pieces) + _ENTRY
    return size + _CONTEXT * len(slot.contexts) if slot.contexts is not None else size


class EojeolCache:
    """Bounded memory of readings; `capacity` in bytes."""

    def __init__(self, capacity: int) -> None:
        self.known: Generations[str, _Slot] = Generations(capacity, _weigh)
        self.hits = 0
        self.misses = 0

    def get(self, eojeol: str, before: str | None) -> EojeolReading | None:
        """The reading of `eojeol` behind the ending `before` ("" at the start of a sentence).

        None when it is unknown, unknown in this context, or due to be checked. `before` is None
        when nobody knows it yet; then only an eojeol of one reading is answered.
        """
        slot = self.known.get(eojeol)
        if slot is not None:
            if slot.contexts is not None:
                slot = None if before is None else slot.contexts.get(before)
            if slot is not None:
                reading = slot.use()
                if reading is not None:
                    self.hits += 1
                    return reading
        self.misses += 1
        return None

    def put(self, eojeol: str, before: str, reading: EojeolReading, check: int) -> None:
        """Remember a guess, to be checked at its `check`-th occurrence."""
        self.known.put(eojeol, _Slot(reading, before, check))

    def learn(self, eojeol: str, before: str, reading: EojeolReading) -> None:
        """Remember what the analyser said in context."""
        slot = self.known.get(eojeol)
        if slot is None:
            self.known.put(eojeol, _Slot(reading, before))
        elif slot.contexts is not None:
            known = slot.contexts.get(before)
            if known is not None:
                known.vote(reading)
            elif len(slot.contexts) < MOST_CONTEXTS:
                slot.contexts[before] = _Slot(reading, before)
                self.known.grew(_CONTEXT)
        elif slot.reading.pieces == reading.pieces or slot.seen_after == before:
            slot.vote(reading)
        else:
            first = _Slot(slot.reading, slot.seen_after, slot.check)
            slot.contexts = {slot.seen_after: first, before: _Slot(reading, before)}
            self.known.grew(2 * _CONTEXT)
