"""The best rows of a table that is looked at block by block, on its own device."""

from __future__ import annotations

import torch
from torch import Tensor

from embedding.evaluation.lookup import unit


class NearestRows:
    """Keeps the n rows nearest to one query (snapshots/nearness.py).

    query   float [d] on any device; blocks that are shown come from the same device
    centre  float [d], what all words have in common; None: nothing
    """

    def __init__(self, query: Tensor, n: int, centre: Tensor | None = None) -> None:
        self._centre = query.new_zeros(len(query)) if centre is None else centre
        self._query = unit(unit(query.unsqueeze(0)) - self._centre)[0]
        self._n = n
        self._near = query.new_empty(0)
        self._rows = torch.empty(0, dtype=torch.int64, device=query.device)

    def show(self, rows: Tensor, vectors: Tensor, sure: Tensor) -> None:
        """A block: rows int64 [m] by which vectors float [m, d] are known, `sureness` float [m].

        Zeros are left out.
        """
        near = (unit(unit(vectors) - self._centre) @ self._query) * sure
        near[~vectors.any(dim=1)] = -torch.inf
        near = torch.cat([self._near, near])
        rows = torch.cat([self._rows, rows])
        self._near, at = torch.topk(near, min(self._n, len(near)))
        self._rows = rows[at]

    def best(self) -> list[tuple[int, float]]:
        """(row, nearness), highest first."""
        pairs = zip(self._rows.tolist(), self._near.tolist(), strict=True)
        return [(row, near) for row, near in pairs if near > -2.0]
