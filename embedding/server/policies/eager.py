"""Policies without a barrier: each push is applied as it arrives."""

from __future__ import annotations

from dataclasses import replace

from embedding.exchange.pace import Pace
from embedding.server.policies.base import Policy, overlapping
from embedding.server.policies.board import ClockTable
from embedding.server.policies.traits import POLICIES, PolicyTraits


class Eager(Policy):
    """Each push is applied as it arrives."""

    def pooled(self, board: ClockTable) -> int:
        """See `overlapping`."""
        return overlapping(len(board.active_clocks()))


@POLICIES.register(
    "ssp",
    PolicyTraits(waits=True, moves_rows_by_pushes_alone=True, needs_no_own_rows=True, in_step=True),
)
class Ssp(Eager):
    """Stale-synchronous parallel (Ho 2013, section 2): a reader at clock c sees every update of
    clocks up to c-s-1, and its own; the fastest active node is at most s clocks ahead.

    Updates are applied as they arrive, as in Petuum's ESSP.
    """

    name = "ssp"

    @property
    def reads_ahead(self) -> bool:
        """With a staleness of at least 1 the bound holds without the node's own last push."""
        return self.config.staleness > 0

    def waiting_for(self, board: ClockTable, clock: int) -> list[str]:
        """Every active node more than s clocks behind the reader."""
        return board.behind(clock - self.config.staleness)


@POLICIES.register(
    "asp", PolicyTraits(moves_rows_by_pushes_alone=True, needs_no_own_rows=True, in_step=True)
)
class Asp(Eager):
    """Asynchronous (Downpour, Dean 2012, section 4.1): nobody ever waits. A node pulls rows again
    every n_fetch blocks and pushes every n_push blocks what its own copies moved by.
    """

    name = "asp"

    @property
    def reads_ahead(self) -> bool:
        return True

    def waiting_for(self, board: ClockTable, clock: int) -> list[str]:
        del board, clock
        return []

    def pace(self, board: ClockTable) -> Pace:
        """n_push and n_fetch."""
        config = self.config
        return replace(super().pace(board), push_every=config.n_push, pull_every=config.n_fetch)
