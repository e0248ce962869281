"""Word similarity of a snapshot against the gold file of the configuration."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from embedding.evaluation.gold import PairGold, read_gold
from embedding.evaluation.similarity import similarity
from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray, IntArray

logger = logging.getLogger(__name__)


def measure_gold(path: Path, words: Sequence[str], vectors: FloatArray) -> dict[str, float]:
    """`similarity/NAME` and `coverage/NAME`; nothing, and a line in the log, without a file.

    vectors: float32 [n, dim] of `words`. The file is read at each cut, so that it may be corrected
    while the server runs.
    """
    try:
        gold = read_gold(path)
    except InputError as error:
        logger.warning("%s", error)
        return {}
    if not isinstance(gold, PairGold):
        logger.warning("gold file %s: the server measures word pairs; this has analogies.", path)
        return {}
    index = {word: at for at, word in enumerate(words)}

    def rows(asked: Sequence[str]) -> IntArray:
        return np.array([index.get(word, -1) for word in asked], dtype=np.int64)

    result = similarity(vectors, rows, gold)
    found = {f"coverage/{gold.name}": result.coverage}
    if math.isfinite(result.rho):
        found[f"similarity/{gold.name}"] = result.rho
    return found
