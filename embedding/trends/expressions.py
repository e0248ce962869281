"""What a phrase does to counts: it takes mentions from its parts, and is counted once found.

A phrase is several words that a text process reads as one since it found them to be an expression
(`text/phrases.py`). Windows list it from then on. What held it before was counted for its parts;
how many documents that were, and since when, the snapshot says (`records.Phrase`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from embedding.kernel.records import IntArray, Phrase
from embedding.trends.frequency import Frequency
from embedding.trends.material import Mask, ReportInput
from embedding.trends.significance import TestArray


@dataclass(frozen=True)
class Unlisted:
    """Documents that held words before windows listed them, by word, int64 [n] each.

    now     of the window that is reported
    before  of the windows before it
    first   number of the first window that held the word, as `ReportInput.past` counts them; that
            of the reported window where nothing is known
    fresh   bool [n], whether no window before this one listed it
    """

    now: IntArray
    before: IntArray
    first: IntArray
    fresh: Mask


def unlisted(words: Sequence[str], material: ReportInput) -> Unlisted:
    """What the snapshot knows of phrases among `words`; nothing of other words.

    Of a phrase that was written before the reported window it is not known how its documents are
    permuted, so they count as of before.
    """
    known = material.snapshot.phrases
    starts = [snapshot.manifest.window.start.timestamp() for snapshot in material.earlier]
    begin = material.snapshot.manifest.window.start.timestamp()
    now, before = np.zeros(len(words), np.int64), np.zeros(len(words), np.int64)
    first, fresh = np.full(len(words), len(starts), np.int64), np.zeros(len(words), bool)
    for at, word in enumerate(words):
        phrase = known.get(word)
        if phrase is None or not phrase.earlier:
            continue
        fresh[at] = phrase.joined >= begin
        if phrase.since >= begin:
            now[at] = phrase.earlier
        else:
            before[at] = phrase.earlier
            first[at] = max(int(np.searchsorted(starts, phrase.since, side="right")) - 1, 0)
    return Unlisted(now, before, first, fresh)


def incomparable(words: Sequence[str], material: ReportInput, windows: int, least: int) -> Mask:
    """bool [n]: phrases found within the `windows` that a rise is judged by, too late for it.

    At least `least` documents held them before they were listed, so that to begin to count them
    would look like a rise.
    """
    starts = [past.manifest.window.start.timestamp() for past in material.earlier[-windows:]]
    late = {
        phrase.word
        for phrase in material.snapshot.phrases.values()
        if phrase.earlier >= least and starts and phrase.joined >= starts[0]
    }
    return np.fromiter((word in late for word in words), bool, len(words))


def explained(
    words: Sequence[str],
    now: Frequency,
    usual: TestArray,
    born: Collection[str],
    material: ReportInput,
) -> Mask:
    """bool [n]: words that came up no more than phrases did that were born with them as parts.

    usual  documents of this window, per 1,000, that would hold each word as before
    """
    phrases = [
        material.snapshot.phrases[word] for word in born if word in material.snapshot.phrases
    ]
    came = _with_part(words, phrases, now, material)
    return (came > 0) & (_excess(words, now, usual) <= came)


def taken(words: Sequence[str], now: Frequency, usual: TestArray, material: ReportInput) -> Mask:
    """bool [n]: words that went down no more than phrases took of them, which are read as one."""
    took = _with_part(words, list(material.snapshot.phrases.values()), now, material)
    missing = -_excess(words, now, usual)
    return (took > 0) & (missing <= took)


def _excess(words: Sequence[str], now: Frequency, usual: TestArray) -> TestArray:
    documents = now.documents_of(words)
    excess: TestArray = documents - usual * int(now.total_documents.sum()) / 1000.0
    return excess


def _with_part(
    words: Sequence[str], phrases: Sequence[Phrase], now: Frequency, material: ReportInput
) -> IntArray:
    """int64 [n]: documents of the window that hold phrases of which a word is a part."""
    names = [phrase.word for phrase in phrases]
    holding = now.documents_of(names) + unlisted(names, material).now
    by_part: dict[str, int] = {}
    for phrase, documents in zip(phrases, holding.tolist(), strict=True):
        for part in set(phrase.parts):
            by_part[part] = by_part.get(part, 0) + documents
    return np.fromiter((by_part.get(word, 0) for word in words), np.int64, len(words))
