"""Sentences that a site repeats on page after page: its own words, not those of who writes there.

A sentence of at least WORDS words is boilerplate of a source from its LEAST-th document on, if it
stood in at least `share` of the source's documents since its first. A document counts only where at
least FRESH of its characters are new: what stands on pages that otherwise differ is the site's.
Texts that people copy as a whole, as in a campaign, are no boilerplate, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence

from embedding.text.generations import Generations

VERSION = "1"
WORDS = 5
"""Whitespace-delimited words: shorter sentences are repeated by people, too."""
LEAST = 10
FRESH = 0.25
REMEMBERED = 50_000
"""Sentences, at some 250 bytes each."""
SOURCES = 4_096


class _Sentence:
    """count: documents of the source that held it; first: how many were read before it came."""

    __slots__ = ("count", "first")

    def __init__(self, first: int) -> None:
        self.count = 0
        self.first = first


class Boilerplate:
    """Leaves out what sites repeat, in bounded memory; one instance a process.

    Of a text it keeps hashes alone. What was unused for longest is forgotten first.
    """

    def __init__(self, share: float) -> None:
        """share: of a source's documents; above 0."""
        self._share = share
        self._read: Generations[str, list[int]] = Generations(SOURCES)
        self._seen: Generations[tuple[str, int], _Sentence] = Generations(REMEMBERED)
        self.left_out = 0
        """Sentences left out so far."""

    @property
    def sentences(self) -> int:
        """Sentences that are remembered."""
        return len(self._seen)

    def without(self, source: str, sentences: Sequence[str]) -> list[str]:
        """The sentences of a document of a source, in order, without what the site repeats."""
        read = self._read.get(source)
        if read is None:
            read = [0]
            self._read.put(source, read)
        new = total = 0
        known: dict[int, _Sentence] = {}
        marks = [0] * len(sentences)
        for at, sentence in enumerate(sentences):
            total += len(sentence)
            if sentence.count(" ") + 1 < WORDS:
                new += len(sentence)
                continue
            marks[at] = mark = hash(sentence)
            held = self._seen.get((source, mark))
            if held is None:
                new += len(sentence)
                held = _Sentence(read[0])
                self._seen.put((source, mark), held)
            known[mark] = held
        read[0] += 1
        if new >= FRESH * total:
            for held in known.values():
                held.count += 1
        repeated = {mark for mark, held in known.items() if self._is_repeated(held, read[0])}
        if not repeated:
            return list(sentences)
        kept = [one for one, mark in zip(sentences, marks, strict=True) if mark not in repeated]
        self.left_out += len(sentences) - len(kept)
        return kept

    def _is_repeated(self, held: _Sentence, read: int) -> bool:
        return held.count >= LEAST and held.count >= self._share * (read - held.first)
