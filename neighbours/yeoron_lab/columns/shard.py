"""What a shard that holds columns does with a block: partial scores first, then steps.

Until a block is pushed a node learns it on copies of these columns, minibatch by minibatch. The
push holds what all shards need to do the same steps again; they do, on the rows as they are when
the log says so. So rows are a function of the log alone, also after a restart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from embedding.exchange.compression.halves import narrow
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.exchange.wire import Message, whole
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, HalfArray, Table
from yeoron_lab.columns.minibatches import (
    Minibatches,
    check_shares,
    check_size,
    check_slopes,
    decode_minibatches,
)
from yeoron_lab.shards.heldrows import HeldRows
from yeoron_lab.shards.log import at_of
from yeoron_lab.shards.service import acknowledged
from yeoron_lab.shards.state import ShardState
from yeoron_lab.slices import ColumnSlice

_GONE = Message({"status": "waiting"})
"""A block that was opened on a stream that is no more has to be opened again."""


class ColumnCalls:
    """What a node asks of a shard on one stream, besides what it asks where rows lie."""

    def __init__(self, shard: ShardState, who: Callable[[], str]) -> None:
        self._shard, self._who = shard, who
        self._workspace: Workspace | None = None
        self._half = False

    def calls(self) -> dict[str, Callable[[Message], Message]]:
        return {"open": self._open, "step": self._step, "learnt": self._learnt}

    def _open(self, message: Message) -> Message:
        """A block that is learnt here; the scores of its first minibatch."""
        batch = decode_minibatches(message)
        if batch is None:
            raise RefusedError("open: a block is learnt where columns lie, not rows.")
        check_size(batch, self._shard.spec.server.max_message_bytes)
        if not len(batch.examples.inputs):
            raise RefusedError("open: the block has no example.")
        with self._shard.changed:
            self._shard.reach(at_of(message))
            self._shard.held.slots(Table.OUT, batch.ids, "open")
            rows = taken(self._shard.held, batch)
        self._workspace = Workspace(batch, *rows)
        self._half = message.header.get("rows") == "float16"
        return self._scores(self._workspace)

    def _step(self, message: Message) -> Message:
        """The numbers of a minibatch; the scores of the next."""
        if self._workspace is None:
            return _GONE
        self._workspace.learn(message.array("slopes", "f4 f2", 2))
        return self._scores(self._workspace)

    def _scores(self, workspace: Workspace) -> Message:
        scores = workspace.scores()
        return Message({"status": "ok"}, {"scores": narrow(scores) if self._half else scores})

    def _learnt(self, message: Message) -> Message:
        """The numbers of the last minibatch, and the number of the push that the block is."""
        workspace, self._workspace = self._workspace, None
        if workspace is None:
            return _GONE
        workspace.learn(message.array("slopes", "f4 f2", 2))
        header = message.header
        batch = workspace.learnt(message.array("shares", "f4", 1))
        sequence, clock = whole(header, "sequence", least=1), whole(header, "clock")
        self._shard.push(Push(self._who(), sequence, clock, minibatches=batch))
        return acknowledged(self._shard, self._who())


class Workspace:
    """A block that a node learns, on copies of the columns of its rows."""

    def __init__(self, batch: Minibatches, vectors: FloatArray, contexts: FloatArray) -> None:
        self._batch = batch
        self._slice = ColumnSlice(batch.examples, vectors, contexts)
        self._slopes: list[FloatArray | HalfArray] = []
        self._done = 0

    def scores(self) -> FloatArray:
        """Partial dot products float32 [n, 1 + negative] of the next minibatch."""
        return self._slice.scores(self._done, self._stop)

    def learn(self, slopes: FloatArray | HalfArray) -> None:
        """Step by the numbers of the minibatch whose scores were asked for."""
        batch = self._batch
        check_slopes(slopes, self._stop - self._done, batch.draws["negative"])
        self._slopes.append(slopes)
        # What is left after the last one is done when the block is pushed.
        if self._stop < len(batch.examples.inputs):
            self._slice.learn(self._done, np.asarray(slopes, np.float32), batch.rate)
        self._done = self._stop

    def learnt(self, shares: FloatArray) -> Minibatches:
        """The whole block, as it would travel; RefusedError unless all of it was learnt."""
        batch = self._batch
        if self._done < len(batch.examples.inputs):
            raise RefusedError("learnt: minibatches of this block are missing.")
        check_shares(shares, batch.inputs + len(batch.ids))
        kind = self._slopes[0].dtype
        slopes: FloatArray = np.concatenate(self._slopes, dtype=kind, casting="unsafe")
        whole = replace(batch, slopes=slopes, shares=shares)
        vars(whole)["examples"] = batch.examples  # not drawn again
        return whole

    @property
    def _stop(self) -> int:
        return min(self._done + self._batch.pairs, len(self._batch.examples.inputs))


def taken(rows: HeldRows, batch: Minibatches) -> tuple[FloatArray, FloatArray]:
    """Copies of the columns of a block's rows, of `in` and of `out`."""
    slots = rows.map.slots(batch.ids)
    return (
        rows.tables.read(Table.IN, slots[: batch.inputs]),
        rows.tables.read(Table.OUT, slots),
    )


def moved(
    batch: Minibatches, vectors: FloatArray, contexts: FloatArray
) -> tuple[RowDelta, RowDelta]:
    """By how much a block moves these columns, float32 [rows, columns], which it uses up."""
    before = vectors.copy(), contexts.copy()
    columns = ColumnSlice(batch.examples, vectors, contexts)
    for start, stop in batch.bounds:
        columns.learn(start, np.asarray(batch.slopes[start:stop], np.float32), batch.rate)
    vectors -= before[0]
    contexts -= before[1]
    if len(batch.shares):
        vectors *= batch.shares[: batch.inputs, None]
        contexts *= batch.shares[batch.inputs :, None]
    inputs = RowDelta(Table.IN, batch.ids[: batch.inputs], vectors)
    return inputs, RowDelta(Table.OUT, batch.ids, contexts)
