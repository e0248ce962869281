"""What estimators of shift declare of themselves, and the registry of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from embedding.kernel.registry import Registry

if TYPE_CHECKING:
    from embedding.kernel.records import FloatArray, IntArray
    from embedding.trends.config import TrendsConfig
    from embedding.trends.pair import SnapshotPair
    from embedding.trends.permutation import Permuted
    from embedding.trends.significance import TestArray

    Estimator = Callable[[SnapshotPair, IntArray, TrendsConfig], FloatArray]


@dataclass(frozen=True)
class Scale:
    """A variance-stabilising map of shifts and its inverse."""

    name: str
    forward: Callable[[TestArray], TestArray]
    inverse: Callable[[TestArray], TestArray]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, kw_only=True)
class EstimatorTraits:
    """What an estimator does and needs."""

    scale: Scale
    """On which chance fluctuation of its figures is close to normal."""

    needs_usage: bool = False
    """Both snapshots have to say how words were used in their windows."""

    needs_equal_dimensions: bool = False
    """Both snapshots have to have vectors of the same length."""

    judge: Callable[[SnapshotPair, IntArray], Permuted] | None = None
    """A significance of its own: z, p and size of rows of a pair, and by what documents. Without it
    words are judged by words of like frequency."""

    without_usage: str = ""
    """The estimator that takes its place where a snapshot does not say how words were used."""

    def contradiction(self) -> str:
        if self.judge is not None and not (self.without_usage and self.needs_usage):
            return "judge goes with needs_usage, and with without_usage, which judges without it"
        return ""


ESTIMATORS: Registry[Estimator, EstimatorTraits] = Registry(
    "estimator",
    "yeoron.estimators",
    dict.fromkeys(("neighbours", "procrustes", "usage"), "embedding.trends.shift"),
)
"""All estimators: those built in, and those of other packages."""
