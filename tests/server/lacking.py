"""Tables that find no memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from embedding.server.rows.tables import Tables

FULL = [MemoryError(), RuntimeError("CUDA error"), torch.OutOfMemoryError("out of memory")]


def failing(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    error: Exception,
    *,
    after: int = 0,
    of: type = Tables,
) -> Callable[[], None]:
    """A class whose call `name` finds no memory after so many times; the call ends that."""
    real, left = getattr(of, name), [after]

    def call(self: object, *args: object, **more: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise error
        return real(self, *args, **more)

    monkeypatch.setattr(of, name, call)
    return lambda: monkeypatch.setattr(of, name, real)
