"""Units of documents of several sides, as the tests of trends make them."""

from __future__ import annotations

import numpy as np

from embedding.trends.replicas import Units


def units(*sides: tuple[tuple, bool, int]) -> Units:
    """Of (documents float32 [n, units] and sums float32 [n, units, dim], later, source) of several
    sides with as many units each."""
    each = sides[0][0][0].shape[1]
    return Units(
        np.concatenate([counts for (counts, _), _, _ in sides], axis=1),
        np.concatenate([sums for (_, sums), _, _ in sides], axis=1),
        np.repeat(np.array([later for _, later, _ in sides]), each),
        np.repeat(np.array([source for *_, source in sides]), each),
        np.zeros(each * len(sides), dtype=bool),
    )
