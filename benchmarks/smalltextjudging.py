"""How good the vectors of little text are: the same figures, by the same code, for every trainer.

All is judged over the words that all models of a moment and the reference know, in one order.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.heldout import held_out_loss
from embedding.evaluation.gold import AnalogyGold, PairGold
from embedding.evaluation.judging import analogy, similarity
from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.nearness import centre_of, directions_of, frequent, sureness
from embedding.snapshots.readability import first_axis, mean_cosine
from embedding.trends.nearest import nearest

NEAREST = 10
ASKED = 500
FREQUENT = 3_000
STRATA = (5, 10, 20, 50, 200)
"""Least mentions of each stratum of the words that are asked for."""
SPREAD = ("mean_cosine", "first_axis")
"""How far vectors lie from a common direction: low before anything was learnt, too."""


@dataclass(frozen=True)
class Model:
    """What a training gave: words, running counts int64 [n], float32 [n, dim] tables."""

    words: Sequence[str]
    counts: IntArray
    vectors: FloatArray
    contexts: FloatArray

    def among(self, words: Sequence[str]) -> Model:
        """The rows of these words, all of which it must know, in their order."""
        place = {word: row for row, word in enumerate(self.words)}
        rows = np.array([place[word] for word in words], dtype=np.int64)
        return Model(words, self.counts[rows], self.vectors[rows], self.contexts[rows])


@dataclass(frozen=True)
class Shared:
    """What the models of one moment are judged by.

    words      that all models and the reference know, the most frequent first
    counts     int64 [n]: their mentions in the text that was read
    asked      int64 [q]: rows of the words whose nearest are looked at
    reference  float32 [n, dim]: vectors of the reference
    behind     lines of the text behind
    """

    words: Sequence[str]
    counts: IntArray
    asked: IntArray
    reference: FloatArray
    behind: Sequence[str]
    gold: Sequence[PairGold | AnalogyGold] = ()

    @cached_property
    def nearest(self) -> IntArray:
        """int64 [q, NEAREST]: the reference's, by cosine."""
        return ranked(self.reference, self.asked)


def ranked(vectors: FloatArray, asked: IntArray, counts: IntArray | None = None) -> IntArray:
    """int64 [q, NEAREST]: the nearest rows of each asked row, itself left out.

    counts  int64 [n]: by nearness, as a snapshot ranks its neighbours; None: by cosine
    """
    none = np.zeros(vectors.shape[1], np.float32)
    centre = none if counts is None else centre_of(vectors[frequent(counts)])
    sure = np.ones(len(vectors), np.float32) if counts is None else sureness(counts)
    every = np.arange(len(vectors), dtype=np.int64)
    return nearest(directions_of(vectors, centre), sure, asked, every, NEAREST)[0]


def shares(near: IntArray, wanted: IntArray) -> FloatArray:
    """float32 [q]: share of the rows of each line of `wanted` that are in that of `found`."""
    same = (near[:, :, None] == wanted[:, None, :]).any(axis=1)
    mean: FloatArray = same.mean(axis=1, dtype=np.float32)
    return mean


def stratum(count: int) -> int:
    """Number of the stratum of a word of so many mentions."""
    return max(int(np.searchsorted(STRATA, count, side="right")) - 1, 0)


def choose(
    words: Sequence[str], counts: IntArray, among: frozenset[str], n: int = ASKED
) -> IntArray:
    """Rows int64 [≤ n] of words to ask for: `among` these, equally many of each stratum.

    Where a stratum has too few, the others give more. Which words of a stratum come first depends
    on the words alone (a hash), so that two vocabularies with most words in common ask for most of
    the same ones.
    """
    strata: dict[int, list[int]] = {}
    rows = [row for row, word in enumerate(words) if word in among]
    for row in sorted(rows, key=lambda row: hashlib.sha256(words[row].encode()).digest()):
        strata.setdefault(stratum(int(counts[row])), []).append(row)
    turns = [(turn, row) for band in strata.values() for turn, row in enumerate(band)]
    return np.array(sorted(row for _, row in sorted(turns)[:n]), dtype=np.int64)


def judge(model: Model, shared: Shared) -> dict[str, float]:
    """The figures of a model; a figure that cannot be had is left out.

    agreement        mean share of the ten nearest of the asked words, by cosine, that are among the
                     reference's ten; `agreement/5` … of the words of the stratum from 5 mentions on
    agreement_shown  as the page shows neighbours: by nearness (snapshots/nearness.py)
    next_loss        mean loss of pairs of the text behind, in nats (benchmarks/heldout.py)
    mean_cosine      of the `FREQUENT` most frequent words
    first_axis       of the same words
    gold/NAME        rank correlation of word pairs, or share of analogies solved
    """
    own = model.among(shared.words)
    same = shares(ranked(own.vectors, shared.asked), shared.nearest)
    shown = ranked(own.vectors, shared.asked, own.counts)
    figures = {
        "agreement": float(same.mean()),
        "agreement_shown": float(shares(shown, shared.nearest).mean()),
        "mean_cosine": mean_cosine(own.vectors[:FREQUENT]),
        "first_axis": first_axis(own.vectors[:FREQUENT]),
    }
    if shared.behind:
        # The same counts for all, and so the same noise words.
        tables = Model(own.words, shared.counts, own.vectors, own.contexts)
        figures["next_loss"] = held_out_loss(tables, shared.behind, shared.words)
    at = np.array([stratum(int(count)) for count in shared.counts[shared.asked]])
    for number, least in enumerate(STRATA):
        if (at == number).any():
            figures[f"agreement/{least}"] = float(same[at == number].mean())
    return figures | _gold(own, shared.gold)


def _gold(own: Model, sets: Sequence[PairGold | AnalogyGold]) -> dict[str, float]:
    place = {word: row for row, word in enumerate(own.words)}

    def rows(words: Sequence[str]) -> IntArray:
        return np.array([place.get(word, -1) for word in words], dtype=np.int64)

    vectors = np.asarray(own.vectors)
    figures: dict[str, float] = {}
    for gold in sets:
        if isinstance(gold, PairGold):
            pairs = similarity(vectors, rows, gold)
            value, covered = pairs.rho, float(pairs.covered)
        else:
            total, _ = analogy(vectors, rows, gold)
            value, covered = total.accuracy, float(total.asked)
        if math.isfinite(value):
            figures |= {f"gold/{gold.name}": value, f"covered/{gold.name}": covered}
    return figures


def summary(runs: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Median, least and most of each figure that all seeds have."""
    names = [name for name in runs[0] if all(name in run for run in runs)]
    figures = {}
    for name in names:
        values = [run[name] for run in runs]
        figures[name] = {
            "median": float(np.median(values)),
            "min": min(values),
            "max": max(values),
        }
    return figures


def best(name: str, sides: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str | None:
    """The side with the best median of a figure; None where none has it."""
    medians = {side: figures[name]["median"] for side, figures in sides.items() if name in figures}
    pick = min if name == "next_loss" else max
    return pick(medians, key=lambda side: medians[side]) if medians else None
