"""Nearest words: of many words at once, and of one word through many snapshots.

For many, blocked matrix products and a partial sort. A word's history asks for its nearest words in
every window. As in the estimators they are looked for among the CANDIDATE_WORDS most frequent
words, whose rows are kept beside each other here: 4 MB a snapshot of 10,000 words and 100
dimensions.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from embedding.kernel.positions import positions
from embedding.kernel.records import CodeArray, FloatArray, IntArray
from embedding.snapshots.nearness import directions_of, frequent, highest, sureness
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.recent import Recent

CANDIDATE_WORDS = 10_000
"""Nearest words are looked for among this many most frequent common words."""
BLOCK_ROWS = 1024
"""Words whose similarities are computed at once: that takes 4 · CANDIDATE_WORDS bytes each."""


def nearest(
    vectors: FloatArray,
    sure: FloatArray,
    queries: IntArray,
    candidates: IntArray,
    k: int,
    block: int = BLOCK_ROWS,
) -> tuple[IntArray, FloatArray]:
    """The k candidates nearest to each query, a word itself left out, and their nearness.

    vectors     float32 [n, d], unit rows
    sure        float32 [n], `sureness` of their counts; ones for plain cosines
    queries     int64 [q], rows of `vectors`
    candidates  int64 [m], strictly increasing rows of `vectors`
    returns     int64 and float32 [q, min(k, m − 1)], rows of `vectors`, nearest first
    """
    k = max(min(k, len(candidates) - 1), 0)
    rows = np.empty((len(queries), k), dtype=np.int64)
    figures = np.empty((len(queries), k), dtype=np.float32)
    if k == 0:
        return rows, figures
    scaled = vectors[candidates] * sure[candidates, None]
    pool = np.ascontiguousarray(scaled.T)
    own = positions(candidates, queries)
    for start in range(0, len(queries), block):
        part = slice(start, start + block)
        near = vectors[queries[part]] @ pool
        queried = np.flatnonzero(own[part] >= 0)
        near[queried, own[part][queried]] = -np.inf
        best = _highest(near, k)
        rows[part] = candidates[best]
        figures[part] = np.take_along_axis(near, best, axis=1)
    return rows, figures


def _highest(figures: FloatArray, k: int) -> IntArray:
    """int64 [q, k]: columns of the k highest figures of each line of [q, m], highest first."""
    best = np.argpartition(figures, figures.shape[1] - k, axis=1)[:, figures.shape[1] - k :]
    order = np.argsort(-np.take_along_axis(figures, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


def shared(first: IntArray, second: IntArray, n: int, block: int = 256) -> IntArray:
    """int64 [q]: how many of the row numbers (< n) of each line stand in both tables."""
    total = np.zeros(len(first), dtype=np.int64)
    mark = np.zeros((min(block, len(first)), n), dtype=bool)
    for start in range(0, len(first), block):
        a, b = first[start : start + block], second[start : start + block]
        lines = np.arange(len(a))[:, None]
        mark[lines, a] = True
        total[start : start + block] = mark[lines, b].sum(axis=1)
        mark[lines, a] = False
    return total


@dataclass(frozen=True)
class Frequent:
    """The frequent words of one snapshot.

    codes  int32 [m], the words in order of their rows, as `Names` numbers them
    rows   float32 [m, dim], unit vectors times how sure they are (snapshots/nearness.py); zeros
           stay zeros
    coded  bool [codes known when it was made]: whether this snapshot's frequent words have a code
    """

    codes: CodeArray
    rows: FloatArray
    coded: npt.NDArray[np.bool_]

    def knows(self, codes: CodeArray) -> npt.NDArray[np.bool_]:
        """bool [n]: which of the words are frequent here."""
        inside = codes < len(self.coded)
        known: npt.NDArray[np.bool_] = inside & self.coded[np.where(inside, codes, 0)]
        return known


class Names:
    """Numbers for words, the same for all snapshots."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._words: list[str] = []
        self._lock = threading.Lock()

    def number(self, words: Sequence[str]) -> CodeArray:
        """int32 [n]: the number of each word; unseen ones get the next."""
        with self._lock:
            for word in words:
                if word not in self._codes:
                    self._codes[word] = len(self._words)
                    self._words.append(word)
            return np.array([self._codes[word] for word in words], dtype=np.int32)

    def code(self, word: str) -> int:
        """The number of a word, -1 for one that was frequent nowhere."""
        return self._codes.get(word, -1)

    def __getitem__(self, code: int) -> str:
        return self._words[code]

    def __len__(self) -> int:
        return len(self._words)


class NeighbourCache:
    """Keeps the frequent words of snapshots; safe between threads.

    words  how many most frequent words of each snapshot
    keep   how many snapshots
    """

    def __init__(self, words: int = CANDIDATE_WORDS, keep: int = 64) -> None:
        self.names = Names()
        self._words = words
        self._made: Recent[Frequent] = Recent(keep)

    def of(self, snapshot: Snapshot) -> Frequent:
        return self._made.get(snapshot.id, lambda: self._read(snapshot))

    def nearest(self, snapshot: Snapshot, row: int, n: int) -> tuple[CodeArray, FloatArray]:
        """Numbers int32 [k] and nearness float32 [k ≤ n] of the words nearest to the word of `row`.

        Highest first, by row where equal; the word itself is left out, and so are words of zeros.
        """
        known = self.of(snapshot)
        vector = np.asarray(snapshot.vectors[row], dtype=np.float32)
        if not vector.any():
            return np.empty(0, np.int32), np.empty(0, np.float32)
        # Not a product of BLAS: for so little, its threads cost more than they save.
        near = np.vecdot(known.rows, directions_of(vector[None], snapshot.centre)[0])
        own = self.names.code(snapshot.word_column[row].as_py())
        if own >= 0:
            near[known.codes == own] = -np.inf
        best = highest(near, n)
        return known.codes[best], near[best].astype(np.float32)

    def _read(self, snapshot: Snapshot) -> Frequent:
        counts = np.asarray(snapshot.counts)
        rows = frequent(counts, self._words)
        vectors = snapshot.read_vectors(rows)
        vectors = directions_of(vectors, snapshot.centre) * sureness(counts[rows])[:, None]
        column = snapshot.word_column
        codes = self.names.number(column.take(pa.array(rows)).to_pylist())
        known = np.zeros(len(self.names), dtype=bool)
        known[codes] = True
        return Frequent(codes, vectors, known)
