"""Sentences that a site repeats on page after page: its own words, not those of who writes there.

A sentence of at least WORDS words is boilerplate of a source from its LEAST-th document on, if it
stood in at least `share` of the source's documents since its first. A document counts only where at
least FRESH of its characters are new: what stands on pages that otherwise differ is the site's.
Texts that people copy as a whole, as in a campaign, are no boilerplate, however many there are.
What is boilerplate is cut off a sentence that begins or ends with it, too: a site's words often
follow a text without a mark between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from embedding.text.generations import Generations

BOILERPLATE_VERSION = "1"
MIN_SENTENCE_WORDS = 5
"""Whitespace-delimited words: shorter sentences are repeated by people, too."""
MIN_REPEATS = 10
_FRESH = 0.25
MAX_SENTENCES = 50_000
"""Sentences, at some 250 bytes each."""
_SOURCES = 4_096
LENGTHS = 64
"""Lengths of boilerplate sentences of a source that sentences are looked through for."""


class _Sentence:
    """count: documents of the source that held it; first: how many were read before it came."""

    __slots__ = ("count", "first")

    def __init__(self, first: int) -> None:
        self.count = 0
        self.first = first


class _Source:
    """read: documents so far; lengths: characters of its boilerplate sentences."""

    __slots__ = ("lengths", "read")

    def __init__(self) -> None:
        self.read = 0
        self.lengths: set[int] = set()


class Boilerplate:
    """Leaves out what sites repeat, in bounded memory; one instance a process.

    Of a text it keeps hashes alone. What was unused for longest is forgotten first.
    """

    def __init__(self, share: float) -> None:
        """share: of a source's documents; above 0."""
        self._share = share
        self._sources: Generations[str, _Source] = Generations(_SOURCES)
        self._seen: Generations[tuple[str, int], _Sentence] = Generations(MAX_SENTENCES)
        self.left_out = 0
        """Sentences left out so far."""

    @property
    def sentences(self) -> int:
        """Sentences that are remembered."""
        return len(self._seen)

    def without(self, source: str, sentences: Sequence[str]) -> list[str]:
        """The sentences of a document of a source, in order, without what the site repeats."""
        place = self._sources.get(source)
        if place is None:
            place = _Source()
            self._sources.put(source, place)
        new = total = 0
        known: dict[int, _Sentence] = {}
        parts = [part for one in sentences for part in self._parts(source, place, one)]
        for sentence, mark in parts:
            total += len(sentence)
            sentence_count = self._seen.get((source, mark)) if mark else None
            if sentence_count is None:
                new += len(sentence)
            if mark and sentence_count is None:
                sentence_count = _Sentence(place.read)
                self._seen.put((source, mark), sentence_count)
            if sentence_count is not None:
                known[mark] = sentence_count
        place.read += 1
        if new >= _FRESH * total:
            for sentence_count in known.values():
                sentence_count.count += 1
        repeated = {
            mark
            for mark, sentence_count in known.items()
            if self._is_repeated(sentence_count, place.read)
        }
        if not repeated:
            return [sentence for sentence, _ in parts]
        kept = []
        for sentence, mark in parts:
            if mark not in repeated:
                kept.append(sentence)
            elif len(place.lengths) < LENGTHS:
                place.lengths.add(len(sentence))
        self.left_out += len(parts) - len(kept)
        return kept

    def _parts(self, source: str, place: _Source, sentence: str) -> Iterator[tuple[str, int]]:
        """A sentence, or boilerplate in it and the rest, with marks; 0 of what is too short."""
        for length in sorted(place.lengths, reverse=True):
            for own, rest in (
                (sentence[-length:], sentence[:-length].rstrip()),
                (sentence[:length], sentence[length:].lstrip()),
            ):
                if not rest or own != own.strip():
                    continue
                sentence_count = self._seen.get((source, hash(own)))
                if sentence_count is not None and self._is_repeated(sentence_count, place.read):
                    yield rest, _mark(rest)
                    yield own, hash(own)
                    return
        yield sentence, _mark(sentence)

    def _is_repeated(self, sentence_count: _Sentence, read: int) -> bool:
        return sentence_count.count >= MIN_REPEATS and sentence_count.count >= self._share * (
            read - sentence_count.first
        )


def _mark(sentence: str) -> int:
    """What a sentence is remembered by; 0 of one that is too short to be boilerplate."""
    return hash(sentence) if sentence.count(" ") + 1 >= MIN_SENTENCE_WORDS else 0
