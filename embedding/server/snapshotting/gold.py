"""Word similarity of rows against gold pairs: those of a question, or of the configured file."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from embedding.evaluation.gold import PairGold, read_gold
from embedding.evaluation.similarity import similarity
from embedding.kernel.devices import DeviceArray
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
    found = similarity_figures(gold, index, vectors)
    return {name: value for name, value in found.items() if math.isfinite(value)}


def similarity_figures(
    gold: PairGold, index: Mapping[str, int], vectors: DeviceArray
) -> dict[str, float]:
    """`similarity/NAME`, which may be NaN, and `coverage/NAME` of vectors [n, dim] by word."""
    result = similarity(vectors, rows_of(index), gold)
    return {f"similarity/{gold.name}": result.rho, f"coverage/{gold.name}": result.coverage}


def rows_of(index: Mapping[str, int]) -> Callable[[Sequence[str]], IntArray]:
    """Looks up the rows int64 [n] of words, -1 for one without."""
    return lambda words: np.array([index.get(word, -1) for word in words], dtype=np.int64)
