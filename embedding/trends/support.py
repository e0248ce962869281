"""Who moved a word: what each source and group of authors brought to its change.

With R_k the residuals of `permutation.py` and A their sum over the units of the window, a set of
these units brought the share

    Σ_k R_k·A / |A|²,

so the shares of all sources add up to 1. A unit holds all that its authors wrote. The call is
judged again without each source, without the unit that brought most (a change that one author made
does not stand without that unit), and without what the busiest authors of the window wrote, where
its nodes knew them (`worker/usage`).
"""

from __future__ import annotations

import numpy as np

from embedding.trends.permutation import REFINED, Grounds, permutations, refined
from embedding.trends.replicas import Labels, Units
from embedding.trends.rows import Support


def support(grounds: Grounds, word: int) -> Support | None:
    """Who moved a word, by its place among those that were judged; None without a change."""
    units = grounds.compared.units(np.array([word], dtype=np.int64))
    rest, _ = units.residuals()
    change = rest[0, units.later].sum(axis=0)
    if grounds.common.shape[1]:
        change = change - (change @ grounds.common) @ grounds.common.T
    total = float(change @ change)
    if total <= 0.0:
        return None
    shares = np.where(units.later, rest[0] @ change / total, 0.0)
    most = int(np.argmax(shares))
    supporting = [
        at for at in range(len(grounds.sources)) if (rest[0, units.source == at] != 0).any()
    ]
    without: dict[str, float] = {}
    if len(supporting) > 1:
        without = {
            grounds.sources[at]: _judged(grounds, units, units.source != at) for at in supporting
        }
    calm = grounds.compared.without_busiest(np.array([word], dtype=np.int64))
    return Support(
        sources={grounds.sources[at]: float(shares[units.source == at].sum()) for at in supporting},
        without_source=without,
        authors=float(shares[most]),
        without_authors=_judged(grounds, units, np.arange(len(shares)) != most),
        without_busiest=None if calm is None else _judged(grounds, calm, np.isfinite(shares)),
    )


def _judged(grounds: Grounds, units: Units, chosen: Labels) -> float:
    """p by some of the units; 1 where they say nothing."""
    some = units.take(chosen)
    found = refined(some, grounds.common, grounds.usual, permutations(some, REFINED[0]))[0]
    return float(found) if np.isfinite(found) else 1.0
