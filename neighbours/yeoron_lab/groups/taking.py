"""What leaves a group: all that its nodes have pushed since the last time, as one entry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.payload import BlockCounts, RowDelta
from embedding.exchange.protocol import Push
from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table, TimeArray
from embedding.server.scoring import EWMA, ScoreKeeper, SourceScore
from yeoron_lab.groups.entry import GroupEntry, WindowScore, merged
from yeoron_lab.groups.replica import Moved, Moves
from yeoron_lab.settings import GroupConfig

COMPACT = 64
"""Pushes of a node that are put together, before they go to the leader."""

_MOST_LAGS = 65_536
"""Lags of documents that an entry tells of: they travel in a message's header, which is limited."""


@dataclass
class NewPushes:
    """Pushes of a node that the leader has not heard of; `after` is the number before them."""

    after: int
    pushes: list[Push] = field(default_factory=list)

    def add(self, push: Push) -> None:
        """One more; many become one."""
        self.pushes.append(replace(push, deltas=(), packed=()))
        if len(self.pushes) >= COMPACT:
            self.pushes = [merged(self.pushes)]


@dataclass(frozen=True)
class Cut:
    """All that was pushed until one moment, and the rows as they were then."""

    pushes: dict[str, NewPushes]
    digests: tuple[str, ...]
    scored: tuple[WindowScore, ...]
    moves: Moves


@dataclass(frozen=True)
class Taken:
    """What leaves the group: its entry, and the rows that the leader has once it is applied."""

    entry: GroupEntry
    rows: dict[Table, tuple[IntArray, FloatArray]]


def compose(cut: Cut, group: GroupConfig, sequence: int, groups: int) -> Taken:
    """The entry of what was cut, with rows in the shares of so many groups."""
    half = group.rows == "float16"
    parts = _few_lags([merged(pushed.pushes) for pushed in cut.pushes.values()])
    if half:
        parts = tuple(
            replace(part, usage=tuple(replace(own, sums=_halves(own.sums)) for own in part.usage))
            for part in parts
        )
    counts = [part.counts for part in parts]
    deltas, rows = [], {}
    for table, moved in cut.moves.items():
        shares = np.ones(len(moved.ids), dtype=np.float32)
        if table is not Table.SUB:
            shares = group_shares(_occurrences(counts, moved.ids), groups, group.curvature)
        delta, at_leader = _sent(moved, shares, half=half)
        deltas.append(RowDelta(table, moved.ids, delta))
        rows[table] = (moved.ids, at_leader)
    entry = GroupEntry(
        group.name,
        sequence,
        parts,
        tuple(pushed.after for pushed in cut.pushes.values()),
        tuple(deltas),
        cut.digests,
        cut.scored,
    )
    return Taken(entry, rows)


def group_shares(occurrences: TimeArray, groups: int, curvature: float) -> FloatArray:
    """In which part the leader adds what a group moved its rows by, while other groups moved them
    too: float32 [n], given how often each row's word was read (float64 [n]).

    As for nodes (`worker/learning`, ADR 6), with a group as the node and the time between two
    exchanges as its block: a row that was trained k times is the part 1 - exp(-h) of the way to its
    point of rest, h = c·k, and n groups that did so at the same time from the same rows push

        (1 - exp(-n·h)) / (n · (1 - exp(-h)))

    of it each. A server knows neither the learning rate nor the pairs of a row, but how often a
    word was read: k is the number of its occurrences, c is `group.curvature`. Without a barrier
    between groups what meets is that of 2(n - 1) of them (ADR 10).
    """
    n = max(groups, 2 * (groups - 1))
    if n <= 1 or not curvature:
        return np.ones(len(occurrences), dtype=np.float32)
    h = np.maximum(occurrences * curvature, 1e-9)
    shares: FloatArray = (np.expm1(-n * h) / (n * np.expm1(-h))).astype(np.float32)
    return shares


def _few_lags(parts: Sequence[Push]) -> tuple[Push, ...]:
    """The parts with so many of their latest lags that all together are not too many."""
    total = sum(len(each.lags) for part in parts for each in part.progress)
    if total <= _MOST_LAGS:
        return tuple(parts)

    def fewer(lags: Sequence[float]) -> tuple[float, ...]:
        return tuple(lags[len(lags) - len(lags) * _MOST_LAGS // total :])

    return tuple(
        replace(
            part, progress=tuple(replace(each, lags=fewer(each.lags)) for each in part.progress)
        )
        for part in parts
    )


def _halves(sums: FloatArray | HalfArray) -> HalfArray:
    largest = np.finfo(np.float16).max
    return narrow(np.clip(sums.astype(np.float32), -largest, largest))


def _occurrences(counts: Sequence[BlockCounts], ids: IntArray) -> TimeArray:
    """How often words were read, float64 [n]; 0 for those that were noise alone."""
    known, back = np.unique(ids, return_inverse=True)
    at = positions(known, np.concatenate([part.ids for part in counts]))
    times = np.concatenate([part.counts for part in counts]).astype(np.float64)
    sums = np.bincount(at[at >= 0], times[at >= 0], minlength=len(known))
    return np.asarray(sums[back], dtype=np.float64)


def _sent(moved: Moved, shares: FloatArray, *, half: bool) -> tuple[Any, FloatArray]:
    """What is sent of rows that moved, and the rows that the leader has with it added."""
    delta = (moved.now - moved.bases) * shares[:, None]
    if half:
        short = narrow(delta)
        return short, moved.bases + widen(short)
    return delta, moved.bases + delta


def drained(scores: ScoreKeeper) -> list[WindowScore]:
    """Source, window, sum and pairs of what was scored since the last call; forgotten there."""
    with scores.lock:
        drained_scores = [
            (source, start, loss, pairs)
            for source, entry in scores.sources.items()
            for start, (loss, pairs) in entry.windows.items()
        ]
        for entry in scores.sources.values():
            entry.windows = {}
    return drained_scores


def take_over(scores: ScoreKeeper, drained: Iterable[WindowScore]) -> None:
    """What another server has drained counts here."""
    with scores.lock:
        for source, start, loss, pairs in drained:
            entry = scores.sources.setdefault(source, SourceScore(smooth=loss / pairs))
            entry.smooth += EWMA * (loss / pairs - entry.smooth)
            total, n = entry.windows.get(start, (0.0, 0))
            entry.windows[start] = (total + loss, n + pairs)
