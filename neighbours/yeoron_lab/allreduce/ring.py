"""Sums over all nodes: what a ring of nodes can do, and the one of Unix sockets."""

from __future__ import annotations

import os
import select
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from embedding.kernel.config import Config
from embedding.kernel.errors import BrokenRingError
from embedding.kernel.records import IntArray

FORM_SECONDS = 30.0
"""How long nodes that have met wait for each other's connections."""
_LOOK_SECONDS = 0.02
_CHUNK = 1 << 20
"""Bytes of the leader's values that are handed on at a time."""
_NOTHING = memoryview(b"")


class RingSpec(Config):
    """A node's place among the nodes that all-reduce, for as long as none comes or goes."""

    folder: Path
    """Folder of the rendezvous."""
    rank: int = Field(ge=0)
    """This node, from 0; 0 leads: it brings the tables to the server."""
    size: int = Field(ge=1)
    """Nodes that take part."""
    generation: int = Field(default=0, ge=0)
    """How often the nodes met before."""
    backend: Literal["sockets", "nccl"] = "sockets"
    """What carries the sums."""


class Ring(ABC):
    """One node among those that all-reduce; all nodes make the same calls in the same order.

    Each call raises BrokenRingError when a peer is gone, or silent for the time given. One thread
    uses it. Sums are bit for bit the same on every node.

    rank, size  this node's place, from 0, among so many
    is_root     whether it is the one of rank 0, which brings the tables to the server
    bytes_sent  by this node
    """

    def __init__(self, spec: RingSpec, *, timeout_s: float) -> None:
        self.rank, self.size = spec.rank, spec.size
        self.is_root = spec.rank == 0
        self.bytes_sent = 0
        self._timeout_s = timeout_s

    @abstractmethod
    def gather(self, header: IntArray) -> IntArray:
        """Everybody's header, int64 [size, k] from int64 [k], by rank; also a barrier."""

    @abstractmethod
    def add_up(self, values: npt.NDArray[Any]) -> None:
        """Sum over all nodes, in place; C-contiguous, of one shape and dtype everywhere."""

    @abstractmethod
    def from_leader(self, values: npt.NDArray[Any]) -> None:
        """The leader's values, in place; as `add_up`."""

    @abstractmethod
    def close(self) -> None:
        """Let the others go; never raises."""

    def _gone(self, *, silent: bool) -> BrokenRingError:
        """The error of a node whose peer is gone, or was silent for too long."""
        what = f"was silent for {self._timeout_s:.0f} s" if silent else "is gone"
        return BrokenRingError(
            f"all-reduce of {self.size} nodes: a peer of node {self.rank} {what}."
        )


