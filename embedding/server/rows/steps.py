"""What is done to rows on a device: taken out, added to, stepped by AdaGrad."""

from __future__ import annotations

import logging
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from embedding.server.rows.fetching import add_rows, gather_rows, load

logger = logging.getLogger(__name__)

_WIDEST = 4096


class RowSteps(Protocol):
    """Ways to read and change some rows of a table float32 [capacity, dim], all on one device.

    where  int64 [n], places of rows; those that are changed are distinct and not negative
    delta  float32 or float16 [n, dim]
    """

    def gather(self, rows: Tensor, where: Tensor, *, gaps: bool) -> Tensor:
        """Rows float32 [n, dim]; with `gaps` a negative place gives zeros."""
        ...

    def add(self, rows: Tensor, where: Tensor, delta: Tensor, scale: float) -> None:
        """rows[where] += scale · delta."""
        ...

    def adagrad(
        self,
        rows: Tensor,
        moved: Tensor,
        where: Tensor,
        delta: Tensor,
        scale: float,
        rate: float,
    ) -> None:
        """moved += mean(d²), row += d · min(1, rate/√moved), d = scale · delta.

        AdaGrad (Duchi 2011) with one accumulator a row; moved float32 [capacity].
        """
        ...


class TorchSteps:
    """By torch, on any device."""

    def gather(self, rows: Tensor, where: Tensor, *, gaps: bool) -> Tensor:
        if not gaps:
            return rows.index_select(0, where)
        found = rows.index_select(0, where.clamp(min=0))
        found[where < 0] = 0.0
        return found

    def add(self, rows: Tensor, where: Tensor, delta: Tensor, scale: float) -> None:
        rows.index_add_(0, where, delta.float(), alpha=scale)

    def adagrad(
        self,
        rows: Tensor,
        moved: Tensor,
        where: Tensor,
        delta: Tensor,
        scale: float,
        rate: float,
    ) -> None:
        step = delta.float() * scale
        total = moved[where] + step.square().mean(dim=1)
        step.mul_((rate * total.rsqrt()).clamp_(max=1.0).unsqueeze(1))
        # Last: where there is no memory for one of the steps before, nothing has changed.
        moved[where] = total
        rows.index_add_(0, where, step)


class FetchingSteps(TorchSteps):
    """On the CPU, with rows on their way from memory while others are worked on.

    The kernels are loaded on construction.
    """

    def __init__(self) -> None:
        load()

    def gather(self, rows: Tensor, where: Tensor, *, gaps: bool) -> Tensor:
        del gaps
        found = torch.empty((len(where), rows.shape[1]), dtype=torch.float32)
        gather_rows(rows.numpy(), where.numpy(), found.numpy())
        return found

    def add(self, rows: Tensor, where: Tensor, delta: Tensor, scale: float) -> None:
        whole = delta.float().contiguous()
        add_rows(rows.numpy(), where.numpy(), whole.numpy(), np.float32(scale))


def pick_steps(device: torch.device, dim: int) -> RowSteps:
    """Kernels that pass over the rows once, where there are such; torch elsewhere."""
    if device.type == "cpu":
        return FetchingSteps()
    if device.type != "cuda" or dim > _WIDEST:
        return TorchSteps()
    try:
        from embedding.server.rows.tritonsteps import TritonSteps

        return TritonSteps(device, dim)
    except Exception as error:  # noqa: BLE001 - whatever keeps a compiler from working
        logger.warning("rows are changed by torch: Triton cannot be used (%s)", error)
        return TorchSteps()
