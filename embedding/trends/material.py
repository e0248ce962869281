"""What a report is computed from: a snapshot, the ones before it, and their windows' counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, overload

import numpy as np
import numpy.typing as npt

from embedding.kernel.errors import InputError, SnapshotError
from embedding.kernel.records import SnapshotRef
from embedding.snapshots.format import AMENDABLE
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.usage import Usage
from embedding.trends.config import TrendsConfig
from embedding.trends.frequency import Frequency
from embedding.trends.rows import Note, WindowFigures


def lineage(refs: Sequence[SnapshotRef], ref: SnapshotRef) -> list[SnapshotRef]:
    """The snapshots before `ref`, oldest first, `ref` itself last.

    refs  all snapshots by window start (`SnapshotStore.list`)

    Parents are followed as far as the store holds them; where a parent is missing (pruned, or
    the stream began again) the latest snapshot of an earlier window takes its place. A window that
    was cut again counts once, with its latest cut.
    """
    by_id = {other.id: other for other in refs}
    chain = [ref]
    current: SnapshotRef | None = ref
    seen = {ref.id}
    while current is not None:
        parent = by_id.get(current.parent or "")
        if parent is None or parent.id in seen:
            earlier = [other for other in refs if other.window_start < current.window_start]
            parent = earlier[-1] if earlier else None
        if parent is not None:
            seen.add(parent.id)
            if parent.window_start < chain[-1].window_start:
                chain.append(parent)
        current = parent
    return chain[::-1]


def needed_usage(snapshot: Snapshot, what: str) -> Usage:
    """How words were used in a window; InputError, which says `what` needs it, where that is not
    known.
    """
    if snapshot.usage is None:
        raise InputError(
            f"snapshot {snapshot.id} does not say how words were used: too little was read in its "
            f"window, or it was trained without `server.usage`. {what} needs it."
        )
    return snapshot.usage


Mask = npt.NDArray[np.bool_]
_KEPT = 6


class Snapshots(Protocol):
    """What trends need of a `SnapshotStore`; the page keeps opened snapshots behind it."""

    def list(self) -> list[SnapshotRef]:
        """All readable snapshots by window start."""

    def open(self, id: str = ...) -> Snapshot:
        """One snapshot by id, or the `latest`; raises SnapshotError."""


class Windows(Sequence[Frequency]):
    """What `n` windows hold, each read when it is asked for.

    read  by the number of a window from the first; it keeps what it likes: a long stream has more
          windows than fit into memory, and most are looked at once
    """

    def __init__(self, n: int, read: Callable[[int], Frequency]) -> None:
        self._n, self._read = n, read

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, at: int) -> Frequency: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Frequency, ...]: ...
    def __getitem__(self, at: int | slice) -> Frequency | tuple[Frequency, ...]:
        if isinstance(at, slice):
            return tuple(self._read(window) for window in range(self._n)[at])
        return self._read(range(self._n)[at])


def _windows(snapshots: Sequence[Snapshot], last: Snapshot) -> Windows:
    """Those of snapshots, which `last` comes after; the last ones asked for are kept."""
    chain = [*snapshots, last]

    @lru_cache(maxsize=_KEPT)
    def read(window: int) -> Frequency:
        counted = Frequency.read(chain[window], chain[window + 1 : window + 1 + AMENDABLE])
        chain[window].release()
        return counted

    return Windows(len(snapshots), read)


@dataclass(frozen=True)
class ReportInput:
    """Everything a report is computed from.

    earlier  readable snapshots of the windows before, oldest first
    past     what their windows hold, in the same order
    """

    snapshot: Snapshot
    earlier: tuple[Snapshot, ...]
    now: Frequency
    past: Sequence[Frequency]
    notes: tuple[Note, ...]


def gather(store: Snapshots, id: str = "latest") -> ReportInput:
    """Open a snapshot and all readable ones before it."""
    snapshot = store.open(id)
    earlier, notes = _opened(store, lineage(store.list(), snapshot.ref)[:-1], counts=True)
    now = Frequency.read(snapshot)
    return ReportInput(snapshot, tuple(earlier), now, _windows(earlier, snapshot), tuple(notes))


def windows_up_to(store: Snapshots, last: Snapshot, most: int) -> tuple[list[Snapshot], list[Note]]:
    """At most `most` windows up to that of `last`, oldest first; a note for each that is broken."""
    return _opened(store, lineage(store.list(), last.ref)[-most:])


def _opened(
    store: Snapshots, chain: Sequence[SnapshotRef], *, counts: bool = False
) -> tuple[list[Snapshot], list[Note]]:
    snapshots: list[Snapshot] = []
    notes: list[Note] = []
    for ref in chain:
        try:
            snapshot = store.open(ref.id)
            if counts:
                _ = snapshot.counts_table  # mapped: damage shows now
            snapshots.append(snapshot)
        except SnapshotError as error:
            notes.append(Note("broken_snapshot", str(error)))
    return snapshots, notes


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
