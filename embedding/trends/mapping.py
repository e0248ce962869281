"""A map of a word's neighbourhood in every window: nearby words lie near each other.

In each window the word and its nearest words of all windows are placed in the plane by classical
scaling of their cosine distances (Torgerson 1952), with the word in the middle. Windows are then
turned and mirrored onto the one before (orthogonal Procrustes), so that what moves on the map moved
in the space.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.nearness import directions_of, sureness
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.config import TrendsConfig
from embedding.trends.material import Snapshots, lineage
from embedding.trends.nearest import NeighbourCache

NEAR, MOST_MAPPED = 12, 48
"""Nearest words of a window, and words of the whole map."""
Plane = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MapPoint:
    """Where a word lies, with the word of the map at (0, 0); `near` marks its nearest words."""

    word: str
    x: float
    y: float
    similarity: float
    near: bool


@dataclass(frozen=True)
class MapWindow:
    """One window's map.

    places  words that this window knows
    kept    share of the squared distances that the plane shows, 0 to 1
    """

    snapshot: str
    label: str
    places: tuple[MapPoint, ...]
    kept: float


@dataclass(frozen=True)
class NeighbourMap:
    """A word's map through the windows that know it, oldest first."""

    word: str
    windows: tuple[MapWindow, ...]


def neighbour_map(
    store: Snapshots,
    word: str,
    config: TrendsConfig | None = None,
    *,
    neighbour_cache: NeighbourCache | None = None,
) -> NeighbourMap:
    """Map the NEAR nearest words of each window, at most MOST_MAPPED in all.

    A window whose vectors cannot be read yet is left out.

    Raises SnapshotError when a snapshot cannot be read. A word that no window knows has no windows.
    """
    config = config or TrendsConfig()
    neighbour_cache = neighbour_cache or NeighbourCache()
    chain = lineage(store.list(), store.open().ref)[-config.history_windows :]
    known: list[tuple[Snapshot, int, list[str]]] = []
    guess = -1
    for ref in chain:
        snapshot = store.open(ref.id)
        row = snapshot.index(word, guess)
        if row is None or snapshot.unreadable is not None:
            continue
        guess = row
        codes = neighbour_cache.nearest(snapshot, row, NEAR)[0]
        known.append((snapshot, row, [neighbour_cache.names[code] for code in codes.tolist()]))
    words = _chosen([names for _, _, names in known])
    windows: list[MapWindow] = []
    earlier: dict[str, Plane] = {}
    rows = np.full(len(words), -1, dtype=np.int64)
    for snapshot, row, names in known:
        rows = _rows(snapshot, words, rows)
        window, earlier = _window(snapshot, row, words, rows, set(names), earlier)
        windows.append(window)
    return NeighbourMap(word, tuple(windows))


def _chosen(lists: Sequence[Sequence[str]]) -> list[str]:
    """The words of the last window, then those that were near in most windows."""
    often = Counter(name for names in lists for name in names)
    last = list(lists[-1]) if lists else []
    others = sorted((name for name in often if name not in last), key=lambda n: (-often[n], n))
    return [*last, *others][:MOST_MAPPED]


def _rows(snapshot: Snapshot, words: Sequence[str], guesses: IntArray) -> IntArray:
    rows = [snapshot.index(w, g) for w, g in zip(words, guesses.tolist(), strict=True)]
    return np.array([-1 if row is None else row for row in rows], dtype=np.int64)


def _window(
    snapshot: Snapshot,
    row: int,
    words: Sequence[str],
    rows: IntArray,
    near: set[str],
    earlier: dict[str, Plane],
) -> tuple[MapWindow, dict[str, Plane]]:
    here = np.flatnonzero(rows >= 0)
    looked_up = np.asarray(snapshot.vectors[np.concatenate([[row], rows[here]])])
    vectors = directions_of(looked_up, snapshot.centre)
    plane, share = scaled(vectors)
    names = [words[at] for at in here.tolist()]
    common = [at for at, name in enumerate(names) if name in earlier]
    if common:
        old = np.array([earlier[names[at]] for at in common])
        plane = plane @ turned(plane[1:][common], old)
    near_by = (vectors[1:] @ vectors[0]) * sureness(snapshot.counts[rows[here]])
    points = tuple(
        MapPoint(name, float(x), float(y), float(nearness), name in near)
        for name, (x, y), nearness in zip(names, plane[1:], near_by, strict=True)
    )
    label = snapshot.manifest.window.label
    now = dict(zip(names, plane[1:], strict=True))
    return MapWindow(snapshot.id, label, points, share), {**earlier, **now}


def scaled(vectors: FloatArray) -> tuple[Plane, float]:
    """Places float64 [n, 2] of unit rows by classical scaling, the first in the middle, and the
    share of the squared distances that the two axes hold.
    """
    cosines = np.clip(vectors.astype(np.float64) @ vectors.T.astype(np.float64), -1.0, 1.0)
    squared = 2.0 - 2.0 * cosines
    centre = np.eye(len(vectors)) - 1.0 / len(vectors)
    values, axes = np.linalg.eigh(-0.5 * centre @ squared @ centre)
    positive = np.clip(values, 0.0, None)
    plane = axes[:, -1:-3:-1] * np.sqrt(positive[-1:-3:-1])
    if plane.shape[1] < 2:
        plane = np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))
    total = float(positive.sum())
    return plane - plane[0], float(positive[-2:].sum() / total) if total else 0.0


def turned(plane: Plane, onto: Plane) -> Plane:
    """Orthogonal [2, 2] that lays `plane` onto the places of another window best."""
    u, _, v = np.linalg.svd(plane.T @ onto)
    rotation: Plane = u @ v
    return rotation
