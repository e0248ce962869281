"""Policies under which nodes train on copies of their own for several blocks."""

from __future__ import annotations

from dataclasses import replace

from embedding.exchange.protocol import Pace
from embedding.kernel.config import part_of
from embedding.server.policies.base import (
    Apply,
    Asp,
    Bsp,
    ClockTable,
    Instruction,
    PendingPush,
    by_clock,
)
from embedding.server.policies.traits import POLICIES, PolicyTraits
from yeoron_lab.averaging import averaged
from yeoron_lab.settings import PacedSettings


@POLICIES.register("easgd", PolicyTraits(moves_rows_by_pushes_alone=True))
class Easgd(Asp):
    """Elastic averaging, asynchronous (Zhang 2015, "Deep learning with Elastic Averaging SGD",
    algorithm 1; as in DeepSpark): every tau blocks a node and the tables move towards each other
    by α·(x_i - x~). The node's half is in `yeoron_lab.paced.paced`.
    """

    name = "easgd"

    def pace(self, board: ClockTable) -> Pace:
        """An exchange every tau blocks."""
        paced = part_of(self.config, PacedSettings)
        tau, elasticity = paced.tau, paced.elasticity
        return Pace(pooled=self.pooled(board), push_every=tau, pull_every=tau, elastic=elasticity)


@POLICIES.register("averaging", PolicyTraits(waits=True, moves_rows_by_pushes_alone=True))
class Averaging(Bsp):
    """Nodes train on copies of their own for tau blocks, then the rows are averaged (SparkNet,
    Moritz 2016, section 2.1; H2O's deep learning does the same).

    Invariant: that of bsp, with rounds of tau blocks for clocks. With combine = "mean" a row moves
    by the mean of the moves of those nodes that touched it in the round: over all nodes, as
    SparkNet does for dense networks, a word that one of n nodes read would be learnt n times too
    slowly. But one that two of n read now and then is still learnt half as fast; with "sum" it is
    the shares of the moves that add up, a mean for rows that came to rest (ADR 6).
    """

    name = "averaging"

    def pace(self, board: ClockTable) -> Pace:
        """A push every tau blocks, and then all rows again."""
        tau = part_of(self.config, PacedSettings).tau
        return replace(super().pace(board), push_every=tau, pull_every=tau)

    def _together(self, tickets: list[PendingPush]) -> list[Instruction]:
        mean = self.config.combine == "mean"
        return [Apply(each, combine=averaged if mean else None) for each in by_clock(tickets)]
