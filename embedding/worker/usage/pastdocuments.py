"""Documents as row ids: what a node remembers of a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedding.kernel.positions import ranges
from embedding.kernel.records import CodeArray, IntArray


@dataclass(frozen=True)
class PastDocuments:
    """Documents of one source.

    ids        int32 [n], the row id of each token, -1 for none
    sentences  int64 [m + 1], token offsets of sentences
    documents  int64 [d + 1], sentence offsets of documents
    units      int64 [d], the unit (0 to UNITS - 1) that each document belongs to
    voices     int64 [d], alike for documents of one author; below 0 where that is unknown
    numbers    int64 [d], the line of its corpus that each document is, or a number by its address
    life       mark of the dead process that had learnt it
    """

    source: str
    ids: CodeArray
    sentences: IntArray
    documents: IntArray
    units: IntArray
    voices: IntArray
    numbers: IntArray
    life: str = ""

    def take(self, which: IntArray) -> PastDocuments:
        """Some of the documents, int64 [k], in this order."""
        ends = self.documents[which + 1]
        sentences, documents = _gathered(self.documents[which], ends)
        starts, stops = self.sentences[sentences], self.sentences[sentences + 1]
        tokens, offsets = _gathered(starts, stops)
        return PastDocuments(
            *(self.source, self.ids[tokens], offsets, documents),
            *(self.units[which], self.voices[which], self.numbers[which], self.life),
        )


def of_corpus(parts: Sequence[PastDocuments]) -> list[PastDocuments]:
    """Documents of several stretches, one for each source, in the order of their numbers."""
    sources: dict[str, list[PastDocuments]] = {}
    for part in parts:
        sources.setdefault(part.source, []).append(part)
    found = [joined(each) for _, each in sorted(sources.items())]
    return [each.take(np.argsort(each.numbers, kind="stable")) for each in found]


def joined(parts: Sequence[PastDocuments]) -> PastDocuments:
    """Documents of several stretches (at least one) behind each other, as of the first source."""
    ids = np.concatenate([part.ids for part in parts])
    units, voices, numbers = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("units", "voices", "numbers")
    )
    sentences = _behind([part.sentences for part in parts])
    documents = _behind([part.documents for part in parts])
    return PastDocuments(parts[0].source, ids, sentences, documents, units, voices, numbers)


def _behind(offsets: Sequence[IntArray]) -> IntArray:
    """Offsets of several lists as offsets of one."""
    lengths = [np.diff(each) for each in offsets]
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(lengths))])


def _gathered(starts: IntArray, stops: IntArray) -> tuple[IntArray, IntArray]:
    """The places of several ranges behind each other, int64 [n], and their offsets [k + 1]."""
    lengths = stops - starts
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return ranges(starts, lengths), offsets
