"""The torch reference of each model: gradients by autograd, on any device.

With batch 1 it does what the kernels do, one step after the other, and is what they are held to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from torch.nn.functional import softplus

from embedding.kernel.errors import ConfigError
from embedding.kernel.records import CodeArray, FloatArray, IntArray
from embedding.models.base import BlockLoss, LocalBlock, Track
from embedding.models.config import ModelConfig, Optimiser
from embedding.models.noise_trainer import RowState
from embedding.models.sampling import kept_tokens
from embedding.models.traits import COUNT_MODELS
from yeoron_lab.examples import examples

Tensor = torch.Tensor
REFERENCES = ("sgns", "cbow", "fasttext", "glove")
_EPSILON = 1e-8


def negative_sampling_loss(hidden: Tensor, outputs: Tensor, known: Tensor) -> Tensor:
    """float32 [b]: -log σ(target) - Σ log σ(-noise) of each example of a batch.

    hidden [b, dim]; outputs [b, 1 + k, dim], target first; known bool [b, 1 + k]
    """
    scores = torch.einsum("bd,bkd->bk", hidden, outputs)
    signs = torch.ones_like(scores)
    signs[:, 0] = -1.0
    loss: Tensor = (softplus(signs * scores) * known).sum(1)
    return loss


class DeviceTable:
    """A table on a device, with AdaGrad accumulators [rows, parts] where they are wanted."""

    def __init__(self, rows: FloatArray, squares: FloatArray | None, device: str) -> None:
        self._home = rows
        self.rows = torch.tensor(rows, device=device)
        self._squares = None if squares is None else torch.tensor(squares, device=device)

    def descend(self, at: Tensor, gradient: Tensor, rates: Tensor) -> None:
        """Subtract rate [g] · gradient [g, columns] from rows `at` [g]; AdaGrad: part by part."""
        if self._squares is None:
            self.rows.index_add_(0, at, gradient * rates[:, None], alpha=-1.0)
            return
        columns = gradient.shape[1]
        sizes = [columns] if self._squares.shape[1] == 1 else [columns - 1, 1]
        parts = torch.split(gradient, sizes, dim=1)
        means = torch.stack([(part * part).mean(1) for part in parts], dim=1)
        self._squares.index_add_(0, at, means)
        steps = rates[:, None] / (self._squares[at].sqrt() + _EPSILON)
        scaled = [part * steps[:, k : k + 1] for k, part in enumerate(parts)]
        self.rows.index_add_(0, at, torch.cat(scaled, dim=1), alpha=-1.0)

    def back(self) -> FloatArray | None:
        """Copy the rows to where they came from; returns the accumulators."""
        self._home[:] = self.rows.cpu().numpy()
        return None if self._squares is None else self._squares.cpu().numpy()


TablePair = tuple[DeviceTable, DeviceTable]
LearnBlock = Callable[[LocalBlock, TablePair, float, int], BlockLoss]
"""Learns a block on its two tables, at a learning rate and with a seed."""


class TorchTrainer:
    """A `Trainer` in torch, by negative sampling or GloVe.

    `sentence_gradient` is the true norm, at the rows as the block found them and without AdaGrad.
    """

    def __init__(self, config: ModelConfig, *, device: str = "cpu", batch: int = 4096) -> None:
        if batch < 1:
            raise ConfigError(f"batch {batch}: at least one example a step is needed.")
        if config.model in COUNT_MODELS:
            raise ConfigError(
                f"{config.model} is counted, not trained block by block: no trainer learns it."
            )
        self._config = config
        self._device = device
        self._batch = batch
        self._learn: LearnBlock = self._negative_sampling
        if config.model == "glove":
            from countsreference import GloveStep

            self._learn = GloveStep(config, batch, device)
        self._states: tuple[list[RowState], list[RowState]] = (
            [RowState(), RowState()],
            [RowState(), RowState()],
        )

    def train(
        self,
        block: LocalBlock,
        vectors: FloatArray,
        contexts: FloatArray,
        *,
        learning_rate: float,
        seed: int,
    ) -> BlockLoss:
        """See `Trainer.train`."""
        block.check(vectors, contexts)
        ids = (self._input_ids(block), block.ids)
        tables = self._open(0, ids[0], vectors), self._open(1, ids[1], contexts)
        loss = self._learn(block, tables, learning_rate, seed)
        for side, table in enumerate(tables):
            squares = table.back()
            if squares is not None:
                for part, state in enumerate(self._states[side][: squares.shape[1]]):
                    state.scatter(ids[side], squares[:, part])
        return loss

    def _input_ids(self, block: LocalBlock) -> IntArray | None:
        """Stable ids of all rows of `vectors`: words get even ones, n-grams odd ones."""
        if not self._config.traits.has_subwords or block.subword_offsets is None:
            return block.ids
        if block.ids is None or block.subword_ids is None:
            return None
        words = block.ids[: len(block.subword_offsets) - 1]
        ids: IntArray = np.concatenate([2 * words, 2 * block.subword_ids + 1])
        return ids

    def _open(self, side: int, ids: IntArray | None, rows: FloatArray) -> DeviceTable:
        parts = 0
        if self._config.traits.keeps_state:
            parts = 2
        elif self._config.optimiser is Optimiser.ADAGRAD:
            parts = 1
        kept = [state.gather(ids, len(rows)) for state in self._states[side][:parts]]
        return DeviceTable(rows, np.stack(kept, axis=1) if kept else None, self._device)

    def _negative_sampling(
        self, block: LocalBlock, tables: TablePair, rate: float, seed: int
    ) -> BlockLoss:
        inputs, outputs, starts, owners = examples(self._config, block, seed)
        if self._config.traits.has_subwords:
            inputs = _with_subwords(inputs, block)
        if self._batch > 1:
            starts = np.append(np.arange(0, len(inputs), self._batch), len(inputs))
        rates = np.full(len(inputs), rate, np.float32)
        if block.weights is not None:
            rates *= block.weights[owners]
        data = [torch.tensor(part, device=self._device) for part in (inputs, outputs, rates)]
        norms = None
        if block.track is Track.GRADIENT:
            norms = sentence_gradients(tables, (data[0], data[1]), owners, len(block.sentences) - 1)
        losses = np.zeros(len(inputs), np.float32)
        for at, stop in pairwise(starts):
            step = _sampled_step(tables, *(part[at:stop] for part in data))
            losses[at:stop] = step.cpu().numpy()
        return _with_figures(losses, owners, _kept(block, seed), block, norms)


def _slopes(
    tables: TablePair, bag: Tensor, out: Tensor
) -> tuple[Tensor, tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Of a batch: losses [b], then (rows [g], gradients [g, dim]) of each table.

    bag int64 [b, m], out int64 [b, 1 + k], both -1 where empty
    """
    used, known = bag >= 0, out >= 0
    rows = tables[0].rows[bag.clamp(min=0)] * used[:, :, None]
    hidden = (rows.sum(1) / used.sum(1, keepdim=True)).requires_grad_()
    outputs = tables[1].rows[out.clamp(min=0)].requires_grad_()
    losses = negative_sampling_loss(hidden, outputs, known)
    inward, outward = torch.autograd.grad(losses.sum(), (hidden, outputs))
    # Each row of a bag gets the whole step of the mean, as in word2vec and fastText.
    spread = inward[:, None, :].expand(-1, bag.shape[1], -1)
    return losses.detach(), (bag[used], spread[used]), (out[known], outward[known])


