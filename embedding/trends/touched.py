"""Words that a change of the tokenizer or its dictionary touched.

When a dictionary gains a word, texts that were cut into its parts hold the whole word from then on:
it seems to be born, and its parts lose company that they had. When it loses one, the other way
round. The tokenizer's digest shows whether that happened; which words it touched is seen by their
spelling: words of one window alone that are made of two or more words of the other one, and the
parts they are made of. Any new word can be spelt with short words, so a part counts as touched only
where such words may have taken a good share of its occurrences.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

_SHARE = 0.25
"""Of a part's occurrences: fewer that may have gone to whole words do not change its company."""
_MOST_PARTS = 4
_LONGEST = 24


def touched_words(before: Mapping[str, int], after: Mapping[str, int]) -> set[str]:
    """Words that may have been cut in another way in both windows.

    before, after  occurrences of the words that were read in each window
    """
    found: set[str] = set()
    for one, other in ((after, before), (before, after)):
        whole: Counter[str] = Counter()
        for word in one.keys() - other.keys():
            if parts := _parts(word, other):
                found.add(word)
                whole.update(dict.fromkeys(parts, one[word]))
        found.update(part for part, count in whole.items() if count >= _SHARE * other[part])
    return found


def _parts(word: str, known: Collection[str], most: int = _MOST_PARTS) -> tuple[str, ...]:
    """The fewest known words that the word is made of, at least two; () when there are none."""
    if not 2 <= len(word) <= _LONGEST:
        return ()
    best: dict[int, tuple[str, ...]] = {0: ()}
    for end in range(1, len(word) + 1):
        matches = (_extended(best, word[start:end], start, known) for start in _starts(word, end))
        options = [match for match in matches if match]
        if options:
            best[end] = min(options, key=lambda match: (len(match), match))
    whole = best.get(len(word), ())
    return whole if 2 <= len(whole) <= most else ()


def _starts(word: str, end: int) -> Iterable[int]:
    """Where a part may begin: the whole word is no part."""
    return range(1 if end == len(word) else 0, end)


def _extended(
    best: dict[int, tuple[str, ...]], part: str, start: int, known: Collection[str]
) -> tuple[str, ...]:
    return (*best[start], part) if start in best and part in known else ()
