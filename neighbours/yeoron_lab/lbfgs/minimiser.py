"""L-BFGS that gets the loss and the gradient from outside, where it asks for them.

Nothing here computes a loss: `trial` says where it is wanted, `told` takes it and moves on. So the
loss may come from many nodes (Dean 2012, "Large Scale Distributed Deep Networks", algorithm 7.2:
the vectors stay where the rows are, only scalars are looked at).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import torch
from torch import Tensor

ARMIJO = 1e-4
CURVATURE = 0.9
TRIALS = 12
"""Points that one line search looks at, at most."""
FLAT = 1e-7
"""A fall of the loss by less than this part of it ends the minimisation."""


@dataclass(frozen=True)
class CurvaturePair:
    """A step and what the gradient changed by; `rho` is 1/(s·y)."""

    step: Tensor
    change: Tensor
    rho: float


class LineSearch:
    """Step lengths by bisection until the weak Wolfe conditions hold.

    Armijo: f(t) ≤ f(0) + c₁·t·slope; curvature: slope(t) ≥ c₂·slope. (Lewis and Overton 2013,
    "Nonsmooth optimization via quasi-Newton methods", algorithm 2.6.) Only scalars are needed.
    """

    def __init__(self, loss: float, slope: float) -> None:
        self._loss, self._slope = loss, slope
        self._low, self._high = 0.0, float("inf")
        self.length = 1.0
        self.trials = 0

    def judge(self, loss: float, slope: float) -> bool:
        """Whether `length`, where loss and slope are these, will do; else `length` is another."""
        self.trials += 1
        if not loss <= self._loss + ARMIJO * self.length * self._slope:
            self._high = self.length
        elif slope < CURVATURE * self._slope:
            self._low = self.length
        else:
            return True
        high = self._high < float("inf")
        self.length = 0.5 * (self._low + self._high) if high else 2.0 * self._low
        return False

    @property
    def lost(self) -> bool:
        return self.trials >= TRIALS


class Lbfgs:
    """Minimises from `start`, float32 [rows, dim] (Nocedal and Wright 2006, algorithm 7.4).

    scale       float32 [rows, 1], an estimate of the diagonal of the inverse Hessian
    history     m, pairs kept
    iterations  steps taken at most

    Memory: 2·m copies of the rows for the pairs, and 5 more. `trial` is where loss and gradient are
    wanted, None once it is over; `best` the rows where the loss was least.
    """

    def __init__(self, start: Tensor, scale: Tensor, *, history: int, iterations: int) -> None:
        self.best = start
        self.trial: Tensor | None = start
        self.loss = float("inf")
        self.first = float("inf")
        self.done = 0
        self.evaluations = 0
        self.why = ""
        self._scale = scale
        self._pairs: deque[CurvaturePair] = deque(maxlen=history)
        self._iterations = iterations
        self._gradient = torch.zeros_like(start)
        self._direction = self._gradient
        self._search: LineSearch | None = None

    def evaluated(self, loss: float, gradient: Tensor) -> None:
        """Loss and gradient at `trial`; `gradient` is kept, not copied."""
        self.evaluations += 1
        if self.trial is None:
            return
        if self._search is None:
            self.first = loss
            self._arrive(self.trial, loss, gradient)
            return
        if not self._search.judge(loss, dot(gradient, self._direction)):
            self._again()
            return
        fell = self.loss - loss
        self._remember(self.trial - self.best, gradient - self._gradient)
        self.done += 1
        self._arrive(self.trial, loss, gradient, small=fell <= FLAT * abs(self.loss))

    def _again(self) -> None:
        """Another length along the same direction."""
        search = self._search
        if search is None or search.lost:
            self._end("no step along the last direction makes the loss smaller")
            return
        self.trial = torch.add(self.best, self._direction, alpha=search.length)

    def _arrive(self, at: Tensor, loss: float, gradient: Tensor, *, small: bool = False) -> None:
        """`at` is the best so far; the next direction leads away from it."""
        self.best, self.loss, self._gradient = at, loss, gradient
        if self.done >= self._iterations:
            self._end("all iterations were made")
        elif small:
            self._end("the loss falls no longer")
        else:
            self._direct()

    def _direct(self) -> None:
        self._direction = self._two_loops()
        slope = dot(self._gradient, self._direction)
        if not slope < 0.0:
            self._end("the gradient is nought" if slope == 0.0 else "no direction leads down")
            return
        self._search = LineSearch(self.loss, slope)
        self.trial = torch.add(self.best, self._direction)

    def _two_loops(self) -> Tensor:
        """-H·gradient by the two-loop recursion (Nocedal and Wright 2006, algorithm 7.4)."""
        q = self._gradient.neg()
        weights: list[float] = []
        for pair in reversed(self._pairs):
            weights.append(pair.rho * dot(pair.step, q))
            q.add_(pair.change, alpha=-weights[-1])
        q.mul_(self._scale)
        if self._pairs:
            last = self._pairs[-1]
            q.mul_(1.0 / (last.rho * dot(last.change, last.change * self._scale)))
        for pair, weight in zip(self._pairs, reversed(weights), strict=True):
            q.add_(pair.step, alpha=weight - pair.rho * dot(pair.change, q))
        return q

    def _remember(self, step: Tensor, change: Tensor) -> None:
        product = dot(step, change)
        if product > 0.0:
            self._pairs.append(CurvaturePair(step, change, 1.0 / product))

    def _end(self, why: str) -> None:
        self.trial, self.why = None, why
        self._pairs.clear()


def dot(left: Tensor, right: Tensor) -> float:
    """The inner product of two tables of rows, summed in float64 by column."""
    return float((left * right).sum(dim=0, dtype=torch.float64).sum())
