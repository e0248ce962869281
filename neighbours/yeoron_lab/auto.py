"""The policy that chooses one: a barrier where sources are alike, none where they are not."""

from __future__ import annotations

from embedding.kernel.config import part_of
from embedding.server.config import SyncConfig
from embedding.server.policies.base import Asp, Bsp, ClockTable, Policy, Ssp
from embedding.server.policies.traits import POLICIES, PolicyTraits
from yeoron_lab.settings import AutoSettings

_STREAMS = 100
"""Rates that may be looked at for each time that the policy is asked."""
MARGIN = 0.25
"""How far below a threshold, as a part of it, the variation has to fall for the way back."""


@POLICIES.register(
    "auto", PolicyTraits(waits=True, moves_rows_by_pushes_alone=True, needs_no_own_rows=True)
)
class Auto(Policy):
    """bsp while the sources' token rates are alike, ssp when their coefficient of variation passes
    `auto_alike`, asp beyond `auto_apart`.

    Back over a threshold it has to fall the part MARGIN below it, and none rules for less than
    `auto_stay_s` seconds.
    Invariant: that of the policy which rules; nodes that come late from the last one's reads are
    taken in at once, as after any change of policy.
    """

    name = "auto"

    def __init__(self, config: SyncConfig) -> None:
        super().__init__(config)
        self._settings = part_of(config, AutoSettings)
        self._ladder: tuple[Policy, ...] = (Bsp(config), Ssp(config), Asp(config))
        self._level = 0
        self._began: float | None = None
        self._asked = 0

    @property
    def ruling(self) -> Policy:
        return self._ladder[self._level]

    def waiting_for(self, board: ClockTable, clock: int) -> list[str]:
        """As the ruling one says, which is asked for everything else."""
        return self.ruling.waiting_for(board, clock)

    def reconsider(self, board: ClockTable, *, now: float) -> str | None:
        """Choose by the rates of now."""
        self._began = now if self._began is None else self._began
        self._asked += 1
        # Asked with every push: thousands of rates change little from one to the next.
        few = self._asked * _STREAMS < len(board.speeds)
        if few or now - self._began < self._settings.auto_stay_s:
            return None
        self._asked = 0
        variation = board.speeds.variation(board.active())
        if variation is None:
            return None
        level = self._wanted(variation)
        if level == self._level:
            return None
        passed = self._thresholds[level - 1 if level > self._level else level]
        how = "above" if level > self._level else "well below"
        self._level, self._began = level, now
        return (
            f"the sources' token rates have a coefficient of variation of {variation:.2f}, "
            f"{how} {passed:g}"
        )

    @property
    def _thresholds(self) -> tuple[float, float]:
        return self._settings.auto_alike, self._settings.auto_apart

    def _wanted(self, variation: float) -> int:
        level = self._level
        while level < 2 and variation > self._thresholds[level]:
            level += 1
        back = 1.0 - MARGIN
        while level > 0 and variation < back * self._thresholds[level - 1]:
            level -= 1
        return level
