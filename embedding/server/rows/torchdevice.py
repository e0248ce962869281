"""Rows in torch tensors: on a GPU, and in tests on the CPU.

A GPU copies pinned pages itself, at the speed of the bus and beside whatever runs; pageable ones
go through a small buffer of the driver's. torch keeps pinned pages and gives them out again.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt
import torch
from torch import Tensor

from embedding.exchange.compression.halves import narrow
from embedding.kernel.devices import DeviceArray
from embedding.kernel.errors import ConfigError
from embedding.kernel.records import CodeArray, FloatArray, HalfArray

if TYPE_CHECKING:
    from embedding.server.rows.tritonsteps import TritonSteps

logger = logging.getLogger(__name__)

_WIDEST = 4096


def gpu() -> TorchDevice:
    """The GPU of a machine that has one; ConfigError where it takes no work."""
    try:
        torch.zeros(1, device="cuda")
    except RuntimeError as error:  # of torch
        why = str(error).splitlines()[0]
        raise ConfigError(
            f"device cuda: it takes no work ({why}); end what else runs there, or use cpu."
        ) from error
    return TorchDevice(torch.device("cuda"))


class TorchDevice:
    """See RowDevice."""

    def __init__(self, device: torch.device) -> None:
        self.torch = device
        self.type: Literal["cpu", "cuda"] = "cuda" if device.type == "cuda" else "cpu"

    def __str__(self) -> str:
        return str(self.torch)

    def zeros(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.float32, device=self.torch)

    def place(self, values: DeviceArray) -> Tensor:
        if isinstance(values, Tensor):
            return values.to(self.torch)
        tensor: Tensor = torch.from_dlpack(values)  # type: ignore[attr-defined]
        if self.type != "cuda":
            return tensor
        staged = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        staged.copy_(tensor)
        return staged.to(self.torch, non_blocking=True)

    def host(self, values: Tensor) -> npt.NDArray[Any]:
        if not values.is_cuda:
            array: npt.NDArray[Any] = values.numpy()
            return array
        staged = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
        staged.copy_(values, non_blocking=True)
        torch.cuda.current_stream(values.device).synchronize()
        arrived: npt.NDArray[Any] = staged.numpy()
        return arrived

    def as_sent(self, rows: Tensor, half: bool) -> FloatArray | HalfArray:
        if half and not rows.is_cuda:
            return narrow(rows.numpy())
        sent: FloatArray | HalfArray = self.host(rows.half() if half else rows)
        return sent

    def steps(self, dim: int) -> TorchSteps | TritonSteps:
        """Kernels that pass over the rows once, where there are such; torch elsewhere."""
        if self.type != "cuda" or dim > _WIDEST:
            return TorchSteps()
        try:
            from embedding.server.rows.tritonsteps import TritonSteps

            return TritonSteps(self.torch, dim)
        except Exception as error:  # noqa: BLE001 - whatever keeps a compiler from working
            logger.warning("rows are changed by torch: Triton cannot be used (%s)", error)
            return TorchSteps()

    def wait(self) -> None:
        if self.type == "cuda":
            torch.cuda.synchronize(self.torch)

    def limit_threads(self, threads: int) -> None:
        torch.set_num_threads(threads)


class TorchSteps:
    """See RowSteps; by torch, on any device."""

    def gather(self, rows: Tensor, where: Tensor) -> Tensor:
        gathered = rows.index_select(0, where.clamp(min=0))
        return gathered.masked_fill_((where < 0)[:, None], 0.0)

    def add(self, rows: Tensor, where: Tensor, delta: Tensor, scale: float) -> None:
        rows.index_add_(0, where, delta.float(), alpha=scale)

    def adagrad(
        self, rows: Tensor, moved: Tensor, where: Tensor, delta: Tensor, scale: float, rate: float
    ) -> None:
        step = delta.float() * scale
        total = moved[where] + step.square().mean(dim=1)
        step.mul_((rate * total.rsqrt()).clamp_(max=1.0).unsqueeze(1))
        # Last: where there is no memory for one of the steps before, nothing has changed.
        moved[where] = total
        rows.index_add_(0, where, step)


def sum_bags(rows: Tensor, buckets: CodeArray, offsets: CodeArray) -> Tensor:
    """Sum [n, dim] of the rows of each bag (see `GramBags`)."""
    return torch.nn.functional.embedding_bag(
        torch.from_numpy(buckets).to(rows.device),
        rows,
        torch.from_numpy(offsets[:-1]).to(rows.device),
        mode="sum",
    )


def at_device(values: npt.NDArray[Any], device: torch.device) -> Tensor:
    """A few values on the device; many go by pinned memory (`TorchDevice.place`)."""
    return torch.from_numpy(values).to(device)
