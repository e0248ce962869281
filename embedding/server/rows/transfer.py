"""Between numpy and the device of the tables: no copy on the CPU, pinned memory to a GPU.

A GPU copies pinned pages itself, at the speed of the bus and beside whatever runs; pageable ones
go through a small buffer of the driver's. torch keeps pinned pages and gives them out again.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from embedding.exchange.compression.halves import narrow
from embedding.kernel.records import FloatArray, HalfArray


def to_device(values: npt.NDArray[Any], device: torch.device) -> Tensor:
    """The array on the device; on the CPU not copied, whether it may be written to or not."""
    found: Tensor = torch.from_dlpack(values)  # type: ignore[attr-defined]
    if device.type != "cuda":
        return found
    staged = torch.empty(found.shape, dtype=found.dtype, pin_memory=True)
    staged.copy_(found)
    return staged.to(device, non_blocking=True)


def to_host(values: Tensor) -> npt.NDArray[Any]:
    """The tensor as an array; waits until a GPU has computed and copied it."""
    if not values.is_cuda:
        found: npt.NDArray[Any] = values.numpy()
        return found
    staged = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
    staged.copy_(values, non_blocking=True)
    torch.cuda.current_stream(values.device).synchronize()
    arrived: npt.NDArray[Any] = staged.numpy()
    return arrived


def as_sent(rows: Tensor, half: bool) -> FloatArray | HalfArray:
    """Rows as they leave the server; a GPU rounds them before they leave it."""
    if not half:
        found: FloatArray = to_host(rows)
        return found
    if rows.is_cuda:
        rounded: HalfArray = to_host(rows.half())
        return rounded
    return narrow(rows.numpy())
