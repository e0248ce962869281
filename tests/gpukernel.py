"""The kernel for GPUs where tests run: on a GPU, or by Triton's interpreter."""

from __future__ import annotations

import os
from types import ModuleType

import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def gpu_kernel() -> ModuleType:
    """`yeoron_lab.hogwild.gpu`, interpreted where there is no GPU; the test is skipped without
    Triton."""
    if DEVICE == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined
    pytest.importorskip("triton", reason="Triton is not installed (infra/install.sh test)")
    from yeoron_lab.hogwild import gpu

    return gpu
