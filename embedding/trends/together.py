"""How near two words stand to each other, window by window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embedding.trends.config import TrendsConfig
from embedding.trends.lineage import lineage
from embedding.trends.material import Snapshots


@dataclass(frozen=True)
class Together:
    """The cosine of two words in one window; None where it does not know both."""

    snapshot: str
    label: str
    cosine: float | None


def together(
    store: Snapshots,
    first: str,
    second: str,
    config: TrendsConfig | None = None,
) -> tuple[Together, ...]:
    """Follow two words through all windows, oldest first.

    Raises SnapshotError when a snapshot cannot be read.
    """
    config = config or TrendsConfig()
    points, guesses = [], (-1, -1)
    for ref in lineage(store.list(), store.open().ref)[-config.history_windows :]:
        snapshot = store.open(ref.id)
        rows = [
            snapshot.index(word, guess)
            for word, guess in zip((first, second), guesses, strict=True)
        ]
        guesses = (-1 if rows[0] is None else rows[0], -1 if rows[1] is None else rows[1])
        cosine = None
        if min(guesses) >= 0:
            one, other = (np.asarray(snapshot.vectors[row], np.float64) for row in guesses)
            length = float(np.linalg.norm(one) * np.linalg.norm(other))
            cosine = float(one @ other) / length if length else None
        points.append(Together(snapshot.id, snapshot.manifest.window.label, cosine))
    return tuple(points)
