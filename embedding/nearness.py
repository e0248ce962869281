"""How near a word is to another: cosine, less what its own vector is unsure by.

A vector learnt from c mentions is partly what the word means and partly what happened to stand
around it. A cosine with such a vector says too much: of two measurements of which one has the
reliability r, the expected correlation with what was to be measured is √r of what is seen
(Spearman 1904). Among many candidates the unsure ones win by chance, and the nearest words of a
word would be rare ones. So words are ranked by

    nearness(x, y) = cos(x, y) · √(c_y / (c_y + UNSURE)),

c_y the running count of the word that is looked for (benchmarks/results/nearness-2026-11-23.md).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from embedding.records import FloatArray

UNSURE = 20.0
"""Mentions after which half of a vector's variance is chance."""


def sureness(counts: npt.ArrayLike) -> FloatArray:
    """float32 [n]: √(c / (c + UNSURE)) of running counts [n]; one below 1 counts as 1."""
    known = np.maximum(np.asarray(counts, dtype=np.float64), 1.0)
    found: FloatArray = np.sqrt(known / (known + UNSURE)).astype(np.float32)
    return found
