"""What people use to find changes of meaning: gensim on each side, or in each window again, turned
onto the other by orthogonal Procrustes, and gensim that goes on (`lsc.py`, `drift.py`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.nearness import unit_rows
from embedding.trends.nearest import nearest
from embedding.trends.pair import SnapshotPair
from embedding.trends.shift import cosine_distance, fit_rotation, overlap_shift
from embedding.trends.significance import TestArray
from yeoron_bench.changeset import ChangeSet, Sentences
from yeoron_bench.driftjudging import (
    PLANTED_MIN_COUNT,
    ComparedWindow,
    DriftSetting,
    JudgedTraining,
    judgement,
)
from yeoron_bench.options import LscSetting
from yeoron_bench.planting import PlantedCorpus

GENSIM = {"sg": 1, "negative": 5, "window": 5, "sample": 1e-4, "workers": 1}
NEIGHBOURS = 50
CANDIDATES = 10_000


def gensim(
    corpus: PlantedCorpus, which: Sequence[ComparedWindow], given: DriftSetting, *, goes_on: bool
) -> Iterator[JudgedTraining]:
    """Cosine (after Procrustes when each window is learnt again) and neighbour overlap."""
    began = time.process_time()
    spaces = list(_gensim_spaces(corpus, given, goes_on=goes_on))
    trained = time.process_time() - began
    way = "goes on" if goes_on else "each window"
    for figure in ("cosine", "neighbours"):
        began = time.process_time()
        judged = []
        for window in which:
            pair = _paired(spaces[window.window - 1], spaces[window.window])
            values = _baseline(pair, figure, turned=not goes_on)
            judged.append(judgement(window, dict(zip(pair.words, values, strict=True)), None))
        name = "procrustes" if figure == "cosine" and not goes_on else figure
        seconds = trained + time.process_time() - began
        yield JudgedTraining(f"gensim {way}, {name}", judged, seconds)


def _gensim_spaces(
    corpus: PlantedCorpus, given: DriftSetting, *, goes_on: bool
) -> Iterator[tuple[dict[str, int], FloatArray, np.ndarray]]:
    from gensim.models import Word2Vec

    own = {
        "vector_size": given.dim,
        "min_count": PLANTED_MIN_COUNT,
        "seed": 1 + given.planting,
    }
    epochs = given.epochs if goes_on else 2 * given.epochs
    model, counts = None, Counter[str]()
    for docs in corpus.windows:
        sentences = [list(sentence) for document in docs for sentence in document]
        if model is None or not goes_on:
            model = Word2Vec(**own, **GENSIM)
            counts = Counter()
            model.build_vocab(sentences)
        else:
            model.build_vocab(sentences, update=True)
        counts.update(word for sentence in sentences for word in sentence)
        model.train(sentences, total_examples=len(sentences), epochs=epochs)
        words = dict(model.wv.key_to_index)
        often = np.array([counts[word] for word in words], dtype=np.int64)
        yield words, model.wv.vectors[: len(words)].copy(), often


def _paired(
    before: tuple[dict[str, int], FloatArray, np.ndarray],
    after: tuple[dict[str, int], FloatArray, np.ndarray],
) -> SnapshotPair:
    words = [word for word in after[0] if word in before[0]]
    old = np.array([before[0][word] for word in words])
    new = np.array([after[0][word] for word in words])
    return SnapshotPair(
        words=tuple(words),
        before=unit_rows(before[1][old]),
        after=unit_rows(after[1][new]),
        seen_before=before[2][old],
        seen_after=after[2][new],
    )


def _baseline(pair: SnapshotPair, figure: str, *, turned: bool) -> list[float]:
    rows = np.arange(len(pair), dtype=np.int64)
    if figure == "neighbours":
        candidates, plain = pair.frequent(CANDIDATES), np.ones(len(pair), np.float32)
        near = [
            nearest(side, plain, rows, candidates, NEIGHBOURS, 1024)[0]
            for side in (pair.before, pair.after)
        ]
        return list(map(float, overlap_shift(near[0], near[1], len(pair))))
    before = pair.before @ fit_rotation(pair.before, pair.after) if turned else pair.before
    return list(map(float, cosine_distance(before, pair.after)))


def gensim_scores(
    data: ChangeSet, words: IntArray, given: LscSetting, passes: int, seed: int
) -> TestArray:
    """Cosine distance float64 [n] after alignment (Hamilton et al. 2016); NaN: a side lacks it.

    Vectors of either side have unit length and their mean taken off before all words that both
    sides know are aligned (Artetxe, Labaka and Agirre 2016; SGNS+OP+CD of Schlechtweg et al. 2019).
    """
    spaces = [_space(side, given, passes, seed) for side in (data.before, data.after)]
    common = np.array(sorted(spaces[0][0].keys() & spaces[1][0].keys()), dtype=np.int64)
    sides = []
    for place, vectors in spaces:
        units = unit_rows(vectors[[place[word] for word in common.tolist()]])
        sides.append(unit_rows(units - units.mean(axis=0)))
    distance = cosine_distance(sides[0] @ fit_rotation(sides[0], sides[1]), sides[1])
    scores = np.full(len(words), np.nan)
    at = np.minimum(np.searchsorted(common, words), len(common) - 1)
    shared = common[at] == words
    scores[shared] = distance[at[shared]]
    return scores


def _space(
    side: Sentences, given: LscSetting, passes: int, seed: int
) -> tuple[dict[int, int], FloatArray]:
    """Row of each word of the change set, and vectors."""
    from gensim.models import Word2Vec

    tokens, ends = side.tokens.tolist(), side.offsets.tolist()
    lines = [[str(word) for word in tokens[a:b]] for a, b in pairwise(ends)]
    own = {"vector_size": given.dim, "min_count": given.min_count, "seed": seed}
    model = Word2Vec(lines, epochs=passes, **own, **GENSIM)
    return {int(word): at for word, at in model.wv.key_to_index.items()}, model.wv.vectors
