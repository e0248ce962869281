"""Where ids lie among others that are in order."""

from __future__ import annotations

import numpy as np
import pytest

from embedding.kernel.positions import positions


@pytest.mark.parametrize(
    ("ids", "wanted", "found"),
    [
        ([2, 5, 9], [9, 3, 2, 1, 10], [2, -1, 0, -1, -1]),
        ([], [1, -1], [-1, -1]),
        ([4], [], []),
        ([-3, 5_000, 9_000], [5_000, 4_999, -3, 9_000, 9_001], [1, -1, 0, 2, -1]),
        ([-1, 4], [[4, 0], [-1, 9]], [[1, -1], [0, -1]]),
    ],
)
def test_an_id_has_its_place_and_another_has_none(ids, wanted, found):
    places = positions(np.array(ids, dtype=np.int64), np.array(wanted, dtype=np.int64))
    assert places.tolist() == found
    assert places.dtype == np.int64
