"""What policies declare of themselves, and the registry of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from embedding.kernel.registry import Registry

if TYPE_CHECKING:
    from embedding.exchange.config import ExchangeConfig
    from embedding.models.config import ModelConfig
    from embedding.server.policies.base import Policy


def _goes_with_all(model: ModelConfig, exchange: ExchangeConfig) -> None:
    del model, exchange


@dataclass(frozen=True, kw_only=True)
class PolicyTraits:
    """What a policy does. What needs a trait refuses a policy that does not declare it."""

    waits: bool = False
    """Nodes may wait for each other: blocks are balanced by the nodes' speeds."""

    moves_rows_by_pushes_alone: bool = False
    """Rows change by pushes and in no other way: shards and server groups learn of every change."""

    needs_no_own_rows: bool = False
    """A node has no copies of rows that it goes on training: columns may lie on shards."""

    in_step: bool = False
    """Nodes that sum what they moved among themselves can push the sums: all-reduce, groups."""

    needs_shared_memory: bool = False
    """Nodes write to the server's tables themselves, which lie in memory that they share."""

    needs_rounds: bool = False
    """Nodes take part in rounds of all nodes between their blocks."""

    check: Callable[[ModelConfig, ExchangeConfig], None] = field(default=_goes_with_all, repr=False)
    """ValueError for what of a node's model and exchange does not go with it."""

    def contradiction(self) -> str:
        past = self.needs_shared_memory or self.needs_rounds
        if past and self.moves_rows_by_pushes_alone:
            return (
                "moves_rows_by_pushes_alone with needs_shared_memory or needs_rounds, under which "
                "rows change otherwise"
            )
        if not self.moves_rows_by_pushes_alone and (self.needs_no_own_rows or self.in_step):
            return "needs_no_own_rows and in_step go with moves_rows_by_pushes_alone only"
        return ""


POLICIES: Registry[type[Policy], PolicyTraits] = Registry(
    "policy",
    "yeoron.policies",
    dict.fromkeys(("asp", "bsp", "ssp"), "embedding.server.policies.base"),
    lab=True,
)
"""All policies: those built in, and those of other packages."""
