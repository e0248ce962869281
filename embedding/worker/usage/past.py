"""What a node read in the last windows, as row ids in the memory of its process, bounded."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from embedding.exchange.payload import UNITS
from embedding.kernel.positions import ranges
from embedding.kernel.records import Calendar, CodeArray, IntArray, TokenBlock
from embedding.worker.corpus.authors import mixed, name_marks
from embedding.worker.words.latewords import LateWords


@dataclass(frozen=True)
class PastDocuments:
    """Documents of one source.

    ids        int32 [n], the row id of each token, below 0 for none
    sentences  int64 [m + 1], token offsets of sentences
    documents  int64 [d + 1], sentence offsets of documents
    units      int64 [d], the unit (0 to UNITS - 1) that each document belongs to: by the name of
               its author where that is known, else by its text and time
    voices     int64 [d], alike for documents of one author; below 0 where that is unknown
    numbers    int64 [d], not negative, by the text and time of each document
    incarnation  mark of the dead process that had learnt it
    """

    source: str
    ids: CodeArray
    sentences: IntArray
    documents: IntArray
    units: IntArray
    voices: IntArray
    numbers: IntArray
    incarnation: str = ""

    def take(self, which: IntArray) -> PastDocuments:
        """Some of the documents, int64 [k], in this order."""
        ends = self.documents[which + 1]
        sentences, documents = _gathered(self.documents[which], ends)
        starts, stops = self.sentences[sentences], self.sentences[sentences + 1]
        tokens, offsets = _gathered(starts, stops)
        return PastDocuments(
            *(self.source, self.ids[tokens], offsets, documents),
            *(self.units[which], self.voices[which], self.numbers[which], self.incarnation),
        )

    def chance_order(self, window: int) -> IntArray:
        """int64 [d]: places in an order of each window, in which one document stands before another
        whichever others there are, whoever reads them, and when."""
        salt = np.uint64(window % 2**63)
        order: IntArray = np.argsort(mixed(self.numbers.astype(np.uint64) + salt), kind="stable")
        return order


class PastTexts:
    """The texts of the last windows as row ids; `most` tokens, the oldest leave first.

    Words without a row are kept by name, until they have one or too many have come since.
    """

    def __init__(self, calendar: Calendar, most: int, windows: int) -> None:
        self.most = most
        self.windows = windows
        self.tokens = 0
        self._calendar = calendar
        self._held: dict[int, deque[PastDocuments]] = {}
        self._seen: Counter[tuple[int, str, str]] = Counter()
        self._late = LateWords()

    def add(self, blocks: Sequence[TokenBlock], tables: Sequence[IntArray]) -> None:
        """Remember blocks; tables: for each block int64 [W], the row id of each of its words."""
        for block, table in zip(blocks, tables, strict=True):
            numbers = _numbers(block)
            voices = block.voices if len(block.voices) else np.full_like(numbers, -1)
            whole = PastDocuments(
                block.source,
                self._late.coded(block.words, table).astype(np.int32)[block.codes],
                block.sentences.astype(np.int64),
                block.documents.astype(np.int64),
                np.where(voices < 0, numbers, voices) % UNITS,
                voices,
                numbers,
                block.incarnation,
            )
            starts = self._calendar.starts(block.published)
            for start in np.unique(starts).tolist():
                which = np.flatnonzero(starts == start)
                part = whole if len(which) == len(starts) else whole.take(which)
                self._held.setdefault(start, deque()).append(part)
                self.tokens += len(part.ids)
                self._seen[start, block.source, block.incarnation] += len(which)
        self._shorten()

    def seen(self, window: int, incarnation: str = "", source: str | None = None) -> int:
        """Documents of a window that were remembered once, of the node itself or of a process
        that died."""
        return sum(
            n
            for (start, name, mark), n in self._seen.items()
            if start == window and mark == incarnation and source in (None, name)
        )

    def find_late_words(self, rows: Callable[[Sequence[str]], IntArray]) -> None:
        """Words that got a row since they were read have it from now on, in all of their mentions.

        A node that reads a whole corpus looks ahead, and gives a word its row before the first
        mention. A crawl waits for several authors, and one of several nodes for the others.

        rows  int64 [n] of words, -1 for one without a row
        """
        if (read := self._late.find(rows)) is not None:
            for window, parts in self._held.items():
                self._held[window] = deque(replace(part, ids=read(part.ids)) for part in parts)

    def of_window(self, window: int) -> list[PastDocuments]:
        """What is remembered of a window (Unix seconds of its start), as it was read."""
        return list(self._held.get(window, ()))

    def before(self, window: int) -> list[int]:
        return sorted((start for start in self._held if start < window), reverse=True)[
            : self.windows
        ]

    def _shorten(self) -> None:
        while self.tokens > self.most or len(self._held) > self.windows + 1:
            oldest = min(self._held)
            self.tokens -= len(self._held[oldest].popleft().ids)
            if not self._held[oldest]:
                del self._held[oldest]
                for key in [key for key in self._seen if key[0] < oldest]:
                    del self._seen[key]


def _numbers(block: TokenBlock) -> IntArray:
    """int64 [n], not negative: by what the documents are; of plain lines by words and time."""
    if len(block.contents):
        return block.contents
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(name_marks(block.words)[block.codes])])
    ends = sums[block.document_tokens()]
    seconds = block.published.astype(np.int64).astype(np.uint64)
    numbers: IntArray = (mixed(np.diff(ends) ^ mixed(seconds)) >> np.uint64(1)).astype(np.int64)
    return numbers


def of_busiest(voices: IntArray, numbers: IntArray, share: float) -> npt.NDArray[np.bool_]:
    """bool [d]: the documents of those authors who wrote most, a `share` of all known ones.

    An author of a single document is never one of them. Of authors who wrote equally much, the
    numbers of their documents decide: a crawl draws other voices at each start.
    """
    by_number = np.argsort(numbers, kind="stable")
    by_number = by_number[voices[by_number] >= 0]
    known, first, documents = np.unique(voices[by_number], return_index=True, return_counts=True)
    order = np.lexsort((first, -documents))[: int(np.ceil(share * len(known)))]
    return np.isin(voices, known[order[documents[order] > 1]])


def of_corpus(parts: Sequence[PastDocuments]) -> list[PastDocuments]:
    """Documents of several stretches, one for each source and process that learnt them, in an
    order of what they are: in which they were read says nothing."""
    texts: dict[tuple[str, str], list[PastDocuments]] = {}
    for part in parts:
        texts.setdefault((part.source, part.incarnation), []).append(part)
    stretches = [joined(part) for _, part in sorted(texts.items())]
    return [part.take(np.lexsort((part.units, part.numbers))) for part in stretches]


def joined(parts: Sequence[PastDocuments]) -> PastDocuments:
    """Documents of several stretches (at least one) behind each other, as of the source and the
    process of the first."""
    ids, units, voices, numbers = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("ids", "units", "voices", "numbers")
    )
    sentences = _behind([part.sentences for part in parts])
    documents = _behind([part.documents for part in parts])
    first = parts[0]
    return PastDocuments(
        first.source, ids, sentences, documents, units, voices, numbers, first.incarnation
    )


def _behind(offsets: Sequence[IntArray]) -> IntArray:
    """Offsets of several lists as offsets of one."""
    lengths = [np.diff(each) for each in offsets]
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(lengths))])


def _gathered(starts: IntArray, stops: IntArray) -> tuple[IntArray, IntArray]:
    """The places of several ranges behind each other, int64 [n], and their offsets [k + 1]."""
    lengths = stops - starts
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return ranges(starts, lengths), offsets
