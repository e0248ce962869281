"""Ours, for `lsc.py`: one training over both corpora, judged by every estimator, and by what stands
around words, as means of unit vectors.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from embedding.kernel.config import validate
from embedding.kernel.records import CodeArray, FloatArray, IntArray, WindowUnit
from embedding.models.config import LearningRateSchedule, ModelConfig
from embedding.snapshots.nearness import unit_rows
from embedding.snapshots.store import SnapshotStore
from embedding.training import TrainRequest, train_corpus
from embedding.training.request import FRESH_NOISE
from embedding.trends.config import TrendsConfig
from embedding.trends.material import gather
from embedding.trends.moved import judge_words, pair_in
from embedding.trends.significance import TestArray
from yeoron_bench.changeset import ChangeSet, Sentences
from yeoron_bench.options import LscSetting

PRODUCT = ("usage", "procrustes", "neighbours")
DOCUMENT = 20
"""Sentences of a document: the corpora have none."""
_SYLLABLES = [c + v for c in "bdfghjklmnprstvwxz" for v in "aeiou"]
WINDOW = 5
"""Words on each side of a mention, for either side's training too."""
SMOOTHING = 1e-2
"""a of the weight a / (a + p) of a word whose share of the text is p (smooth inverse frequency;
Arora, Liang and Ma 2017, equation 3); chosen on planted petitions (docs/concepts/evaluation.md)."""
_MENTIONS = 20_000
"""Mentions at a time; memory is this × dim × 4 bytes, three times."""


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


def train(data: ChangeSet, given: LscSetting, seed: int, folder: Path) -> SnapshotStore:
    """As `yeoron train --dated --window month` does."""
    path = folder / "both.jsonl"
    write(data, path)
    request = {
        "corpus": path,
        "out": folder / "store",
        "dated": WindowUnit.MONTH,
        "min_count": given.min_count,
        "model": ModelConfig(
            dim=given.dim,
            window=WINDOW,
            sample=1e-4,
            learning_rate=0.025,
            seed=seed,
            schedule=LearningRateSchedule.WINDOW,
            **FRESH_NOISE,
        ),
        "node": {"rehearsal_passes": given.rehearsal},
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
    by_estimator = {}
    for name in PRODUCT:
        config = TrendsConfig(estimator=name, min_count=1)
        judged = judge_words(material, pair, config, among=names)
        scores = np.full(len(words), np.nan)
        if judged is not None:
            scores[[names[pair.words[at]] for at in judged.rows]] = judged.shift
        by_estimator[name] = scores
    return by_estimator


def context_scores(data: ChangeSet, store: SnapshotStore, words: IntArray) -> dict[str, TestArray]:
    """APD and PRT float64 [n] of `words` by their mentions and the vectors of the last window.

    The mean cosine distance of all pairs of a mention before and one after is 1 - x̄·ȳ, PRT that of
    the means x̄ and ȳ (Kutuzov and Giulianelli 2020, "UiO-UvA at SemEval-2020 Task 1", section 3).
    """
    rows, vectors = _row_vectors(data, store)
    before, after = (
        context_means(side, words, rows, vectors) for side in (data.before, data.after)
    )
    product = np.einsum("nd,nd->n", before, after)
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    return {"APD": 1.0 - product, "PRT": 1.0 - product / np.maximum(lengths, 1e-9)}


def _row_vectors(data: ChangeSet, store: SnapshotStore) -> tuple[CodeArray, FloatArray]:
    """Row of each word of the change set (-1: none), and what each row says."""
    last = store.open()
    place = {word: at for at, word in enumerate(last.words)}
    rows = np.array([place.get(spelt(at), -1) for at in range(len(data.words))], dtype=np.int32)
    every = data.before.counts(len(data.words)) + data.after.counts(len(data.words))
    counts = np.zeros(len(last.words), dtype=np.int64)
    counts[rows[rows >= 0]] = every[rows >= 0]
    return rows, weighted(np.asarray(last.vectors), counts)


def weighted(vectors: FloatArray, counts: IntArray) -> FloatArray:
    """float32 [n, dim]: weight times (unit vector − weighted mean of all unit vectors)."""
    units = unit_rows(np.asarray(vectors, dtype=np.float32))
    share = counts / max(int(counts.sum()), 1)
    weight = SMOOTHING / (SMOOTHING + share)
    heavy = share * weight
    units = units - (heavy @ units / max(float(heavy.sum()), 1e-12)).astype(np.float32)
    return np.asarray(units * weight[:, None], dtype=np.float32)


def context_means(
    side: Sentences, words: IntArray, rows: CodeArray, vectors: FloatArray, window: int = WINDOW
) -> TestArray:
    """Mean float64 [n, dim] of what stood around `words` (int64 [n], words of the change set) on
    one side, a unit vector a mention; NaN without one.

    rows     int32 [words]: row of each word in `vectors`, -1: it has none
    vectors  float32 [m, dim] by `weighted`
    window   words on each side; a word counts (window + 1 − distance) / window, as SGNS counts it
    """
    place = np.full(len(rows), -1, dtype=np.int64)
    place[words] = np.arange(len(words))
    tokens = rows[side.tokens]
    sentence = np.repeat(np.arange(len(side)), np.diff(side.offsets))
    at = np.flatnonzero(place[side.tokens] >= 0)
    counts, sums = np.zeros(len(words)), np.zeros((len(words), vectors.shape[1]))
    for first in range(0, len(at), _MENTIONS):
        part = at[first : first + _MENTIONS]
        around = unit_rows(_around(part, tokens, sentence, vectors, window))
        nonzero = around.any(axis=1)
        where = place[side.tokens[part[nonzero]]]
        np.add.at(counts, where, 1.0)
        np.add.at(sums, where, around[nonzero])
    with np.errstate(invalid="ignore"):
        means: TestArray = sums / counts[:, None]
    return means


def _around(
    at: IntArray, tokens: CodeArray, sentence: IntArray, vectors: FloatArray, window: int
) -> FloatArray:
    """float32 [n, dim]: sum over the words around each place, within its sentence."""
    sums = np.zeros((len(at), vectors.shape[1]), np.float32)
    for step in [*range(-window, 0), *range(1, window + 1)]:
        other = at + step
        inside = (other >= 0) & (other < len(tokens))
        other = np.where(inside, other, 0)
        inside &= (sentence[other] == sentence[at]) & (tokens[other] >= 0)
        sums[inside] += (window + 1 - abs(step)) / window * vectors[tokens[other[inside]]]
    return sums
