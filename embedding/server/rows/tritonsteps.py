"""Row steps as GPU kernels that read and write each row once (Triton).

torch takes a gather, an index_add and four passes over the deltas for one AdaGrad step; memory
bandwidth is what bounds all of these, so that one pass is what is to be had. The number of columns
is a constant of each kernel: where four divide it, four columns travel at once.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_ROWS = 8
"""Rows that one program handles: enough bytes on the way to keep the memory busy."""


@triton.jit(do_not_specialize=["n"])  # type: ignore[untyped-decorator]
def _gather(  # type: ignore[no-untyped-def]
    rows, where, gathered, n, dim: tl.constexpr, per: tl.constexpr, wide: tl.constexpr
):
    r = tl.program_id(0) * per + tl.arange(0, per)
    c = tl.arange(0, wide)
    place = tl.load(where + r, mask=r < n, other=-1)
    inside = (r < n)[:, None] & (c < dim)[None, :]
    value = tl.load(
        rows + place[:, None] * dim + c[None, :],
        mask=inside & (place >= 0)[:, None],
        other=0.0,
    )
    tl.store(gathered + r[:, None].to(tl.int64) * dim + c[None, :], value, mask=inside)


@triton.jit(do_not_specialize=["n"])  # type: ignore[untyped-decorator]
def _step(  # type: ignore[no-untyped-def]
    rows,
    moved,
    where,
    delta,
    scale,
    rate,
    n,
    dim: tl.constexpr,
    adagrad: tl.constexpr,
    per: tl.constexpr,
    wide: tl.constexpr,
):
    r = tl.program_id(0) * per + tl.arange(0, per)
    c = tl.arange(0, wide)
    place = tl.load(where + r, mask=r < n, other=0)
    inside = (r < n)[:, None] & (c < dim)[None, :]
    step = tl.load(delta + r[:, None].to(tl.int64) * dim + c[None, :], mask=inside, other=0.0)
    step = step.to(tl.float32) * scale
    if adagrad:
        total = tl.load(moved + place, mask=r < n, other=1.0) + tl.sum(step * step, axis=1) / dim
        tl.store(moved + place, total, mask=r < n)
        # A row that never moved has total 0 and a step of zeros.
        step *= tl.minimum(rate / tl.sqrt(tl.maximum(total, 1e-38)), 1.0)[:, None]
    at = rows + place[:, None] * dim + c[None, :]
    tl.store(at, tl.load(at, mask=inside, other=0.0) + step, mask=inside)


class TritonSteps:
    """RowSteps in one pass each; the kernels are compiled on construction.

    One kernel serves every number of rows (`do_not_specialize`), so that none is compiled while
    nodes wait.
    """

    def __init__(self, device: torch.device, dim: int) -> None:
        self._wide = triton.next_power_of_2(dim)
        rows = torch.zeros((_ROWS, dim), device=device)
        where = torch.zeros(1, dtype=torch.int64, device=device)
        for dtype in (torch.float32, torch.float16):
            delta = torch.zeros((1, dim), dtype=dtype, device=device)
            self.add(rows, where, delta, 1.0)
            self.adagrad(rows, rows[:, 0].contiguous(), where, delta, 1.0, 1.0)
        self.gather(rows, where)

    def gather(self, rows: Tensor, where: Tensor) -> Tensor:
        n, dim = len(where), rows.shape[1]
        gathered = rows.new_empty((n, dim))
        if n:
            _gather[(triton.cdiv(n, _ROWS),)](
                rows, where, gathered, n, dim, per=_ROWS, wide=self._wide
            )
        return gathered

    def add(self, rows: Tensor, where: Tensor, delta: Tensor, scale: float) -> None:
        self._change((rows, rows), where, delta, (scale, 1.0), adagrad=False)

    def adagrad(
        self, rows: Tensor, moved: Tensor, where: Tensor, delta: Tensor, scale: float, rate: float
    ) -> None:
        self._change((rows, moved), where, delta, (scale, rate), adagrad=True)

    def _change(
        self,
        tables: tuple[Tensor, Tensor],
        where: Tensor,
        delta: Tensor,
        numbers: tuple[float, float],
        adagrad: bool,
    ) -> None:
        n, dim = delta.shape
        grid, factors = (triton.cdiv(n, _ROWS),), map(float, numbers)
        if n:
            _step[grid](*tables, where, delta, *factors, n, dim, adagrad, _ROWS, self._wide)
