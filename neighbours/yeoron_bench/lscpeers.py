"""What people use, for `lsc.py`: gensim on each side, orthogonal Procrustes, cosine distance."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.nearness import unit_rows
from embedding.trends.shift import cosine_distance, fit_rotation
from embedding.trends.significance import TestArray
from yeoron_bench.changeset import ChangeSet, Sentences
from yeoron_bench.lscours import WINDOW
from yeoron_bench.options import LscSetting


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
    model = Word2Vec(
        lines,
        vector_size=given.dim,
        window=WINDOW,
        sg=1,
        negative=5,
        sample=1e-4,
        min_count=given.min_count,
        epochs=passes,
        workers=1,
        seed=seed,
    )
    return {int(word): at for word, at in model.wv.key_to_index.items()}, model.wv.vectors
