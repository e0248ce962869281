"""How often something changes, learnt from looks that only tell whether it has changed since.

The model is that of R. Busa-Fekete et al., "A scalable crawling algorithm utilizing noisy
change-indicating signals" (WWW 2025): changes come as a Poisson process, a part of them with a
signal, and some signals are false. After `t` seconds and `n` signals since the last look nothing
has changed with probability exp(-(quiet t + heard n)), so that a signal is worth heard / quiet
seconds. `quiet` is the rate of changes without a signal, 1 - exp(-heard) the precision of signals.

Both are held as Gamma beliefs and updated online. No change is conjugate: the elapsed time is
added. A change is censored (one or many, at any time since) and its posterior is matched in mean
and variance (assumed density filtering), which needs no equal intervals as the estimators of
J. Cho and H. Garcia-Molina, "Estimating frequency of change" (2003) do. Old looks are forgotten
exponentially, as far as new ones tell something.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

_MEMORY = 100.0
"""Looks, each as telling as can be, after which one counts 1/e."""
_TELLING = 0.6476
"""Most information on the logarithm of a rate that one look can give, at 1.59 expected changes."""
_DOUBT = 0.5
"""Weight of the prior precision of signals, in signals that told of a change."""
_TINY = 1e-12


@dataclass
class Belief:
    """A Gamma distribution of a rate: a prior and what was seen since, which fades.

    `inverse` is in the unit of exposure (seconds, or signals); the mean is shape / inverse.
    """

    prior_shape: float
    prior_inverse: float
    seen_shape: float = 0.0
    seen_inverse: float = 0.0

    @property
    def shape(self) -> float:
        """Events, the prior's included: the inverse of the squared relative deviation."""
        return self.prior_shape + self.seen_shape

    @property
    def inverse(self) -> float:
        return self.prior_inverse + self.seen_inverse

    @property
    def mean(self) -> float:
        return self.shape / self.inverse

    def forget(self, share: float) -> None:
        self.seen_shape *= 1 - share
        self.seen_inverse *= 1 - share

    def survival(self, exposure: float) -> float:
        """Expected probability of no event during `exposure`."""
        return math.exp(-self.shape * math.log1p(exposure / self.inverse))

    def quiet(self, exposure: float) -> None:
        self.seen_inverse += exposure

    def happened(self, exposure: float, survival: float) -> None:
        """An event came, of this rate or of another; `survival` is that of all rates together."""
        a, b, c = self.shape, self.inverse, self.inverse + exposure
        certain = 1.0 - survival
        if exposure <= 0 or certain < _TINY:
            return
        mean = (a / b - a / c * survival) / certain
        square = a * (a + 1) * (1 / (b * b) - survival / (c * c)) / certain
        variance = square - mean * mean
        if variance > _TINY * mean * mean:
            self.seen_shape = max(0.0, mean * mean / variance - self.prior_shape)
            self.seen_inverse = max(0.0, mean / variance - self.prior_inverse)


class ChangeRate:
    """Beliefs on one thing's changes. `rate` is the prior's changes a second.

    `trust` is the prior's precision of signals, `strength` the prior's weight in changes seen.
    """

    def __init__(self, rate: float, *, trust: float = 0.1, strength: float = 0.5) -> None:
        self.quiet = Belief(strength, strength / rate)
        self.heard = Belief(_DOUBT, -_DOUBT / math.log1p(-trust))
        self.looks = 0
        self.changes = 0
        self._signals = 0.0
        self._time = 0.0

    def suppose(self, rate: float, strength: float) -> None:
        """Take another prior, as more is known of others."""
        self.quiet.prior_shape, self.quiet.prior_inverse = strength, strength / rate

    def observe(self, elapsed: float, changed: bool, signals: int = 0) -> None:
        """One look, `elapsed` seconds and `signals` signals after the one before."""
        hazard = self.hazard(elapsed, signals)
        # What one look tells of the logarithm of a rate.
        information = hazard * hazard / math.expm1(hazard) if 0 < hazard < 700 else 0.0
        fades = information / _TELLING / _MEMORY
        self.looks += 1
        self.changes += changed
        self._signals = (1 - 1 / _MEMORY) * self._signals + signals
        self._time = (1 - 1 / _MEMORY) * self._time + elapsed
        self.quiet.forget(fades)
        if signals:
            self.heard.forget(fades)
        if changed:
            both = self.quiet.survival(elapsed) * self.heard.survival(signals)
            self.quiet.happened(elapsed, both)
            self.heard.happened(signals, both)
        else:
            self.quiet.quiet(elapsed)
            self.heard.quiet(signals)

    def hazard(self, elapsed: float, signals: int = 0) -> float:
        """Changes expected since the last look, at most one from each signal."""
        return self.quiet.mean * elapsed + self.heard.mean * signals

    @property
    def signal_rate(self) -> float:
        """Signals a second, true and false."""
        return self._signals / self._time if self._time > _TINY else 0.0

    @property
    def precision(self) -> float:
        """Probability that a signal tells of a change."""
        return 1.0 - math.exp(-self.heard.mean)

    @property
    def recall(self) -> float:
        """Share of changes that a signal tells of."""
        return self.signal_rate * self.precision / self.rate

    @property
    def rate(self) -> float:
        """Changes a second, with and without a signal."""
        return self.quiet.mean + self.signal_rate * self.precision

    def state(self) -> dict[str, float]:
        """JSON-safe; see `restore`."""
        return {
            "quiet_shape": self.quiet.seen_shape,
            "quiet_inverse": self.quiet.seen_inverse,
            "heard_shape": self.heard.seen_shape,
            "heard_inverse": self.heard.seen_inverse,
            "looks": self.looks,
            "changes": self.changes,
            "signals": self._signals,
            "time": self._time,
        }

    def restore(self, state: Mapping[str, float]) -> None:
        """Go on from a `state`; raises ValueError, TypeError or KeyError for one that cannot be."""
        values = {name: float(state[name]) for name in self.state()}
        if not all(0 <= value < math.inf for value in values.values()):
            raise ValueError("a state holds finite numbers that are not negative")
        for name, belief in (("quiet", self.quiet), ("heard", self.heard)):
            belief.seen_shape = values[f"{name}_shape"]
            belief.seen_inverse = values[f"{name}_inverse"]
        self.looks, self.changes = int(values["looks"]), int(values["changes"])
        self._signals, self._time = values["signals"], values["time"]