def _sampled_step(tables: TablePair, bag: Tensor, out: Tensor, rates: Tensor) -> Tensor:
    """One step on a batch, each example with its rate [b]; returns the losses [b] before it."""
    losses, *slopes = _slopes(tables, bag.long(), out.long())
    for table, grid, (at, gradient) in zip(tables, (bag, out), slopes, strict=True):
        table.descend(at, gradient, rates[:, None].expand(grid.shape)[grid >= 0])
    return losses


def sentence_gradients(
    tables: TablePair,
    grids: tuple[Tensor, Tensor],
    owners: CodeArray,
    sentences: int,
) -> FloatArray:
    """float32 [m]: norm of the gradient of each sentence's summed loss, at the rows as they are.

    grids are the bags and the outputs of `_slopes`; owners int32 [e] names their sentences.
    """
    bag, out = grids
    norms = np.zeros(sentences, np.float32)
    for s in np.unique(owners).tolist():
        own = torch.tensor(np.flatnonzero(owners == s), device=bag.device)
        _, *slopes = _slopes(tables, bag[own].long(), out[own].long())
        square = 0.0
        for table, (at, gradient) in zip(tables, slopes, strict=True):
            rows, places = torch.unique(at, return_inverse=True)
            summed = torch.zeros(len(rows), table.rows.shape[1], device=bag.device)
            square += float((summed.index_add_(0, places, gradient) ** 2).sum())
        norms[s] = math.sqrt(square)
    return norms


def _with_figures(
    losses: FloatArray, owners: CodeArray, words: int, block: LocalBlock, norms: FloatArray | None
) -> BlockLoss:
    """The loss of a block from those of its examples, with what was asked of its sentences."""
    total = float(losses.sum(dtype=np.float64))
    if block.track is Track.NONE:
        return BlockLoss(total, len(losses), words)
    m = len(block.sentences) - 1
    pairs = np.bincount(owners, minlength=m)
    sums = np.bincount(owners, losses, minlength=m)
    return BlockLoss(
        total,
        len(losses),
        words,
        sentence_loss=(sums / np.maximum(pairs, 1)).astype(np.float32),
        sentence_pairs=pairs.astype(np.int32),
        sentence_gradient=norms,
    )


def _kept(block: LocalBlock, seed: int) -> int:
    return len(kept_tokens(block.tokens, block.sentences, block.keep, seed)[0])


def _with_subwords(inputs: CodeArray, block: LocalBlock) -> CodeArray:
    """Widen inputs [e, 1] to each word's row and its n-gram rows, -1 where there are fewer."""
    if block.subwords is None or block.subword_offsets is None or not len(inputs):
        return inputs
    words = inputs[:, 0]
    start = block.subword_offsets[words]
    size = block.subword_offsets[words + 1] - start
    reach = np.arange(int(size.max()))
    places = np.minimum(start[:, None] + reach, max(len(block.subwords) - 1, 0))
    grams = np.where(reach < size[:, None], block.subwords[places], -1)
    return np.concatenate([inputs, grams.astype(np.int32)], axis=1)
