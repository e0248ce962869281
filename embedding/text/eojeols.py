"""The cache in front of the morpheme analyser: what a whitespace-delimited word was analysed as.

An analysis is the tuple of words that are kept of an eojeol. It is learnt from the eojeol standing
in its sentence, never alone. Most eojeols are always analysed alike; to find those that are not, a
known eojeol is analysed again at its 4th, 16th, 64th … occurrence. One that then differs is kept
apart by the last syllable of the eojeol before it, which is mostly the particle or ending that
decides (살고 있는 against 집이 있는).
"""

from __future__ import annotations

from embedding.text.generations import Generations

Analysis = tuple[str, ...]

_MARKS = ".,!?\"')]”’…"


class _Entry:
    """What is known of one eojeol."""

    __slots__ = ("analysis", "check", "contexts", "uses")

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self.contexts: dict[str, Analysis] | None = None
        self.uses = 1
        self.check = 4


class EojeolCache:
    """Bounded memory of analyses; `capacity` counts eojeols."""

    def __init__(self, capacity: int) -> None:
        self._known: Generations[str, _Entry] = Generations(capacity)
        self.hits = 0
        self.misses = 0

    def get(self, eojeol: str, before: str) -> Analysis | None:
        """The analysis of `eojeol` after the eojeol `before` ("" at the start of a sentence).

        None when it is unknown, unknown in this context, or due to be checked.
        """
        entry = self._known.get(eojeol)
        if entry is not None:
            if entry.contexts is not None:
                known = entry.contexts.get(_context(before))
                if known is not None:
                    self.hits += 1
                    return known
            else:
                entry.uses += 1
                if entry.uses != entry.check:
                    self.hits += 1
                    return entry.analysis
                entry.check *= 4
        self.misses += 1
        return None

    def learn(self, eojeol: str, before: str, analysis: Analysis) -> None:
        """Remember an analysis made in context."""
        entry = self._known.get(eojeol)
        if entry is None:
            self._known.put(eojeol, _Entry(analysis))
        elif entry.contexts is not None:
            entry.contexts[_context(before)] = analysis
        elif entry.analysis != analysis:
            entry.contexts = {_context(before): analysis}

    def __len__(self) -> int:
        return len(self._known)

    def clear(self) -> None:
        """Forget everything (after a change of dictionary)."""
        self._known.clear()


def _context(before: str) -> str:
    """Last syllable of the eojeol before, without marks; at most one character, so bounded."""
    return before.rstrip(_MARKS)[-1:]
