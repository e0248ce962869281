"""Scoring before learning, and the figures that go into a snapshot.

Pairs of documents that were not learnt yet are scored on the server's own device (prequential
evaluation, Dawid 1984): their mean negative log-likelihood is kept by source.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field

import numpy as np

from embedding.evaluation.likelihood import nll
from embedding.evaluation.pip import pip_loss
from embedding.kernel.devices import DeviceArray, to_host
from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray, ScorePairs, TimeArray, Window
from embedding.server.config import ServerConfig
from embedding.server.rows.devices import RowDevice
from embedding.server.rowstore.interface import PairSlots, Vectors

EWMA = 0.1
"""What a new loss weighs in the running mean of its source."""
HELD_OUT_PAIRS = 5_000


@dataclass
class SourceScore:
    """A source's loss: running mean (exponentially weighted), and (sum, pairs) of each window.

    By window of the documents, not by time of the cut: after a backlog the documents of several
    windows are scored before the first of these is cut.
    """

    smooth: float
    windows: dict[int, tuple[float, int]] = field(default_factory=dict)

    def add(self, starts: IntArray, losses: TimeArray) -> None:
        """Losses [n] of pairs whose documents belong to the windows that start at `starts` [n]."""
        for start in np.unique(starts).tolist():
            these = losses[starts == start]
            total, pairs = self.windows.get(start, (0.0, 0))
            self.windows[start] = (total + float(these.sum()), pairs + len(these))

    def of(self, window: Window) -> tuple[float, int]:
        """Sum and pairs of a window that is cut; older ones are forgotten, this one stays.

        So a window whose snapshot could not be written keeps its figures for the next try.
        """
        low, high = window.start.timestamp(), window.end.timestamp()
        self.windows = {start: sums for start, sums in self.windows.items() if start >= low}
        held = [sums for start, sums in self.windows.items() if start < high]
        return sum(loss for loss, _ in held), sum(n for _, n in held)


class ScoreKeeper:
    """Keeps losses by source, a sample of scored pairs, and co-occurrences of frequent words."""

    def __init__(self, config: ServerConfig, device: RowDevice) -> None:
        self._device = device
        self.lock = threading.Lock()
        self.sources: dict[str, SourceScore] = {}
        self._ring = PairRing(HELD_OUT_PAIRS)
        self._together = Cooccurrence(config.pip_words)

    def score(self, pairs: ScorePairs, drawn: PairSlots, rows: Vectors) -> float | None:
        """Mean loss of the pairs whose words have rows; None when none has. Outside the lock."""
        known = (drawn[0] >= 0) & (drawn[1] >= 0)
        if not known.any():
            return None
        losses = to_host(nll(*rows))[known].astype(np.float64)
        total, n = float(losses.sum()), len(losses)
        if not math.isfinite(total):
            return None
        with self.lock:
            entry = self.sources.setdefault(pairs.source, SourceScore(smooth=total / n))
            entry.smooth += EWMA * (total / n - entry.smooth)
            entry.add(pairs.windows[known], losses)
            self._ring.add(pairs.centres[known], pairs.contexts[known], pairs.negatives[known])
            self._together.add(pairs.centres[known], pairs.contexts[known])
        return total / n

    def follow(self, frequent: IntArray) -> None:
        """Sample co-occurrences of these ids (most frequent first) from now on."""
        with self.lock:
            self._together.follow(frequent)

    def measure(
        self, window: Window, ids: IntArray, vectors: FloatArray, contexts: FloatArray
    ) -> dict[str, float]:
        """Quality of the rows of `ids` (sorted) and of the documents of `window`.

        nll, nll.SOURCE   mean loss of the window's documents before they were learnt
        nll_sample        loss of the kept pairs on these very rows (after learning)
        pip               PIP loss of the frequent words against their sampled SPPMI
        """
        with self.lock:
            found = self._losses(window)
        return found | self.judge(ids, vectors, contexts)

    def judge(self, ids: IntArray, vectors: DeviceArray, contexts: DeviceArray) -> dict[str, float]:
        """`nll_sample` and `pip` of rows [n, d] on any device; ids int64 [n], increasing."""
        with self.lock:
            sample = self._ring.pairs()
            frequent, together = self._together.table()
        found: dict[str, float] = {}
        if sample is not None:
            loss = self._sample_loss(ids, vectors, contexts, *sample)
            if loss is not None:
                found["nll_sample"] = loss
        at = positions(ids, frequent)
        keep = at >= 0
        if together.any() and int(keep.sum()) > 1:
            value = pip_loss(to_host(vectors[at[keep]]), together[np.ix_(keep, keep)])
            if math.isfinite(value):
                found["pip"] = value
        return found

    def needed(self) -> IntArray:
        """Ids of the words that `judge` looks at, increasing."""
        with self.lock:
            sample = self._ring.pairs()
            frequent, _ = self._together.table()
        parts = [frequent, *([] if sample is None else [part.reshape(-1) for part in sample])]
        return np.unique(np.concatenate(parts))

    def _losses(self, window: Window) -> dict[str, float]:
        found: dict[str, float] = {}
        total, pairs = 0.0, 0
        for source, entry in self.sources.items():
            loss, n = entry.of(window)
            if n:
                found[f"nll.{source}"] = loss / n
            total, pairs = total + loss, pairs + n
        if pairs:
            found["nll"] = total / pairs
        return found

    def _sample_loss(
        self,
        ids: IntArray,
        vectors: DeviceArray,
        contexts: DeviceArray,
        centres: IntArray,
        others: IntArray,
        negatives: IntArray,
    ) -> float | None:
        c, o, n = positions(ids, centres), positions(ids, others), positions(ids, negatives)
        keep = (c >= 0) & (o >= 0) & (n >= 0).all(axis=1)
        if not keep.any():
            return None
        total, place = 0.0, self._device.place
        for at in np.array_split(np.flatnonzero(keep), max(1, int(keep.sum()) // 4096)):
            losses = nll(
                place(vectors[c[at]]),
                place(contexts[o[at]]),
                place(contexts[n[at]]),
            )
            total += float(losses.sum())
        return total / int(keep.sum())


class PairRing:
    """The last scored pairs, at most `size`."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._at = 0
        self._full = False
        self._rows: IntArray | None = None

    def add(self, centres: IntArray, contexts: IntArray, negatives: IntArray) -> None:
        """Add pairs; another number of negatives starts again."""
        if self.size == 0:
            return
        fresh = np.column_stack([centres, contexts, negatives])[-self.size :]
        if self._rows is None or self._rows.shape[1] != fresh.shape[1]:
            self._rows = np.zeros((self.size, fresh.shape[1]), dtype=np.int64)
            self._at, self._full = 0, False
        where = (self._at + np.arange(len(fresh))) % self.size
        self._rows[where] = fresh
        self._full = self._full or self._at + len(fresh) >= self.size
        self._at = (self._at + len(fresh)) % self.size

    def pairs(self) -> PairSlots | None:
        """Centres, contexts, negatives; None when nothing was scored."""
        if self._rows is None or not (self._full or self._at):
            return None
        rows = self._rows.copy() if self._full else self._rows[: self._at].copy()
        return rows[:, 0], rows[:, 1], rows[:, 2:]


