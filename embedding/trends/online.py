"""How sure a window's words must be, so that few windows of a whole stream are called by chance.

q values bound the false share within one window. A stream has window after window, and where
nothing ever changes one in twenty is called at a rate of 0.05. With `trends.control = "stream"` the
windows are tested as one sequence by LORD++ (Ramdas, Yang, Wainwright and Jordan 2017, "Online
control of the false discovery rate with decaying memory", section 3). Window t may call words
with q up to

    α_t = w γ_t + (α - w) γ_(t - τ_1) + α Σ_(j ≥ 2) γ_(t - τ_j),    w = α / 2,

where τ_1 < τ_2 < … are the windows that called any, and γ_t ∝ log(max(t, 2)) / (t exp √log t) adds
up to 1 (Javanmard and Montanari 2018, eq. 31). A window's smallest q is Simes' p value of "nothing
changed in it", so of the windows that call any at most a share α is expected to be false if windows
are independent. Windows side by side share texts, so they are not quite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

FAMILIES = {"moved": "moved", "born": "born", "risen": "emergence", "fallen": "emergence"}
"""The sequence of tests that each ranking is of, by the names of `TrendReport.ranked`."""
_SUM = 12.6451
"""Σ log(max(t, 2)) / (t exp √log t) over t = 1, 2, …"""


@dataclass(frozen=True)
class OnlineTests:
    """One sequence of tests up to a window.

    windows  that were tested, this one among them; called: the numbers of those that called any
    level    q up to which this one calls
    """

    windows: int = 0
    called: tuple[int, ...] = ()
    level: float = 0.0

    def next(self, alpha: float) -> OnlineTests:
        """The window behind it, before it is known whether it calls any."""
        t = self.windows + 1
        since = t - np.array((0, *self.called), dtype=np.float64)
        # γ of each.
        shares = np.log(np.maximum(since, 2.0)) / (since * np.exp(np.sqrt(np.log(since)))) / _SUM
        level = alpha / 2 * shares[:2].sum() + alpha * shares[2:].sum()
        return OnlineTests(t, self.called, float(level))

    def decided(self, called: bool) -> OnlineTests:
        """The same window, once it is known."""
        return replace(self, called=(*self.called, self.windows)) if called else self


def in_one_window(alpha: float) -> dict[str, OnlineTests]:
    """Each window by itself, by family."""
    return {family: OnlineTests(1, (), alpha) for family in FAMILIES.values()}


def limits_of(tested: Mapping[str, OnlineTests]) -> dict[str, float]:
    """q up to which words are called, by family."""
    return {family: tests.level for family, tests in tested.items()}
