"""Whole expressions, found in the stream and joined to one word: 우한 + 폐렴 → 우한폐렴.

A phrase is a chain of two to four nouns between which nothing stands but blanks (`Passage`). It is
found when

- enough authors wrote exactly this chain, with a particle, a mark or another word on both sides.
  So the chain is free on the left and on the right, where the beginning and the end of a text
  count as an accessor each time (accessor variety; Feng et al. 2004, Computational Linguistics
  30:1), and no part of a longer chain is taken for a phrase of its own;
- some of them wrote it without a blank, as Korean writes one word;
- its parts keep together more than chance would have them: normalised pointwise mutual information
  (Bouma 2009, eq. 6; for more than two parts as in Van de Cruys 2011, eq. 5, over its largest
  value), log(p(x₁…xₙ) / Πp(xᵢ)) / (−(n − 1) log p(x₁…xₙ)), which is 1 where the parts never stand
  alone and 0 where they meet by chance. p is a share of all nouns, each counted once a document.

Chains hold phrases that were found before as one part, so that longer ones are found too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from embedding.kernel.records import IntArray, Phrase
from embedding.text.config import TextConfig
from embedding.text.generations import Generations
from embedding.text.passages import TOUCHES, Passage

PHRASES_VERSION = "1"
LEAST_PARTS, _MOST_PARTS = 2, 4
UNSPACED_VOICES = 2
"""Authors who wrote a phrase without a blank."""
EARLIER = 32
"""Authors remembered of a chain: as many uses from before it was a phrase are counted at most, so
that one author who repeats it makes no more of it."""
HORIZON = 4_000_000
"""Nouns, once a document, after which all counts are halved: shares follow the stream."""
_CANDIDATE, _NOUN = 420, 150
"""Bytes of a candidate and of a noun, all told (CPython 3.11)."""
_MARK = 4
"""Bytes that one author is remembered by."""
_SEPARATOR = " "


@dataclass(slots=True)
class _Candidate:
    """A chain that may be a phrase.

    count      documents that held it, halved with the other counts
    since      earliest event time (Unix seconds)
    voices, unspaced  marks of some authors who wrote it, and who wrote it without a blank
    """

    count: float = 0.0
    since: float = math.inf
    voices: bytes = b""
    unspaced: bytes = b""


@dataclass(slots=True)
class _Seen:
    """A chain in the documents at hand: its parts as words, and by document whether unspaced."""

    parts: tuple[str, ...]
    documents: dict[int, bool] = field(default_factory=dict)


class Phrases:
    """Finds phrases in documents and joins them, in bounded memory; one instance a process.

    The same documents in the same order give the same words. Memory holds nouns and chains of
    nouns with counts, and four bytes of each author's digest; what was unused for longest goes
    first, phrases in use among them.
    """

    def __init__(self, config: TextConfig) -> None:
        self._voices = config.phrase_voices
        self._least = config.phrase_npmi
        room = config.phrase_mb * 1_000_000
        self._candidates: Generations[str, _Candidate] = Generations(room * 3 // 4 // _CANDIDATE)
        self._nouns: Generations[str, _Count] = Generations(room // 4 // _NOUN)
        self._total = 0.0
        self._found: Generations[str, str] = Generations(config.phrases)
        self.found = 0
        """Phrases found so far."""

    @property
    def memory(self) -> int:
        """Bytes held, by reckoning."""
        return _CANDIDATE * len(self._candidates) + _NOUN * len(self._nouns)

    def read(
        self, documents: Sequence[Sequence[Passage]], voices: IntArray, published: Sequence[float]
    ) -> tuple[list[list[list[str]]], tuple[Phrase, ...]]:
        """Words of the sentences of documents, and the phrases that were found in them.

        voices     int64 [n], alike for documents of one author
        published  event time of each (Unix seconds)

        What these documents make a phrase is joined in them already. Sentences keep their places.
        """
        seen = self._count(documents)
        fresh = tuple(self._take(seen, voices, published))
        words = [[self._join(passage) for passage in document] for document in documents]
        return words, fresh

    def _count(self, documents: Sequence[Sequence[Passage]]) -> dict[str, _Seen]:
        seen: dict[str, _Seen] = {}
        for number, document in enumerate(documents):
            nouns: set[str] = set()
            for passage in document:
                surfaces, links = passage.surfaces, passage.links
                if not any(links):
                    nouns.update(surfaces)
                    continue
                for first, last in _chains(links):
                    if last == first + 1:
                        nouns.add(surfaces[first])
                        continue
                    chain = surfaces[first:last]
                    parts = [part for _, _, part in self._segments(chain)]
                    nouns.update(parts)
                    if len(parts) < LEAST_PARTS or len(chain) > _MOST_PARTS:
                        continue
                    key = _SEPARATOR.join(chain)
                    use = seen.get(key)
                    if use is None:
                        seen[key] = use = _Seen(tuple(passage.words[first:last]))
                    unspaced = all(link == TOUCHES for link in links[first + 1 : last])
                    use.documents[number] = use.documents.get(number, False) or unspaced
            nouns.discard("")
            self._add(nouns)
        return seen

    def _add(self, nouns: Iterable[str]) -> None:
        for noun in nouns:
            known = self._nouns.get(noun)
            if known is None:
                self._nouns.put(noun, _Count(1.0))
            else:
                known.count += 1.0
            self._total += 1.0
        if self._total >= HORIZON:
            self._total /= 2
            for count in self._nouns.values():
                count.count /= 2
            for candidate in self._candidates.values():
                candidate.count /= 2

    def _take(
        self, seen: dict[str, _Seen], voices: IntArray, published: Sequence[float]
    ) -> Iterator[Phrase]:
        """Remember the chains; those that are phrases now."""
        marks = [int(voice).to_bytes(8, "big", signed=True)[:_MARK] for voice in voices]
        for key, use in seen.items():
            chain = self._candidates.get(key)
            if chain is None:
                chain = _Candidate()
                self._candidates.put(key, chain)
            before = len(chain.voices) // _MARK
            chain.count += len(use.documents)
            for number, unspaced in use.documents.items():
                chain.since = min(chain.since, published[number])
                chain.voices = _with(chain.voices, marks[number], max(self._voices, EARLIER))
                if unspaced:
                    chain.unspaced = _with(chain.unspaced, marks[number], UNSPACED_VOICES)
            if (
                len(chain.voices) >= _MARK * self._voices
                and len(chain.unspaced) >= _MARK * UNSPACED_VOICES
                and self._keeps_together(key, chain.count)
            ):
                word = key.replace(_SEPARATOR, "")
                self._found.put(key, word)
                self.found += 1
                chain.voices = chain.unspaced = b""  # who writes it now is counted for the phrase
                joined = min(published[number] for number in use.documents)
                yield Phrase(word, use.parts, chain.since, joined, before)

    def _keeps_together(self, key: str, count: float) -> bool:
        """Whether the normalised mutual information is as high as is asked for."""
        parts = [part for _, _, part in self._segments(key.split(_SEPARATOR))]
        counts = [self._nouns.get(part) for part in parts]
        whole = math.log(min(count / self._total, 0.5))
        alone = sum(
            math.log(min(max(noun.count if noun else 0.0, count) / self._total, 1.0))
            for noun in counts
        )
        return whole - alone >= self._least * (len(parts) - 1) * -whole

    def _join(self, passage: Passage) -> list[str]:
        words, links = passage.words, passage.links
        if not any(links):
            return words
        joined: list[str] = []
        for first, last in _chains(links):
            if last == first + 1:
                joined.append(words[first])
                continue
            for begin, end, surface in self._segments(passage.surfaces[first:last]):
                joined.append(words[first + begin] if end == begin + 1 else surface)
        return joined

    def _segments(self, chain: list[str]) -> Iterator[tuple[int, int, str]]:
        """(first, last, surface) of a chain's parts: the longest phrase from the left each time."""
        begin, end = 0, len(chain)
        while begin < end:
            for stop in range(min(end, begin + _MOST_PARTS), begin + 1, -1):
                word = self._found.get(_SEPARATOR.join(chain[begin:stop]))
                if word is not None:
                    yield begin, stop, word
                    begin = stop
                    break
            else:
                yield begin, begin + 1, chain[begin]
                begin += 1


@dataclass(slots=True)
class _Count:
    count: float


def _chains(links: Sequence[int]) -> Iterator[tuple[int, int]]:
    """[first, last) of each run of linked words; a word that is not linked is a run alone."""
    first = 0
    for position in range(1, len(links)):
        if not links[position]:
            yield first, position
            first = position
    if links:
        yield first, len(links)


def _with(marks: bytes, mark: bytes, most: int) -> bytes:
    """The marks with one more, unless it is among them or they are enough."""
    if len(marks) >= _MARK * most:
        return marks
    for begin in range(0, len(marks), _MARK):
        if marks[begin : begin + _MARK] == mark:
            return marks
    return marks + mark