class Cooccurrence:
    """How often frequent words were scored together: counts [m, m] by (centre, context)."""

    def __init__(self, words: int) -> None:
        self.words = words
        self._ids: IntArray = np.empty(0, dtype=np.int64)
        self._counts = np.zeros((0, 0), dtype=np.float32)

    def follow(self, frequent: IntArray) -> None:
        """Follow the first `words` of these ids; counts of words followed before stay."""
        ids = np.sort(frequent[: self.words])
        if np.array_equal(ids, self._ids):
            return
        counts = np.zeros((len(ids), len(ids)), dtype=np.float32)
        both, new, old = np.intersect1d(ids, self._ids, return_indices=True)
        if len(both):
            counts[np.ix_(new, new)] = self._counts[np.ix_(old, old)]
        self._ids, self._counts = ids, counts

    def add(self, centres: IntArray, contexts: IntArray) -> None:
        """Count pairs of followed words."""
        rows, columns = positions(self._ids, centres), positions(self._ids, contexts)
        both = (rows >= 0) & (columns >= 0)
        np.add.at(self._counts, (rows[both], columns[both]), 1.0)

    def table(self) -> tuple[IntArray, FloatArray]:
        """The ids, sorted, and a copy of the counts."""
        return self._ids, self._counts.copy()
