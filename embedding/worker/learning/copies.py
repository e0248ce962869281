"""Training on local copies of rows that are pulled for each block, and pushed after it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.payload import RowDelta
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table
from embedding.models.base import BlockLoss
from embedding.models.jit import kernel
from embedding.worker.learning.combining import share
from embedding.worker.learning.ticks import Prepared, StepResult, Trained, Work, check_loss
from embedding.worker.learning.training import BlockTraining, LearnerParts

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(24)


@kernel()
def _match(own: Any, ids: Any, slots: Any) -> Any:
    """Where each of `ids` lies in `own`, int32 [n], -1 where it does not.

    slots  int32 [a power of two, above len(own)], all -1: a hash table with linear probing
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(len(own)):
        at = (np.uint64(own[i]) * _GOLDEN) >> _HIGH & mask
        while slots[at] >= 0:
            at = at + np.uint64(1) & mask
        slots[at] = i
    found = np.empty(len(ids), dtype=np.int32)
    for i in range(len(ids)):
        at = (np.uint64(ids[i]) * _GOLDEN) >> _HIGH & mask
        while slots[at] >= 0 and own[slots[at]] != ids[i]:
            at = at + np.uint64(1) & mask
        found[i] = slots[at]
    return found


@kernel()
def _add(rows: Any, at: Any, values: Any) -> None:
    """rows[i] += values[at[i]], wherever at[i] is not -1."""
    for i in range(len(rows)):
        if at[i] >= 0:
            for j in range(rows.shape[1]):
                rows[i, j] += values[at[i], j]


def with_own(pulled: FloatArray | HalfArray, ids: IntArray, own: RowDelta | None) -> FloatArray:
    """Pulled rows as float32 [n, dim] of their own, with a delta that they do not hold yet."""
    rows = widen(pulled)
    if own is None or not len(own.ids):
        return rows
    slots = np.full(1 << (2 * len(own.ids)).bit_length(), -1, dtype=np.int32)
    _add(rows, _match(own.ids, ids, slots), widen(own.values))
    return rows


def moved(
    after: FloatArray, before: FloatArray, shares: FloatArray | None, dtype: npt.DTypeLike
) -> FloatArray | HalfArray:
    """The shares of how far rows moved, in the type in which rows travel; uses `after` up."""
    after -= before
    if shares is not None:
        after *= shares[:, None]
    return narrow(after) if dtype == np.float16 else after


Rowed = dict[Table, FloatArray]


class Copies(Protocol):
    """Where the copies of a tick come from, and what becomes of them."""

    def rows(self, prepared: Prepared) -> tuple[int, Rowed]:
        """The clock of a tick's rows, and float32 copies of them to start from, by table."""

    def deltas(
        self, prepared: Prepared, base: Rowed, local: Rowed, loss: BlockLoss
    ) -> tuple[RowDelta, ...]:
        """How far rows moved from `base` to `local`, as it is pushed with this tick."""


class PulledCopies:
    """Rows are pulled for each tick, and what they moved by is pushed with it."""

    def __init__(self, parts: LearnerParts) -> None:
        self._parts = parts
        self._sent_as: npt.DTypeLike = np.float32

    def rows(self, prepared: Prepared) -> tuple[int, Rowed]:
        """As pulled, with the node's own last delta."""
        link = self._parts.link
        rows = prepared.rows or link.pull(prepared.planned, prepared.scores)
        before, ids = link.unseen(rows), prepared.planned.rows()
        self._sent_as = rows.rows[Table.IN].dtype
        return rows.clock, {
            table: with_own(values, ids[table], before.get(table))
            for table, values in rows.rows.items()
        }

    def deltas(
        self, prepared: Prepared, base: Rowed, local: Rowed, loss: BlockLoss
    ) -> tuple[RowDelta, ...]:
        """In the share that this node pushes, as numbers of the kind that were pulled."""
        ids, steps = prepared.planned.rows(), self._parts.steps(prepared, loss)
        shares = {table: share(each, self._parts.pooled) for table, each in steps.items()}
        return tuple(
            RowDelta(
                table, ids[table], moved(local[table], start, shares.get(table), self._sent_as)
            )
            for table, start in base.items()
        )


class CopyTraining:
    """Trains on copies of a block's rows."""

    def __init__(self, parts: LearnerParts, copies: Copies) -> None:
        self._parts = parts
        self._copies = copies

    def train(self, prepared: Prepared) -> Trained:
        """Train on local copies of the rows; what they moved by, as it travels.

        Raises YeoronError when the loss is not finite or explodes.
        """
        parts, planned = self._parts, prepared.planned
        parts.past.begin(prepared.rate)
        parts.observer.remember(prepared, parts.words)
        clock, base = self._copies.rows(prepared)
        if not len(planned.words):
            uses = parts.closed(prepared, clock)
            return Trained(prepared, clock, (), BlockLoss(0.0, 0), uses=uses)
        held = prepared.held
        held_loss = None if held is None else held.loss(planned.contexts, base)
        # The trainer wants n-gram rows behind the words' rows, in one array.
        inputs = np.concatenate([base[table] for table in base if table is not Table.OUT])
        n_words = len(planned.words)
        local = {Table.IN: inputs[:n_words], Table.OUT: base[Table.OUT].copy()}
        local[Table.SUB] = inputs[n_words:]
        loss = parts.trainer.train(
            planned.block,
            inputs,
            local[Table.OUT],
            learning_rate=prepared.rate,
            seed=prepared.seed,
        )
        check_loss(parts.setup.node, parts.setup.model, loss)
        if prepared.decay:
            for values in local.values():
                values *= np.float32(1.0 - prepared.decay)
        rare = parts.observer.rare_contexts(prepared)
        deltas = self._copies.deltas(prepared, base, local, loss)
        return Trained(prepared, clock, deltas, loss, rare, held_loss=held_loss)


class EachBlock:
    """Every block is pushed when it is learnt."""

    pending = keeps_rows = False

    def __init__(self, parts: LearnerParts) -> None:
        self._parts = parts

    def push(self, trained: Trained) -> StepResult:
        """Push it now; the replay memory hears of the losses."""
        work = Work.of(trained)
        ack = self._parts.link.push(work, trained.clock, trained.deltas)
        self._parts.past.learnt(trained.prepared.sentences, trained.loss)
        return StepResult.of(trained, work.keys, ack)

    def flush(self) -> tuple[str, ...]:
        """Nothing is kept."""
        return ()

    def restart(self, clock: int, sequence: int) -> None:
        """Go on from where the server stands, after it refused a push or lost its state."""
        self._parts.link.restart(clock, sequence)
        self._parts.words.forget()


def each_block(parts: LearnerParts) -> BlockTraining:
    """Rows are pulled for each block, and pushed after it."""
    return BlockTraining(CopyTraining(parts, PulledCopies(parts)).train, EachBlock(parts))
