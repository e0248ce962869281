"""Memory that was freed goes back to the system."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Have glibc give back what it keeps for later; nothing where there is another library."""
    if (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)) is not None:
        trim(0)
