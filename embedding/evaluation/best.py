"""The best rows of a table that is looked at block by block, on its own device."""

from __future__ import annotations

import torch
from torch import Tensor

from embedding.evaluation.lookup import unit


class NearestRows:
    """Keeps the n rows of highest cosine with one query.

    query  float [d] on any device; blocks that are shown come from the same device
    """

    def __init__(self, query: Tensor, n: int) -> None:
        self._query = unit(query.unsqueeze(0))[0]
        self._n = n
        self._cosines = query.new_empty(0)
        self._rows = torch.empty(0, dtype=torch.int64, device=query.device)

    def show(self, rows: Tensor, vectors: Tensor) -> None:
        """A block: rows int64 [m] by which vectors float [m, d] are known. Zeros are left out."""
        cosines = unit(vectors) @ self._query
        cosines[~vectors.any(dim=1)] = -torch.inf
        cosines = torch.cat([self._cosines, cosines])
        rows = torch.cat([self._rows, rows])
        self._cosines, at = torch.topk(cosines, min(self._n, len(cosines)))
        self._rows = rows[at]

    def best(self) -> list[tuple[int, float]]:
        """(row, cosine), highest first."""
        pairs = zip(self._rows.tolist(), self._cosines.tolist(), strict=True)
        return [(row, cosine) for row, cosine in pairs if cosine > -2.0]
