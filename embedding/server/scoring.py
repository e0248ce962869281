"""Scoring before learning, and the figures that go into a snapshot.

Pairs of documents that were not learnt yet are scored on the server's own device (prequential
evaluation, Dawid 1984): their mean negative log-likelihood is kept by source.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field

import numpy as np

from embedding.evaluation.losses import nll, pip_loss
from embedding.kernel.devices import DeviceArray, to_host
from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray, ScorePairs, TimeArray, Window
from embedding.server.config import ServerConfig
from embedding.server.parts import Part
from embedding.server.rows.devices import RowDevice
from embedding.server.rowstore import PairSlots, Vectors
from embedding.server.words.vocabulary import Vocabulary

EWMA = 0.1
"""What a new loss weighs in the running mean of its source."""
HELD_OUT_PAIRS = 5_000
FOLLOW_S = 5.0
"""Seconds between two looks at which words are most frequent."""


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


class ScoreKeeper(Part):
    """Keeps losses by source, a sample of scored pairs, and co-occurrences of frequent words, under
    a lock of its own: pairs are scored without the server's."""

    def __init__(self, config: ServerConfig, device: RowDevice, vocabulary: Vocabulary) -> None:
        self._device, self._vocabulary = device, vocabulary
        self._follow_at = 0.0
        self.lock = threading.Lock()
        self.sources: dict[str, SourceScore] = {}
        self._sample: IntArray = np.empty((0, 2), dtype=np.int64)
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
            scored = np.column_stack([pairs.centres, pairs.contexts, pairs.negatives])[known]
            self._sample = last_pairs(self._sample, scored, HELD_OUT_PAIRS)
            self._together.add(pairs.centres[known], pairs.contexts[known])
        return total / n

    def tick(self, now: float) -> None:
        """Every so often, sample co-occurrences of the words that are most frequent now."""
        if now < self._follow_at:
            return
        self._follow_at = now + FOLLOW_S
        ids, most = self._vocabulary.alive(), self._together.words
        counts = self._vocabulary.counts(ids)
        self.follow(ids if len(ids) <= most else ids[np.argpartition(-counts, most)[:most]])

    def follow(self, frequent: IntArray) -> None:
        """Sample co-occurrences of these ids from now on."""
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
            losses = self._losses(window)
        return losses | self.judge(ids, vectors, contexts)

    def judge(self, ids: IntArray, vectors: DeviceArray, contexts: DeviceArray) -> dict[str, float]:
        """`nll_sample` and `pip` of rows [n, d] on any device; ids int64 [n], increasing."""
        with self.lock:
            sample = self._sample
            frequent, together = self._together.table()
        figures: dict[str, float] = {}
        if len(sample):
            loss = self._sample_loss(ids, vectors, contexts, sample)
            if loss is not None:
                figures["nll_sample"] = loss
        at = positions(ids, frequent)
        keep = at >= 0
        if together.any() and int(keep.sum()) > 1:
            value = pip_loss(to_host(vectors[at[keep]]), together[np.ix_(keep, keep)])
            if math.isfinite(value):
                figures["pip"] = value
        return figures

    def needed(self) -> IntArray:
        """Ids of the words that `judge` looks at, increasing."""
        with self.lock:
            frequent, _ = self._together.table()
            return np.unique(np.concatenate([frequent, self._sample.reshape(-1)]))

    def _losses(self, window: Window) -> dict[str, float]:
        losses: dict[str, float] = {}
        total, pairs = 0.0, 0
        for source, entry in self.sources.items():
            loss, n = entry.of(window)
            if n:
                losses[f"nll.{source}"] = loss / n
            total, pairs = total + loss, pairs + n
        if pairs:
            losses["nll"] = total / pairs
        return losses

    def _sample_loss(
        self,
        ids: IntArray,
        vectors: DeviceArray,
        contexts: DeviceArray,
        sample: IntArray,
    ) -> float | None:
        c, o, n = (positions(ids, part) for part in (sample[:, 0], sample[:, 1], sample[:, 2:]))
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


def last_pairs(sample: IntArray, fresh: IntArray, most: int) -> IntArray:
    """The last of both, at most so many: centre, context and negatives, int64 [n, 2 + negatives].
    Another number of negatives starts again."""
    if sample.shape[1] != fresh.shape[1]:
        sample = fresh[:0]
    return np.concatenate([sample, fresh])[-most:]


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
