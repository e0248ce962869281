"""Skip-gram and CBOW with negative sampling on a GPU (Triton), in place on tensors that lie there.

A program, one warp, learns one window after the other. The centre's row and the noise rows are in
registers; each context row is read, used against them and added to. The rows in registers are added
once, at the end of the window: it is one step of its summed loss (Mikolov et al. 2013, "Distributed
Representations", equation 4), on rows that other windows change meanwhile. Additions are atomic, so
that none is lost. Skip-gram has noise words of their own for the contexts on each side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from embedding.kernel.devices import DeviceArray
from embedding.kernel.errors import ConfigError
from embedding.models.base import BlockLoss, LocalBlock, Track
from embedding.models.config import ModelConfig
from embedding.models.sampling import NoiseTable
from embedding.models.tracking import nothing
from embedding.models.traits import GPU_MODEL

BEARABLE = 3e-5
"""Windows in flight for each word, times the square of the learning rate: all of them step from
rows as they were, and their steps add up (docs/adr/0041-training-on-a-gpu.md)."""
_MOST, _WIDEST = 1 << 16, 1 << 15


def windows_in_flight(words: int, rate: float) -> int:
    """How many windows may be learnt at the same time: fewer where words are few or steps long."""
    return max(1, min(_MOST, round(BEARABLE * words / rate**2)))


@triton.jit
def _softplus(x):  # type: ignore[no-untyped-def]
    return tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))


@triton.jit
def _random(seed, at):  # type: ignore[no-untyped-def]
    """32 random bits: the finaliser of MurmurHash3 over a counter."""
    x = (at.to(tl.uint32) * 0x9E3779B9) ^ seed.to(tl.uint32)
    x = (x ^ (x >> 16)) * 0x85EBCA6B
    x = (x ^ (x >> 13)) * 0xC2B2AE35
    return x ^ (x >> 16)


@triton.jit
def _draw(accept, ids, other, size, seed, at):  # type: ignore[no-untyped-def]
    """Noise rows by the alias method, one for each of `at`."""
    place = (_random(seed, 2 * at) % size.to(tl.uint32)).to(tl.int32)
    chance = (_random(seed, 2 * at + 1) >> 8).to(tl.float32) * (1.0 / 16777216.0)
    return tl.where(chance < tl.load(accept + place), tl.load(ids + place), tl.load(other + place))


@triton.jit(do_not_specialize=["size", "n", "stretch", "seed"])  # type: ignore[untyped-decorator]
def learn(  # type: ignore[no-untyped-def]
    words,
    ends,
    owners,
    rates,
    vectors,
    contexts,
    accept,
    ids,
    other,
    losses,
    pairs,
    size,
    n,
    stretch,
    seed,
    dim: tl.constexpr,
    wide: tl.constexpr,
    window: tl.constexpr,
    shrink: tl.constexpr,
    negative: tl.constexpr,
    many: tl.constexpr,
    bag: tl.constexpr,
):
    """`stretch` windows in turn. Each context is an input and the centre its target, or with `bag`
    the mean of the contexts is, and each of them gets its whole step, as on the CPU."""
    column = tl.arange(0, wide)[None, :]
    inside = column < dim
    row = tl.arange(0, many)
    begin = tl.program_id(0) * stretch
    for ahead in range(tl.minimum(stretch, n - begin)):
        centre = begin + ahead
        owner = tl.load(owners + centre)
        reach = window
        if shrink:
            reach = window - (_random(seed, centre) % window).to(tl.int32)
        first = tl.maximum(tl.load(ends + owner), centre - reach)
        last = tl.minimum(tl.load(ends + owner + 1), centre + reach + 1)
        rate = tl.load(rates + owner)
        target = tl.load(words + centre)
        to = contexts + target.to(tl.int64) * dim + column
        own = tl.load(to, mask=inside, other=0.0, cache_modifier=".cg")
        own_step = tl.zeros([1, wide], tl.float32)
        loss = tl.zeros([many, 1], tl.float32)
        own_loss = 0.0
        count = last - first - 1
        hidden = tl.zeros([1, wide], tl.float32)
        if bag:
            for place in range(first, last):
                given = vectors + tl.load(words + place).to(tl.int64) * dim + column
                wanted = inside & (place != centre)
                hidden += tl.load(given, mask=wanted, other=0.0, cache_modifier=".cg")
            hidden /= tl.maximum(count, 1)
            count = tl.minimum(count, 1)
        for side in tl.static_range(1 if bag else 2):
            drawn = _draw(accept, ids, other, size, seed + 1 + side, centre * many + row)
            used = ((row < negative) & (drawn != target))[:, None]
            at = contexts + drawn.to(tl.int64)[:, None] * dim + column
            noise = tl.load(at, mask=used & inside, other=0.0, cache_modifier=".cg")
            step = tl.zeros([many, wide], tl.float32)
            low = first if side == 0 else centre + 1
            high = centre if side == 0 else last
            if bag:
                low, high = 0, count
            for place in range(low, high):
                x = hidden
                if not bag:
                    given = vectors + tl.load(words + place).to(tl.int64) * dim + column
                    x = tl.load(given, mask=inside, other=0.0, cache_modifier=".cg")
                score = tl.sum(own * x)
                scores = tl.sum(noise * x, axis=1, keep_dims=True)
                pull = rate * tl.sigmoid(-score)
                push = tl.where(used, -rate * tl.sigmoid(scores), 0.0)
                moved = pull * own + tl.sum(push * noise, axis=0, keep_dims=True)
                own_step += pull * x
                step += push * x
                own_loss += _softplus(-score)
                loss += tl.where(used, _softplus(scores), 0.0)
                if not bag:
                    tl.atomic_add(given, moved, mask=inside, sem="relaxed")
                else:
                    for each in range(first, last):
                        given = vectors + tl.load(words + each).to(tl.int64) * dim + column
                        wanted = inside & (each != centre)
                        tl.atomic_add(given, moved, mask=wanted, sem="relaxed")
            tl.atomic_add(at, step, mask=used & inside, sem="relaxed")
        tl.atomic_add(to, own_step, mask=inside, sem="relaxed")
        tl.store(losses + centre, own_loss + tl.sum(loss))
        tl.store(pairs + centre, count)


class GpuTrainer:
    """A `Trainer` of skip-gram and CBOW by stochastic gradient, for tensors on a GPU.

    Noise is drawn there: from `LocalBlock.noise`, where it is known, else from the pool. Additions
    come in any order, so that the same arguments give the same rows only within rounding and what
    windows see of each other.
    """

    def __init__(self, config: ModelConfig) -> None:
        wide, many = triton.next_power_of_2(config.dim), triton.next_power_of_2(config.negative)
        if wide * many > _WIDEST:
            raise ConfigError(
                f"dim {config.dim} and negative {config.negative} with {GPU_MODEL.feature}: a "
                f"window's noise rows have to fit into registers; {_WIDEST:,} numbers are accepted "
                "when both are rounded up to powers of 2."
            )
        self._table: NoiseTable | None = None
        self._noise: tuple[Tensor, Tensor, Tensor] | None = None
        self._constants: dict[str, Any] = {
            **config.model_dump(include={"dim", "window", "shrink", "negative"}),
            "wide": wide,
            "many": many,
            "bag": config.traits.bag,
            # A thread has at most 32 numbers of noise rows, and as many of their steps.
            "num_warps": min(32, max(1, many * wide // 1024)),
        }

    def warm(self, device: str) -> None:
        """Compile the kernel, or load it; ConfigError where Triton cannot run on the device."""
        ids = np.arange(4, dtype=np.int32)
        block = LocalBlock(ids % 2, np.array([0, 4], np.int32), np.ones(2, np.float32), ids)
        try:
            rows = torch.zeros((2, 4, self._constants["dim"]), device=device)
            self.train(block, rows[0], rows[1], learning_rate=0.01, seed=1 << 61)
        except Exception as error:  # whatever keeps a compiler or a driver from working
            said = next(iter(str(error).strip().splitlines()), type(error).__name__).rstrip(".")
            mend = "bring the driver of the GPU up to date"
            if isinstance(error, torch.OutOfMemoryError) or "busy" in said:
                mend = "end what else runs on it"
            raise ConfigError(
                f"{GPU_MODEL.feature}: Triton cannot run on this GPU ({said}); {mend}, or leave "
                "out --device cuda."
            ) from error

    def train(
        self,
        block: LocalBlock,
        vectors: DeviceArray,
        contexts: DeviceArray,
        *,
        learning_rate: float,
        seed: int,
    ) -> BlockLoss:
        """See `Trainer.train`; ConfigError where gradients of sentences are to be measured."""
        block.check(vectors, contexts)
        if block.track is Track.GRADIENT:
            raise ConfigError(f"replay gradient with {GPU_MODEL.feature}: use loss or uniform.")
        rows = torch.as_tensor(vectors), torch.as_tensor(contexts)
        device = rows[0].device
        words, ends, owners = _kept(block, device, seed)
        if not len(words) or not len(block.pool):
            return nothing(block, len(words))
        rates = torch.full((len(ends) - 1,), learning_rate, dtype=torch.float32, device=device)
        if block.weights is not None:
            rates *= torch.as_tensor(block.weights, device=device)
        losses = torch.empty(len(words), dtype=torch.float32, device=device)
        pairs = torch.empty(len(words), dtype=torch.int32, device=device)
        known = len(block.keep) or min(map(len, rows))
        stretch = triton.cdiv(len(words), windows_in_flight(known, learning_rate))
        noise = self._drawn_from(block, device)
        learn[(triton.cdiv(len(words), stretch),)](
            *(words, ends, owners, rates, *rows, *noise, losses, pairs),
            *(len(noise[0]), len(words), stretch, seed % (1 << 62)),
            **self._constants,
        )
        return _figures(block, owners, losses, pairs)

    def _drawn_from(self, block: LocalBlock, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """float32 [p], int32 [p], int32 [p]: where a chance is below the first, the second is
        drawn, else the third. Sent to the device when counts have moved."""
        if block.noise is None:
            pool = torch.as_tensor(block.pool, device=device)
            return torch.ones(len(pool), device=device), pool, pool
        table, ids = block.noise
        if self._noise is None or table is not self._table:
            drawn = torch.from_numpy(ids.astype(np.int32)).to(device)
            other = torch.from_numpy(table.other).to(device)
            accept = torch.from_numpy(table.accept).to(device)
            self._table, self._noise = table, (accept, drawn, drawn[other])
        return self._noise


def _kept(block: LocalBlock, device: torch.device, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of the tokens to train on: words int32 [k], offsets of their sentences int32 [m + 1], and
    the sentence of each int32 [k]. What is dropped leaves no gap."""
    tokens = torch.as_tensor(block.tokens, device=device)
    ends = torch.as_tensor(block.sentences, device=device)
    stay = tokens >= 0
    if len(block.keep):
        keep = torch.as_tensor(block.keep, device=device)
        random = torch.Generator(device).manual_seed(seed % (1 << 63))
        chances = torch.rand(len(tokens), generator=random, device=device)
        stay &= chances < keep[tokens.clamp(min=0)]
    sums = torch.zeros(len(tokens) + 1, dtype=torch.int32, device=device)
    torch.cumsum(stay, 0, dtype=torch.int32, out=sums[1:])
    owners = torch.arange(len(ends) - 1, dtype=torch.int32, device=device)
    owners = torch.repeat_interleave(owners, ends.diff(), output_size=len(tokens))
    return tokens[stay], sums[ends], owners[stay]


def _figures(block: LocalBlock, owners: Tensor, losses: Tensor, pairs: Tensor) -> BlockLoss:
    """The loss of a block from the summed losses and the pairs of its windows."""
    total, count = float(losses.sum(dtype=torch.float64)), int(pairs.sum())
    if block.track is Track.NONE:
        return BlockLoss(total, count, len(owners))
    m = len(block.sentences) - 1
    sums = torch.zeros(m, device=losses.device).index_add_(0, owners, losses)
    counts = torch.zeros(m, dtype=torch.int32, device=losses.device).index_add_(0, owners, pairs)
    figures = ((sums / counts.clamp(min=1)).cpu().numpy(), counts.cpu().numpy())
    return BlockLoss(total, count, len(owners), *figures)
