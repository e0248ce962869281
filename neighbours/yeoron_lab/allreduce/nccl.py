"""Sums over GPUs of one machine, by NCCL: a thin shell around torch.distributed.

Only tensors travel: no object collectives, which pickle. NCCL's own sockets take only who knows a
random number, which lies in the folder of the rendezvous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import IntArray
from yeoron_lab.allreduce.ring import FORM_SECONDS, Ring, RingSpec

if TYPE_CHECKING:
    import torch


class NcclRing(Ring):
    """Of nodes that each have a GPU."""

    def __init__(self, spec: RingSpec, *, timeout_s: float) -> None:
        super().__init__(spec, timeout_s=timeout_s)
        self._group, self._device = self._guard(lambda: _meet(spec, timeout_s))

    def gather(self, header: IntArray) -> IntArray:
        import torch

        own = torch.from_numpy(header.astype(np.int64)).to(self._device)
        headers = [torch.empty_like(own) for _ in range(self.size)]
        self._guard(lambda: self._group.allgather([headers], [own]).wait())
        self.bytes_sent += header.nbytes * (self.size - 1)
        return np.stack([each.cpu().numpy() for each in headers])

    def add_up(self, values: npt.NDArray[Any]) -> None:
        if not values.size:
            return
        with self._lent(values) as tensor:
            self._guard(lambda: self._group.allreduce([tensor]).wait())
        self.bytes_sent += 2 * (self.size - 1) * values.nbytes // self.size

    def from_leader(self, values: npt.NDArray[Any]) -> None:
        if not values.size:
            return
        options = import_module("torch.distributed").BroadcastOptions()
        options.rootRank, options.rootTensor = 0, 0
        with self._lent(values) as tensor:
            self._guard(lambda: self._group.broadcast([tensor], options).wait())
        self.bytes_sent += values.nbytes * (self.size - 1) if self.is_root else 0

    def close(self) -> None:
        self._group = None

    @contextmanager
    def _lent(self, values: npt.NDArray[Any]) -> Iterator[torch.Tensor]:
        """The array as a tensor on the GPU; what becomes of it is in the array afterwards."""
        import torch

        tensor = torch.from_numpy(values)
        on_device = tensor.to(self._device)
        yield on_device
        tensor.copy_(on_device)

    def _guard(self, call: Callable[[], Any]) -> Any:
        """Run `call`; what torch says of a peer as an error of ours."""
        try:
            return call()
        except RuntimeError as error:
            raise self._gone(silent="imed out" in str(error)) from error


def _meet(spec: RingSpec, timeout_s: float) -> tuple[Any, torch.device]:
    """The process group and the device of its tensors."""
    import torch

    # Imported where it is used, as it takes seconds, and as untyped as it is.
    dist = import_module("torch.distributed")
    store = dist.FileStore(str(spec.folder / f"nccl-{spec.generation}"), spec.size)
    store.set_timeout(timedelta(seconds=min(timeout_s, FORM_SECONDS)))
    device = torch.device("cuda", spec.rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    options = dist.ProcessGroupNCCL.Options()
    options._timeout = timedelta(seconds=timeout_s)  # noqa: SLF001 - the only way to set it
    return dist.ProcessGroupNCCL(store, spec.rank, spec.size, options), device
