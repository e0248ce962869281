"""Arrays on the CPU and on a GPU.

On the CPU they are numpy's, on a GPU torch's. torch takes a second of the processor and 130 MB to
import: only who has found a GPU, or was told to use one, imports it.
"""

from __future__ import annotations

import ctypes
import json
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from embedding.kernel.errors import ConfigError

DeviceArray: TypeAlias = Any
"""A numpy array on the CPU, a torch tensor on a GPU. What is written for both uses what both have:
indexing by numpy arrays, arithmetic, `@`, `sum(0)`, `reshape`."""


@cache
def may_have_gpu() -> bool:
    """Whether a driver of GPUs is installed: where there is none torch need not be asked."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return Path("/dev/kfd").exists()  # AMD's
    return True


def gpus() -> int:
    """How many GPUs this machine has."""
    if not may_have_gpu():
        return 0
    import torch

    return torch.cuda.device_count()


def on_gpu(name: str) -> bool:
    """Whether the device `auto`, `cpu` or `cuda` is a GPU; torch is asked only where there may be
    one.

    Raises ConfigError for `cuda` where no GPU can be used, and for any other name.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"device {name!r}: accepted are auto, cpu and cuda.")
    if name != "cpu" and may_have_gpu():
        import torch

        if torch.cuda.is_available():
            return True
    if name == "cuda":
        raise ConfigError(
            "device cuda: this machine has no usable GPU; use cpu or auto, or a newer driver."
        )
    return False


def lend(tensor: DeviceArray) -> str:
    """What other processes of this host borrow a tensor on a GPU by, while it is there."""
    shared = tensor.untyped_storage()._share_cuda_()
    return json.dumps([part.hex() if isinstance(part, bytes) else part for part in shared])


def to_host(values: DeviceArray) -> npt.NDArray[Any]:
    """The values as a numpy array; one that is on the CPU is not copied."""
    if not isinstance(values, np.ndarray):
        values = values.detach().cpu().numpy()
    return np.asarray(values)
