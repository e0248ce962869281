"""What a push carries: how far rows moved, and what was read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

import numpy as np
import numpy.typing as npt

from embedding.kernel.authors import AUTHOR_GROUPS
from embedding.kernel.fields import (
    DISTINCT_IDS,
    MOMENT,
    Column,
    NotSent,
    WholeNumber,
    WordColumn,
)
from embedding.kernel.records import (
    CodeArray,
    CountColumns,
    FloatArray,
    HalfArray,
    IntArray,
    Table,
)
from embedding.models.contextbags import ContextBag, added_up

ByteArray = npt.NDArray[np.uint8]

MAX_FIGURE = 2**40
"""Most mentions of a word, and the largest figure of its contexts."""


_MOVES = Column("f4 f2", ("n", "dim"), finite=True, because=": the node's training has diverged")


@dataclass(frozen=True)
class RowDelta:
    """Sum of a node's local updates to some rows of one table.

    ids     int64 [n], distinct row ids given by the server; of `sub` bucket numbers
    values  float32 or float16 [n, dim]
    """

    table: Table
    ids: Annotated[IntArray, DISTINCT_IDS]
    values: Annotated[FloatArray | HalfArray, _MOVES]


class ShardBlock(Protocol):
    """One block as shards that hold columns learn it."""

    @property
    def nbytes(self) -> int:
        """Of its arrays."""

    def check_learnt(self, most_bytes: int) -> None:
        """RefusedError unless all of it was learnt; it takes at most so much memory."""


@dataclass(frozen=True)
class PackedDelta:
    """A delta as a compressor wrote it (`compression.py`).

    kind     which compressor
    rows     rows that are in it, distinct
    dim      columns of a row
    entries  entries that are in it; the others of these rows did not move
    data     uint8 [bytes]: ids, places and values as the compressor lays them out
    shard    which shard its rows lie on, where there are several; it does not travel
    """

    table: Table
    kind: str
    rows: int
    dim: int
    entries: int
    data: Annotated[ByteArray, Column("u1", ("bytes",))]
    shard: Annotated[int, NotSent()] = 0


@dataclass(frozen=True)
class WordContexts:
    """What stood around rare words and a sample of known ones (`models/contextbags.py`).

    ids       int64 [n], distinct row ids given by the server; mentions int64 [n], occurrences
    sizes     int64 [n], contexts of each word
    contexts  int32 or int64 [m], row ids, a word's distinct; weights float32 or float16 [m]
    """

    ids: Annotated[IntArray, DISTINCT_IDS]
    mentions: Annotated[IntArray, Column("i8", ("n",), least=1, most=MAX_FIGURE)]
    sizes: Annotated[IntArray, Column("i8", ("n",), adds_up_to="m")]
    contexts: Annotated[IntArray | CodeArray, Column("i8", ("m",))]
    weights: Annotated[FloatArray | HalfArray, Column("f2", ("m",), above=0, most=1e6)]

    @property
    def nbytes(self) -> int:
        short = 4 * (len(self.sizes) + len(self.contexts)) + 2 * len(self.weights)
        return self.ids.nbytes + self.mentions.nbytes + short

    @classmethod
    def of_bags(cls, ids: IntArray, bags: ContextBag) -> WordContexts:
        return cls(ids, bags.mentions, bags.sizes, bags.contexts, bags.weights)

    @property
    def bags(self) -> ContextBag:
        """Without the ids of the words."""
        return ContextBag(self.sizes, self.contexts, self.weights, self.mentions)


def summed(parts: Sequence[WordContexts]) -> WordContexts | None:
    """What all parts say, equal contexts of a word added up; None of nothing."""
    parts = [part for part in parts if len(part.ids)]
    if len(parts) < 2:
        return parts[0] if parts else None
    ids, at = np.unique(np.concatenate([part.ids for part in parts]), return_inverse=True)
    mentions = np.zeros(len(ids), dtype=np.int64)
    np.add.at(mentions, at, np.concatenate([part.mentions for part in parts]))
    owners = np.repeat(at, np.concatenate([part.sizes for part in parts]))
    contexts = np.concatenate([part.contexts for part in parts])
    weights = np.concatenate([part.weights for part in parts])
    return WordContexts.of_bags(ids, added_up(owners, contexts, weights, mentions))


UNITS = AUTHOR_GROUPS
"""Groups of documents whose uses of words are added up apart, so that chance can be measured."""
BUSIEST = 4
"""The time that stands for those documents of the window that its busiest authors wrote."""
TIMES = 5
"""What a node reads when a window closes: the window by rows and by counts, the one before it, all
older ones, and BUSIEST."""


@dataclass(frozen=True)
class ContextSums:
    """How words were used in some documents of a source, read when a window closed.

    window     start of the window (Unix seconds) that closed
    part       which documents: UNITS parts for each of TIMES
    ids        int64 [n], distinct row ids
    sums       float32 or float16 [n, dim], sums of one unit vector a document
    documents  float32 [n], how many documents use each word
    incarnation  mark of the dead process that had learnt them; "": who says it has
    """

    window: Annotated[int, MOMENT]
    source: str
    part: Annotated[int, WholeNumber(0, TIMES * UNITS - 1)]
    ids: Annotated[IntArray, DISTINCT_IDS]
    sums: Annotated[FloatArray | HalfArray, Column("f4 f2", ("n", "dim"), finite=True)]
    documents: Annotated[FloatArray, Column("f4", ("n",), least=0, most=1e12)]
    incarnation: str = ""

    @classmethod
    def none(cls, window: int, source: str, part: int, incarnation: str) -> ContextSums:
        nothing, ids = np.empty(0, dtype=np.float32), np.empty(0, dtype=np.int64)
        return cls(window, source, part, ids, nothing[:, None], nothing, incarnation)

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + self.sums.nbytes + self.documents.nbytes


@dataclass(frozen=True)
class ContextShift:
    """Which contexts of words became more or less frequent in a window that closed.

    window    its start (Unix seconds)
    ids       int64 [n], distinct row ids of words; weights: float32 [n], by which their figures
              of several nodes are added up
    sizes     int64 [n], how many contexts each has
    contexts  int64 [m], row ids, word after word
    figures   float32 [m, 3], times the weight of the word: the share of its pairs before, in the
              window, and of its shift (`worker/usage/contextshift.py`)
    """

    window: Annotated[int, MOMENT]
    ids: Annotated[IntArray, DISTINCT_IDS]
    weights: Annotated[FloatArray, Column("f4", ("n",), above=0, most=MAX_FIGURE)]
    sizes: Annotated[IntArray, Column("i8", ("n",), adds_up_to="m")]
    contexts: Annotated[IntArray, Column("i8", ("m",))]
    figures: Annotated[FloatArray, Column("f4", ("m", 3), least=-MAX_FIGURE, most=MAX_FIGURE)]

    @property
    def nbytes(self) -> int:
        words = self.ids.nbytes + self.weights.nbytes + self.sizes.nbytes
        return words + self.contexts.nbytes + self.figures.nbytes


@dataclass(frozen=True)
class Inherited:
    """Text of a window that a dead process had pushed, and that this process speaks for now.

    incarnation  mark of that process
    documents    read again; gone: those that are not where they were
    """

    incarnation: str
    source: str
    documents: int = 0
    gone: int = 0


@dataclass(frozen=True)
class HandIn:
    """This push completes what its process has to say of how words were used in a window.

    window     its start (Unix seconds)
    first      number of the push that has its first parts; earlier ones are of a try given up
    inherited  whose text it speaks for beside its own
    """

    window: Annotated[int, MOMENT]
    first: Annotated[int, WholeNumber(1)]
    inherited: tuple[Inherited, ...] = ()


@dataclass(frozen=True)
class WindowUse:
    """What a node says of a window that closed; whose text it speaks for as in `HandIn`."""

    window: int
    inherited: tuple[Inherited, ...] = ()
    sums: tuple[ContextSums, ...] = ()
    shifts: tuple[ContextShift, ...] = ()


@dataclass(frozen=True)
class CountGroup:
    """Rows of `BlockCounts` up to `stop` that are of one source and one window (Unix seconds)."""

    source: str
    window: Annotated[int, MOMENT]
    stop: int


_VOICES = Column("i8", ("n",), least=0, at_most="documents", optional=True)
_AUTHORS = Column("i8", ("n",), least=0, optional=True)


@dataclass(frozen=True)
class BlockCounts(CountColumns):
    """What a push read, as it travels: known words by row id, only the others by name.

    groups     rows in order of their group; (source, window) occurs once
    ids        int64 [n] row ids, -1 for a word without a row; a word occurs once a group
    words      str [number of -1], the words without a row, in order
    """

    groups: tuple[CountGroup, ...]
    ids: Annotated[IntArray, Column("i8", ("n",), least=-1)]
    words: Annotated[Sequence[str], WordColumn("unknown")]
    counts: Annotated[IntArray, Column("i8", ("n",), least=1)]
    documents: Annotated[IntArray, Column("i8", ("n",), least=0, at_most="counts")]
    authors: Annotated[IntArray | None, _AUTHORS] = None
    voices: Annotated[IntArray | None, _VOICES] = None

    def fault(self) -> str | None:
        """What no column alone shows to be wrong."""
        stops = [0, *(group.stop for group in self.groups)]
        if stops != sorted(stops) or stops[-1] != len(self.ids):
            return "the groups do not end one after the other, the last with the columns"
        if int((self.ids < 0).sum()) != len(self.words):
            return "every word that is counted has an id, or -1 and its name"
        authors, voices = self.columns[2:]
        if bool(np.any(authors > voices)):
            return "a word has more authors than voices"
        return None
