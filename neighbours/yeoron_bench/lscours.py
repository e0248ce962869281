"""Ours, for `lsc.py`: one training over both corpora, judged by every estimator."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embedding.kernel.config import validate
from embedding.kernel.records import CodeArray, FloatArray, IntArray, WindowUnit
from embedding.models.config import LearningRateSchedule, ModelConfig
from embedding.snapshots.store import SnapshotStore
from embedding.training import TrainRequest, train_corpus
from embedding.training.request import FRESH_NOISE
from embedding.trends.config import TrendsConfig
from embedding.trends.material import gather
from embedding.trends.moved import judge_words, pair_in
from embedding.trends.significance import TestArray
from yeoron_bench.changeset import ChangeSet
from yeoron_bench.lsccontexts import Weighing, context_means, weighted

PRODUCT = ("usage", "procrustes", "neighbours")
DOCUMENT = 20
"""Sentences of a document: the corpora have none."""
_SYLLABLES = [c + v for c in "bdfghjklmnprstvwxz" for v in "aeiou"]


@dataclass(frozen=True)
class SpaceTraining:
    """How the one model is trained."""

    dim: int = 100
    window: int = 5
    passes: float = 30.0
    min_count: int = 3
    sample: float = 1e-4
    learning_rate: float = 0.025


def spelt(at: int) -> str:
    """A word for a number that no normaliser, tokenizer or mask changes."""
    base = len(_SYLLABLES)
    return (spelt(at // base - 1) if at >= base else "") + _SYLLABLES[at % base]


def write(data: ChangeSet, path: Path) -> None:
    """Both corpora as the windows of two months, words as `spelt`."""
    names = [spelt(at) for at in range(len(data.words))]
    with path.open("w", encoding="utf-8") as file:
        for month, side in ((1, data.before), (2, data.after)):
            for first in range(0, len(side), DOCUMENT):
                last = min(first + DOCUMENT, len(side))
                lines = [
                    " ".join(names[word] for word in side.tokens[a:b].tolist())
                    for a, b in zip(
                        side.offsets[first:last].tolist(),
                        side.offsets[first + 1 : last + 1].tolist(),
                        strict=True,
                    )
                ]
                date = f"2001-{month:02d}-{1 + first * 28 // len(side):02d}"
                file.write(json.dumps({"date": date, "text": "\n".join(lines)}) + "\n")


def train(data: ChangeSet, how: SpaceTraining, seed: int, folder: Path) -> SnapshotStore:
    """As `yeoron train --dated --window month` does."""
    path = folder / "both.jsonl"
    write(data, path)
    request = {
        "corpus": path,
        "out": folder / "store",
        "dated": WindowUnit.MONTH,
        "min_count": how.min_count,
        "model": ModelConfig(
            dim=how.dim,
            window=how.window,
            sample=how.sample,
            learning_rate=how.learning_rate,
            seed=seed,
            schedule=LearningRateSchedule.WINDOW,
            **FRESH_NOISE,
        ),
        "node": {"rehearsal_passes": how.passes},
    }
    train_corpus(validate(TrainRequest, request, "bench lsc"))
    path.unlink()
    return SnapshotStore(str(folder / "store"))


def product_scores(store: SnapshotStore, words: IntArray) -> dict[str, TestArray]:
    """How much each of `words` changed by the estimators of the trend report, float64 [n].

    NaN: an estimator says nothing of it.
    """
    material = gather(store)
    pair = pair_in(material)
    names = {spelt(int(word)): at for at, word in enumerate(words)}
    found = {}
    for name in PRODUCT:
        config = TrendsConfig(estimator=name, min_count=1)
        judged = judge_words(material, pair, config, among=names)
        scores = np.full(len(words), np.nan)
        if judged is not None:
            scores[[names[pair.words[at]] for at in judged.rows]] = judged.shift
        found[name] = scores
    return found


def context_scores(
    data: ChangeSet, store: SnapshotStore, words: IntArray, how: Weighing
) -> dict[str, TestArray]:
    """APD and PRT float64 [n] of `words` by their mentions and the vectors of the last window.

    The mean cosine distance of all pairs of a mention before and one after is 1 - x̄·ȳ, PRT that of
    the means x̄ and ȳ (Kutuzov and Giulianelli 2020, "UiO-UvA at SemEval-2020 Task 1", section 3).
    """
    rows, vectors = _row_vectors(data, store, how)
    before, after = (
        context_means(side, words, rows, vectors, how) for side in (data.before, data.after)
    )
    product = np.einsum("nd,nd->n", before, after)
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    return {"APD": 1.0 - product, "PRT": 1.0 - product / np.maximum(lengths, 1e-9)}


def _row_vectors(
    data: ChangeSet, store: SnapshotStore, how: Weighing
) -> tuple[CodeArray, FloatArray]:
    """Row of each word of the change set (-1: none), and what each row says."""
    last = store.open()
    place = {word: at for at, word in enumerate(last.words)}
    rows = np.array([place.get(spelt(at), -1) for at in range(len(data.words))], dtype=np.int32)
    every = data.before.counts(len(data.words)) + data.after.counts(len(data.words))
    counts = np.zeros(len(last.words), dtype=np.int64)
    counts[rows[rows >= 0]] = every[rows >= 0]
    return rows, weighted(np.asarray(last.vectors), counts, how)
