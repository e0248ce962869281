"""Words that the analyser takes to pieces, found in what is read.

A noun of its own is met before many different particles: the variety of what follows it (accessor
variety, Feng et al. 2004, Computational Linguistics 30:1) tells a word from a chance string. Only
eojeols that the analyser had to look at are counted, so that this costs the stream next to
nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from embedding.kernel.records import Phrase
from embedding.text.generations import Generations
from embedding.text.morphemes import Morpheme

LEAST, MOST = 2, 8
"""Syllables of a word."""
VARIETY = 6
"""Different tails (particles, or none) behind a word."""
MENTIONS = 8
"""Analysed eojeols that begin with it."""
_WHOLE = 0.2
"""Share of them in which the analyser took it for one word, above which nothing is to be found."""
_HANGUL = re.compile(r"[가-힣]+")
_NOUNS = ("NNG", "NNP", "NNB", "NR", "MAG", "VV", "VA", "XR", "IC", "UN")
_MOST_TAILS = 32
_ENTRY = 800
_TAIL = 80
"""Bytes of a candidate, and of one tail more."""


class _Occurrences(NamedTuple):
    counts: list[int]
    """Mentions, and those in which the analyser said one word."""
    tails: set[str]
    parts: tuple[str, ...]
    """The words that it is read as."""
    since: float
    """Event time (Unix seconds) of the first mention."""


class WordFinder:
    """Candidates for new words, from analysed eojeols; `capacity` in bytes.

    when  event time (Unix seconds) of what is read
    """

    def __init__(self, capacity: int) -> None:
        self.when = math.inf
        self._heard: Generations[str, _Occurrences] = Generations(
            capacity, lambda _, heard: _ENTRY + _TAIL * len(heard.tails)
        )
        self._ripe: dict[str, None] = {}

    def hear(
        self, head: str, tail: str, tokens: Sequence[Morpheme], parts: tuple[str, ...]
    ) -> None:
        """An eojeol was analysed as `head`, of the morphemes `tokens`, and `tail`.

        parts  the words that the head is read as; it alone where the analyser takes it for one
        """
        whole = parts == (head,)
        if not LEAST <= len(head) <= MOST or not _HANGUL.fullmatch(head):
            return
        heard = self._heard.get(head)
        if heard is None:
            if whole or not _in_pieces(tokens):
                return
            heard = _Occurrences([0, 0], set(), parts, self.when)
            self._heard.put(head, heard)
        heard.counts[0] += 1
        heard.counts[1] += whole
        if len(heard.tails) < _MOST_TAILS and tail not in heard.tails:
            heard.tails.add(tail)
            self._heard.grew(_TAIL)
        if len(heard.tails) >= VARIETY and heard.counts[0] >= MENTIONS:
            self._ripe[head] = None

    def take(self, most: int) -> list[Phrase]:
        """At most `most` words found since the last time; the analyser takes all to pieces."""
        found = []
        for word in sorted(self._ripe):
            heard = self._heard.get(word)
            if heard is not None and heard.counts[1] <= _WHOLE * heard.counts[0]:
                since = min(heard.since, self.when)
                found.append(Phrase(word, heard.parts, since, self.when, heard.counts[0]))
        self._ripe.clear()
        return found[:most]

    @property
    def memory(self) -> int:
        """Bytes held, by reckoning."""
        return self._heard.weight

    def __len__(self) -> int:
        return len(self._heard)


def _in_pieces(tokens: Sequence[Morpheme]) -> bool:
    """Whether a head fell into pieces as an unknown word does: at least one of one syllable, none
    of them a prefix or suffix."""
    return (
        len(tokens) > 1
        and any(token.len == 1 for token in tokens)
        and all(token.tag.partition("-")[0] in _NOUNS for token in tokens)
    )
