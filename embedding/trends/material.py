"""What a report is computed from: a snapshot, the ones before it, and their windows' counts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from embedding.errors import SnapshotError
from embedding.records import SnapshotRef
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.config import TrendsConfig
from embedding.trends.frequency import Frequency
from embedding.trends.lineage import lineage
from embedding.trends.rows import Note, WindowFigures

Mask = npt.NDArray[np.bool_]


class Snapshots(Protocol):
    """What trends need of a `SnapshotStore`; the page keeps opened snapshots behind it."""

    def list(self) -> list[SnapshotRef]:
        """All readable snapshots by window start."""

    def open(self, id: str = ...) -> Snapshot:  # noqa: A002 - as the store names it
        """One snapshot by id, or the `latest`; raises SnapshotError."""


@dataclass(frozen=True)
class Material:
    """Everything a report is computed from.

    earlier  readable snapshots of the windows before, oldest first
    past     what their windows hold, in the same order
    """

    snapshot: Snapshot
    earlier: tuple[Snapshot, ...]
    now: Frequency
    past: tuple[Frequency, ...]
    notes: tuple[Note, ...]


def gather(store: Snapshots, id: str = "latest") -> Material:  # noqa: A002
    """Open a snapshot and all readable ones before it."""
    snapshot = store.open(id)
    chain = lineage(store.list(), snapshot.ref)[:-1]
    earlier: list[Snapshot] = []
    past: list[Frequency] = []
    notes: list[Note] = []
    for ref in chain:
        try:
            one = store.open(ref.id)
            past.append(Frequency.read(one))
            earlier.append(one)
        except SnapshotError as error:
            notes.append(Note("broken_snapshot", str(error)))
    now = Frequency.read(snapshot)
    return Material(snapshot, tuple(earlier), now, tuple(past), tuple(notes))


def figures(snapshot: Snapshot) -> WindowFigures:
    """A snapshot's window and what was read in it."""
    manifest = snapshot.manifest
    return WindowFigures(
        id=snapshot.id,
        label=manifest.window.label,
        start=manifest.window.start.isoformat(),
        end=manifest.window.end.isoformat(),
        words=manifest.words,
        tokens=dict(sorted(manifest.tokens.items())),
        documents=dict(sorted(manifest.documents.items())),
    )


def signs(words: Sequence[str], config: TrendsConfig) -> Mask:
    """bool [n]: words that are never ranked, by the pattern `skip` (numbers, signs)."""
    skip = re.compile(config.skip)
    return np.asarray([skip.fullmatch(word) is not None for word in words], dtype=bool)
