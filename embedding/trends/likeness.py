"""Words that are used alike in one window: cosine of mean contexts, the common part left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.nearness import highest, unit_rows
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.usage import Usage
from embedding.trends.config import TrendsConfig
from embedding.trends.nearest import CANDIDATE_WORDS
from embedding.trends.recent import Recent

_BLOCK = 4_096
"""Sums that are widened at once."""


class Likeness:
    """Finds words that are used in a window as another one is.

    What a word's vector has learnt of all windows before is not in it: these are the contexts of
    the window alone.
    """

    def __init__(self, snapshot: Snapshot, usage: Usage, config: TrendsConfig) -> None:
        self._usage = usage
        seen = np.zeros(len(snapshot), dtype=np.int64)
        np.add.at(seen, usage.rows, usage.mentions)
        often = np.argsort(-seen, kind="stable")[:CANDIDATE_WORDS]
        chosen = np.zeros(len(snapshot), dtype=bool)
        chosen[often[seen[often] >= config.min_count]] = True
        self._rows, means = pooled(usage, np.flatnonzero(chosen[usage.rows]))
        self._words: list[str] = snapshot.word_column.take(pa.array(self._rows)).to_pylist()
        none = np.zeros(means.shape[1], dtype=np.float32)
        self._centre: FloatArray = means.mean(axis=0) if len(means) else none
        self._means = unit_rows(means - self._centre)
        usage.release()

    def documents(self, row: int) -> float:
        return float(self._usage.pairs[self._usage.rows == row].sum(dtype=np.float64))

    def near(
        self, row: int, n: int, sources: Sequence[str] | None = None
    ) -> list[tuple[str, float]]:
        """The n words that are used most as the word of `row` is, with the cosine.

        sources  as these use the word; None: as all do
        """
        at = np.flatnonzero(self._usage.rows == row)
        if sources is not None:
            own = [self._usage.by_source[source] for source in sources]
            at = np.intersect1d(at, np.concatenate(own))
        if not len(at) or not len(self._rows):
            return []
        mean = pooled(self._usage, at)[1][0]
        # Not a product of BLAS: for so little, its threads cost more than they save.
        cosines = np.vecdot(self._means, unit_rows(mean[None] - self._centre)[0])
        cosines[self._rows == row] = -np.inf
        best = highest(cosines, n)
        return [(self._words[at], float(cosines[at])) for at in best.tolist()]


class UsedAlike:
    """The words used alike in the windows of many snapshots; safe between threads.

    A window's mean contexts are worked out once: 4 MB of 10,000 words and 100 dimensions.

    keep  of how many snapshots
    """

    def __init__(self, config: TrendsConfig, keep: int = 64) -> None:
        self._config = config
        self._made: Recent[Likeness] = Recent(keep)

    def of(self, snapshot: Snapshot) -> Likeness | None:
        """None where a snapshot does not say how words were used in its window."""
        usage = snapshot.usage
        if usage is None:
            return None
        return self._made.get(snapshot.id, lambda: Likeness(snapshot, usage, self._config))


def pooled(usage: Usage, chosen: IntArray | None = None) -> tuple[IntArray, FloatArray]:
    """Rows int64 [m] and what their contexts say on average, float32 [m, dim], over all sources.

    chosen  only these places
    """
    chosen = np.arange(len(usage)) if chosen is None else chosen
    rows, own = np.unique(usage.rows[chosen], return_inverse=True)
    sums = np.zeros((len(rows), usage.means.shape[2]), dtype=np.float32)
    total = np.zeros(len(rows), dtype=np.float32)
    for start in range(0, len(chosen), _BLOCK):
        part, to = chosen[start : start + _BLOCK], own[start : start + _BLOCK]
        pairs, means = usage.pairs[part], usage.means[part].astype(np.float32)
        np.add.at(sums, to, np.einsum("nr,nrd->nd", pairs, means))
        np.add.at(total, to, pairs.sum(axis=1))
    average: FloatArray = (sums / np.maximum(total, 1e-9)[:, None]).astype(np.float32)
    return rows.astype(np.int64), average