class SocketRing(Ring):
    """Through Unix sockets in the folder of a rendezvous, on one machine.

    Each node sends to its right neighbour and receives from its left one. A sum goes around the
    ring twice: first each part is added up on the way, then the finished parts are handed on (ring
    all-reduce, Patarasuk and Yuan 2009). Each node sends 2·(n-1)/n of a sum. A part is finished on
    one node and copied to the others, so that all have the same bits.

    Who leaves a ring closes its sockets. Its neighbours notice and leave too, and so on around.
    """

    def __init__(self, spec: RingSpec, *, timeout_s: float) -> None:
        super().__init__(spec, timeout_s=timeout_s)
        self._left = self._right = None
        if spec.size > 1:
            with self._broken():
                self._left, self._right = _joined(spec, min(timeout_s, FORM_SECONDS))

    def gather(self, header: IntArray) -> IntArray:
        rows = np.zeros((self.size, len(header)), dtype=np.int64)
        rows[self.rank] = header
        self._hand_around(list(rows), self.rank)
        return rows

    def add_up(self, values: npt.NDArray[Any]) -> None:
        if not values.size:
            return
        flat = _flat(values)
        bounds = [values.size * i // self.size for i in range(self.size + 1)]
        parts = [flat[low:high] for low, high in pairwise(bounds)]
        for step in range(self.size - 1):
            out, into = parts[self.rank - step], parts[self.rank - step - 1]
            arrived = np.empty_like(into)
            self._move(_bytes(out), _bytes(arrived))
            into += arrived
        self._hand_around(parts, self.rank + 1)

    def from_leader(self, values: npt.NDArray[Any]) -> None:
        whole = _bytes(values)
        chunks = [whole[at : at + _CHUNK] for at in range(0, len(whole), _CHUNK)]
        last = self.rank == self.size - 1
        before = _NOTHING
        for chunk in (*chunks, _NOTHING):
            self._move(_NOTHING if last else before, _NOTHING if self.is_root else chunk)
            before = chunk

    def close(self) -> None:
        for line in (self._left, self._right):
            if line is not None:
                line.close()

    def _hand_around(self, parts: list[npt.NDArray[Any]], own: int) -> None:
        """Every node's finished part on every node; `own` is the place of this node's."""
        for step in range(self.size - 1):
            out, into = ((own - step - back) % self.size for back in (0, 1))
            self._move(_bytes(parts[out]), _bytes(parts[into]))

    def _move(self, out: memoryview, into: memoryview) -> None:
        """Send to the right and receive from the left, both at once: else all would send first."""
        left, right = self._left, self._right
        if left is None or right is None:
            return
        self.bytes_sent += len(out)
        with self._broken():
            while out or into:
                ready = select.poll()
                if out:
                    ready.register(right, select.POLLOUT)
                if into:
                    ready.register(left, select.POLLIN)
                readable = {line for line, _ in ready.poll(self._timeout_s * 1000)}
                if not readable:
                    raise TimeoutError
                if out and right.fileno() in readable:
                    out = out[right.send(out) :]
                if into and left.fileno() in readable:
                    got = left.recv_into(into)
                    if not got:
                        raise ConnectionResetError
                    into = into[got:]

    @contextmanager
    def _broken(self) -> Iterator[None]:
        """What a socket says of a peer, as an error of ours."""
        try:
            yield
        except (OSError, ValueError) as error:
            raise self._gone(silent=isinstance(error, TimeoutError)) from error


def _joined(spec: RingSpec, timeout_s: float) -> tuple[socket.socket, socket.socket]:
    """Connections from the left neighbour and to the right one."""
    deadline = time.monotonic() + timeout_s
    # A socket's path has 107 characters at most. By the folder's descriptor it always fits.
    folder = os.open(spec.folder, os.O_RDONLY | os.O_DIRECTORY)

    def place(rank: int) -> Path:
        return Path(f"/proc/self/fd/{folder}/ring-{spec.generation}-{rank}")

    own = place(spec.rank)
    right = None
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(own))
            listener.listen(1)
            right = _connected(place((spec.rank + 1) % spec.size), deadline)
            listener.settimeout(max(0.01, deadline - time.monotonic()))
            left, _ = listener.accept()
    except BaseException:
        if right is not None:
            right.close()
        raise
    finally:
        own.unlink(missing_ok=True)
        os.close(folder)
    for line in (left, right):
        line.setblocking(False)
    return left, right


def _connected(place: Path, deadline: float) -> socket.socket:
    """A connection to a node that may not listen yet."""
    while True:
        line = socket.socket(socket.AF_UNIX)
        try:
            line.connect(str(place))
        except (FileNotFoundError, ConnectionRefusedError) as error:
            line.close()
            if time.monotonic() > deadline:
                raise TimeoutError from error
            time.sleep(_LOOK_SECONDS)
        except BaseException:
            line.close()
            raise
        else:
            return line


def _flat(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array as one row, without a copy."""
    if not values.flags.c_contiguous:
        raise ValueError(f"sums: a C-contiguous array is accepted, got strides {values.strides}.")
    return values.reshape(-1)


def _bytes(values: npt.NDArray[Any]) -> memoryview:
    return _flat(values).view(np.uint8).data if values.size else _NOTHING
