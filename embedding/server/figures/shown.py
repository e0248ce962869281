"""Tables of what other packages add to a server's status, as `yeoron status` shows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from embedding.kernel.registry import NoTraits, Registry


@dataclass(frozen=True)
class StatusTable:
    """A title, the heads of columns, and rows of as many cells; failed: places of rows in red."""

    title: str
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    failed: Sequence[int] = ()


STATUS: Registry[Callable[[dict[str, Any]], list[StatusTable]], NoTraits] = Registry(
    "part of the status", "yeoron.status"
)
"""Each makes tables of a server's status, those that the server has something for."""
