"""Where rows lie: in numpy arrays on the CPU, in torch tensors on a GPU.

torch is imported for a GPU alone (`torchdevice.py`): see `kernel/devices.py`.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from embedding.exchange.compression.halves import narrow
from embedding.kernel.devices import DeviceArray, on_gpu
from embedding.kernel.records import FloatArray, HalfArray
from embedding.server.rows.memory import zeros
from embedding.server.rows.steps import FetchingSteps, RowSteps


class SharedRows(Protocol):
    """Tables that processes of this host have together, one after the other; zeros at first.

    on_gpu  they are on a GPU
    """

    on_gpu: bool

    @property
    def path(self) -> str:
        """Where other processes of this host find them (`SharedTables`)."""

    def table(self, at: int) -> DeviceArray:
        """One table, float32 [rows[at], dim]."""


class RowDevice(Protocol):
    """What differs between devices."""

    type: Literal["cpu", "cuda"]

    def zeros(self, *shape: int) -> DeviceArray:
        """float32 zeros."""

    def place(self, values: DeviceArray) -> DeviceArray:
        """The values there; what is there already is not copied and may be read only."""

    def host(self, values: DeviceArray) -> npt.NDArray[Any]:
        """Values that are there as a numpy array, once they are computed."""

    def as_sent(self, rows: DeviceArray, half: bool) -> FloatArray | HalfArray:
        """Rows as they leave the server; a GPU rounds them before they leave it."""

    def steps(self, dim: int) -> RowSteps:
        """What changes rows of `dim` columns."""

    def wait(self) -> None:
        """Return once all that was asked for is computed."""

    def limit_threads(self, threads: int) -> None:
        """Products of matrices take at most so many in this process, from now on."""


class HostDevice:
    """The CPU and its memory."""

    type: Literal["cpu", "cuda"] = "cpu"

    def __str__(self) -> str:
        return self.type

    def zeros(self, *shape: int) -> DeviceArray:
        return zeros(*shape)

    def place(self, values: DeviceArray) -> DeviceArray:
        return values

    def host(self, values: DeviceArray) -> npt.NDArray[Any]:
        found: npt.NDArray[Any] = values
        return found

    def as_sent(self, rows: DeviceArray, half: bool) -> FloatArray | HalfArray:
        return narrow(rows) if half else rows

    def steps(self, dim: int) -> RowSteps:
        del dim
        return FetchingSteps()

    def wait(self) -> None:
        """Nothing is computed later."""

    def limit_threads(self, threads: int) -> None:
        from threadpoolctl import threadpool_limits

        threadpool_limits(threads, user_api="blas")


def pick_device(name: Literal["auto", "cpu", "cuda"], *, shared: bool = False) -> RowDevice:
    """The device of that name; ConfigError when a GPU is asked for and there is none.

    shared  nodes train on the tables in place: on a GPU only where it is asked for, as that has a
            kernel for few models
    """
    if (shared and name == "auto") or not on_gpu(name):
        return HostDevice()
    from embedding.server.rows.torchdevice import gpu

    return gpu()


def beside(values: npt.NDArray[Any], rows: DeviceArray) -> DeviceArray:
    """The values where `rows` lie."""
    if isinstance(rows, np.ndarray):
        return values
    from embedding.server.rows.torchdevice import at_device

    return at_device(values, rows.device)


def contiguous(rows: DeviceArray) -> DeviceArray:
    """The same values, those of a row side by side."""
    return np.ascontiguousarray(rows) if isinstance(rows, np.ndarray) else rows.contiguous()
