"""Sums over all nodes: a thin shell around torch.distributed, with our errors and our counts.

The rendezvous (a key-value store of torch) listens on a port that was bound here, on loopback;
torch alone would listen on every interface. Only tensors travel: no object collectives, which
pickle. Sums are bit for bit the same on every node, because gloo reduces each part of a tensor on
one node and copies the result to the others.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from embedding.exchange.topology import RingSpec
from embedding.kernel.errors import BrokenRingError, PlatformError
from embedding.kernel.records import IntArray

if TYPE_CHECKING:
    import torch

BACKLOG = 1024
MEET_SECONDS = 120.0
FORM_SECONDS = 30.0
"""How long nodes that have met wait for each other's sockets."""


@contextmanager
def rendezvous(host: str = "127.0.0.1") -> Iterator[int]:
    """The port of a store at which nodes find each other, open for the length of a `with` block."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind((host, 0))
        listener.listen(BACKLOG)
        port = int(listener.getsockname()[1])
        store = _distributed().TCPStore(
            host,
            port,
            is_master=True,
            wait_for_workers=False,
            timeout=timedelta(seconds=MEET_SECONDS),
            master_listen_fd=listener.fileno(),
        )
    except (OSError, RuntimeError) as error:
        listener.close()
        raise PlatformError(
            f"rendezvous at {host}: no port could be opened ({type(error).__name__})."
        ) from error
    listener.detach()  # the store closes it
    try:
        yield port
    finally:
        del store


class Ring:
    """One node among those that all-reduce; all nodes make the same calls in the same order.

    Raises BrokenRingError when a peer is gone, or silent for `timeout_s`. One thread uses it.

    bytes_sent  by this node, as the ring algorithm sends (2·(n-1)/n of a sum; measured the same)
    """

    def __init__(self, spec: RingSpec, *, timeout_s: float) -> None:
        self.rank = spec.rank
        self.size = spec.size
        self.bytes_sent = 0
        self._timeout_s = timeout_s
        self._spec = spec
        self._group, self._device = self._guard(lambda: _meet(spec, timeout_s))

    @property
    def is_root(self) -> bool:
        """Whether this node brings the tables to the server."""
        return self.rank == 0

    def gather(self, header: IntArray) -> IntArray:
        """Everybody's header, int64 [size, k] from int64 [k], by rank; also a barrier."""
        import torch

        own = torch.from_numpy(header.astype(np.int64)).to(self._device)
        found = [torch.empty_like(own) for _ in range(self.size)]
        self._guard(lambda: self._group.allgather([found], [own]).wait())
        self.bytes_sent += header.nbytes * (self.size - 1)
        return np.stack([each.cpu().numpy() for each in found])

    def add_up(self, values: npt.NDArray[Any]) -> None:
        """Sum over all nodes, in place; of one shape and dtype everywhere."""
        if not values.size:
            return
        with self._lent(values) as tensor:
            self._guard(lambda: self._group.allreduce([tensor]).wait())
        self.bytes_sent += 2 * (self.size - 1) * values.nbytes // self.size

    def from_leader(self, values: npt.NDArray[Any]) -> None:
        """The leader's values, in place."""
        if not values.size:
            return
        options = _distributed().BroadcastOptions()
        options.rootRank, options.rootTensor = 0, 0
        with self._lent(values) as tensor:
            self._guard(lambda: self._group.broadcast([tensor], options).wait())
        self.bytes_sent += values.nbytes * (self.size - 1) if self.is_root else 0

    def close(self) -> None:
        """Let the others go; never raises."""
        self._group = None

    @contextmanager
    def _lent(self, values: npt.NDArray[Any]) -> Iterator[torch.Tensor]:
        """The array as a tensor on the device; what becomes of it is in the array afterwards."""
        import torch

        tensor = torch.from_numpy(values)
        there = tensor.to(self._device)
        yield there
        if there is not tensor:
            tensor.copy_(there)

    def _guard(self, call: Callable[[], Any]) -> Any:
        """Run `call`; what torch says of a peer as an error of ours."""
        try:
            return call()
        except RuntimeError as error:
            late = "imed out" in str(error)
            what = f"was silent for {self._timeout_s:.0f} s" if late else "is gone"
            raise BrokenRingError(
                f"all-reduce of {self.size} nodes: a peer of node {self.rank} {what}."
            ) from error


def store_at(host: str, port: int, *, timeout_s: float) -> Any:
    """A connection to the key-value store of a rendezvous; RuntimeError when it is not there."""
    return _distributed().TCPStore(
        host, port, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=timeout_s)
    )


def _distributed() -> Any:
    """torch.distributed, imported where it is used (it takes seconds) and as untyped as it is."""
    return import_module("torch.distributed")


def _meet(spec: RingSpec, timeout_s: float) -> tuple[Any, Any]:
    """The process group and the device of its tensors."""
    import torch

    dist, limit = _distributed(), timedelta(seconds=timeout_s)
    store = dist.PrefixStore(
        f"ring/{spec.generation}",
        store_at(spec.host, spec.port, timeout_s=min(timeout_s, FORM_SECONDS)),
    )
    if spec.backend == "nccl":
        device = torch.device("cuda", spec.rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
        nccl = dist.ProcessGroupNCCL.Options()
        nccl._timeout = limit  # noqa: SLF001 - the only way to set it
        return dist.ProcessGroupNCCL(store, spec.rank, spec.size, nccl), device
    options = dist.ProcessGroupGloo._Options()  # noqa: SLF001 - the only way to name the interface
    options._devices = [dist.ProcessGroupGloo.create_device(hostname=spec.host)]  # noqa: SLF001
    options._timeout = limit  # noqa: SLF001
    options._threads = 1  # noqa: SLF001
    return dist.ProcessGroupGloo(store, spec.rank, spec.size, options), torch.device("cpu")
