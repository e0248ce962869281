"""The policy under which nodes write to the server's tables themselves."""

from __future__ import annotations

from collections.abc import Sequence

from embedding.exchange.protocol import Pace
from embedding.server.policies.base import Asp, ClockTable
from embedding.server.policies.traits import POLICIES, PolicyTraits
from embedding.server.rows.devices import RowDevice, SharedRows


@POLICIES.register("hogwild", PolicyTraits(needs_shared_memory=True))
class Hogwild(Asp):
    """Nobody waits, and rows do not travel: nodes of this host write to the tables themselves,
    without a lock (Recht 2011). A push brings words, counts and progress only.
    """

    name = "hogwild"

    @staticmethod
    def shared_rows(device: RowDevice, rows: Sequence[int], dim: int) -> SharedRows:
        from yeoron_lab.hogwild.memory import shared_rows

        return shared_rows(device, rows, dim)

    def pace(self, board: ClockTable) -> Pace:
        """Every block is pushed."""
        return Pace(pooled=self.pooled(board))
