"""Torch references of the models that are counted: what the tests hold their kernels to."""

from __future__ import annotations

import math

import numpy as np
import torch

from embedding.kernel.records import FloatArray, IntArray
from embedding.models.base import BlockLoss, LocalBlock
from embedding.models.config import ModelConfig
from embedding.models.sampling import kept_tokens
from torchreference import TablePair
from yeoron_lab.counts.cooccurrence import CooccurrenceTable, refuse_weights
from yeoron_lab.counts.glove import shuffle


def glove_loss(
    vectors: torch.Tensor,
    contexts: torch.Tensor,
    counts: torch.Tensor,
    alpha: float,
    ceiling: float,
) -> torch.Tensor:
    """½ Σ f(x)·(w·c + b + b̃ - log x)², biases in the last columns; vectors, contexts [b, d + 1]."""
    guess = (vectors[:, :-1] * contexts[:, :-1]).sum(1) + vectors[:, -1] + contexts[:, -1]
    weight = (counts / ceiling).clamp(max=1.0) ** alpha
    return 0.5 * (weight * (guess - counts.log()) ** 2).sum()


def sppmi(counts: torch.Tensor, *, shift: float = 1.0, exponent: float = 0.75) -> torch.Tensor:
    """Shifted positive PMI of dense counts [n, n] (see `yeoron_lab.counts.sppmi`)."""
    smooth = counts.sum(0) ** exponent * (counts.sum(0) > 0)
    chance = counts.sum(1, keepdim=True) * (smooth / smooth.sum())
    pmi = torch.where(counts > 0, (counts / chance).log(), -torch.inf)
    return (pmi - math.log(shift)).clamp(min=0.0)


class GloveStep:
    """Learns blocks by GloVe.

    batch  cells of a step, whose gradients are summed
    """

    def __init__(self, config: ModelConfig, batch: int, device: str) -> None:
        self._config, self._batch, self._device = config, batch, device
        self._table = CooccurrenceTable(config.cells)

    def __call__(self, block: LocalBlock, tables: TablePair, rate: float, seed: int) -> BlockLoss:
        """See `LearnBlock`."""
        config = self._config
        refuse_weights(block, "glove")
        words, ends = kept_tokens(block.tokens, block.sentences, block.keep, seed)
        if not len(words):
            return BlockLoss(0.0, 0)
        ids = np.arange(int(words.max()) + 1) if block.ids is None else block.ids
        table = CooccurrenceTable(config.cells) if block.ids is None else self._table
        cells = table.add(words, ends, ids, config.window)
        shuffle(cells, np.uint64(seed))
        counts = _counts_of(table, ids[cells])
        rates = torch.full((len(cells),), rate, device=self._device)
        total = 0.0
        for at in range(0, len(cells), self._batch):
            pairs = torch.tensor(cells[at : at + self._batch], device=self._device).long()
            seen = torch.tensor(counts[at : at + self._batch], device=self._device)
            rows = [t.rows[pairs[:, k]].requires_grad_() for k, t in enumerate(tables)]
            loss = glove_loss(rows[0], rows[1], seen, config.glove_alpha, config.glove_ceiling)
            slopes = torch.autograd.grad(loss, rows)
            for k, t in enumerate(tables):
                t.descend(pairs[:, k], slopes[k], rates[at : at + self._batch])
            total += float(loss.detach())
        return BlockLoss(total, len(cells), len(words))


def _counts_of(table: CooccurrenceTable, pairs: IntArray) -> FloatArray:
    """Running counts float32 [t] of cells given as ids [t, 2]."""
    rows, columns, counts = table.cells()
    keys, wanted = rows << 32 | columns, pairs[:, 0] << 32 | pairs[:, 1]
    found: FloatArray = counts[np.searchsorted(keys, wanted)]
    return found
