"""A policy: stale-synchronous, with a bound that is twice as wide."""

from __future__ import annotations

from embedding.server.policies.base import ClockTable, Policy
from embedding.server.policies.traits import POLICIES, PolicyTraits


@POLICIES.register("outside-ssp", PolicyTraits(waits=True, moves_rows_by_pushes_alone=True))
class Patient(Policy):
    """A reader waits for nodes that are more than twice the staleness behind it."""

    name = "outside-ssp"

    def waiting_for(self, board: ClockTable, clock: int) -> list[str]:
        return board.behind(clock - 2 * self.config.staleness)
