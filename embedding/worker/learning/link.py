"""A node's side of the exchange: it pulls rows, pushes work, and knows its last push."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from embedding.exchange.compression.halves import widen
from embedding.exchange.payload import (
    BlockCounts,
    ContextSums,
    CountGroup,
    HandIn,
    RowDelta,
    WindowUse,
    summed,
)
from embedding.exchange.protocol import Ack, PulledRows, PullRequest, Push
from embedding.exchange.transport import Transport
from embedding.kernel.errors import AheadError
from embedding.kernel.records import FloatArray, IntArray, ScorePairs, Table
from embedding.worker.corpus.counting import source_progress
from embedding.worker.learning.nodeclock import LearnerSetup, NodeClock
from embedding.worker.learning.planning import BlockPlan
from embedding.worker.learning.replaying import Replaying
from embedding.worker.learning.ticks import Tick, keys_of


class LearnerLink:
    """Pulls and pushes for one node, each at the node's clock.

    A pull may be held back for rounds of all nodes; the node takes part in them meanwhile.

    turn  where the node stands with the server
    past  what it remembers, for rounds
    """

    def __init__(
        self, server: Transport, setup: LearnerSetup, turn: NodeClock, past: Replaying
    ) -> None:
        self.server = server
        self.turn = turn
        self._setup = setup
        self._past = past
        self._unseen: tuple[int, tuple[RowDelta, ...]] = (0, ())

    def pull(
        self, planned: BlockPlan, scores: Sequence[ScorePairs] = (), clock: int | None = None
    ) -> PulledRows:
        """Pull the block's rows; every source's pairs are scored on the tables as they are now."""
        return self.ask(planned.rows(), scores, self.turn.clock if clock is None else clock)

    def pull_ahead(
        self, planned: BlockPlan, scores: Sequence[ScorePairs], clock: int
    ) -> PulledRows | None:
        """Pull at the next clock, before the last push is answered; None when it must wait."""
        try:
            return self.pull(planned, scores, clock)
        except AheadError:
            return None

    def ask(
        self, ids: Mapping[Table, IntArray], scores: Sequence[ScorePairs], clock: int
    ) -> PulledRows:
        """Pull these rows."""
        request = PullRequest(ids, clock, scores)
        rows, before = self._past.pulled(partial(self.server.pull, request))
        self.turn.stopwatch.held(rows, before)
        self.turn.prepared(rows.clock)
        return rows

    def vectors(self, clock: int, ids: IntArray) -> FloatArray:
        """Rows float32 [n, dim] of `in` as they are now."""
        return widen(self.server.pull(PullRequest({Table.IN: ids}, clock)).rows[Table.IN])

    def push(
        self,
        ticks: Sequence[Tick],
        clock: int,
        deltas: tuple[RowDelta, ...],
        *,
        kept: bool = False,
    ) -> Ack:
        """Send what ticks learnt, on rows as they were at `clock`; follow what the server answers.

        kept  the node has copies of its own that these deltas are in already
        """
        first, setup = self.turn.sequence + 1, self._setup
        blocks = [block for tick in ticks for block in tick.blocks]
        uses = [use for tick in ticks for use in tick.uses]
        *ahead, usage = portions(uses, setup.most_bytes)
        whose = Push(setup.node, first, clock, incarnation=setup.incarnation)
        for portion in ahead:
            self._push(replace(whose, usage=portion), ())
        push = replace(
            whose,
            deltas=deltas,
            counts=joined([tick.counts for tick in ticks]),
            progress=source_progress(blocks, setup.calendar, time.time()),
            tokens=sum(tick.read for tick in ticks),
            loss_sum=sum(tick.loss.loss_sum for tick in ticks),
            pairs=sum(tick.loss.pairs for tick in ticks),
            tokenizer_digest=blocks[0].tokenizer_digest if blocks else "",
            offset=blocks[-1].offset if blocks else "",
            rare=summed([tick.rare for tick in ticks if tick.rare is not None]),
            minibatches=ticks[-1].minibatches,
            usage=usage,
            shifts=tuple(part for use in uses for part in use.shifts),
            hand_ins=tuple(HandIn(use.window, first, use.inherited) for use in uses),
            replayed=sum(tick.replayed_tokens for tick in ticks),
            phrases=tuple(phrase for block in blocks for phrase in block.phrases),
        )
        ack = self._push(push, keys_of(ticks))
        self._unseen = (self.turn.sequence, () if kept else deltas)
        return ack

    def _push(self, push: Push, keys: Sequence[str]) -> Ack:
        ack = self.server.push(self.turn.push(push, keys))
        self.turn.pushed(keys, ack)
        return ack

    def unseen(self, rows: PulledRows) -> dict[Table, RowDelta]:
        """The node's last delta, unless it is in these rows."""
        sequence, deltas = self._unseen
        return {} if rows.sequence >= sequence else {delta.table: delta for delta in deltas}

    def restart(self, clock: int, sequence: int) -> None:
        """Go on from where the server stands."""
        self.turn.restart(clock, sequence)
        self._unseen = (0, ())


def portions(uses: Sequence[WindowUse], most_bytes: int) -> list[tuple[ContextSums, ...]]:
    """The sums of uses in messages of at most so many bytes; at least one, which may be empty."""
    size, parts, found = 0, list[ContextSums](), list[tuple[ContextSums, ...]]()
    for whole in (whole for use in uses for whole in use.sums):
        step = max(1, most_bytes * len(whole.ids) // max(1, whole.nbytes))
        for at in range(0, max(1, len(whole.ids)), step):
            own = slice(at, at + step)
            ids, sums, documents = whole.ids[own], whole.sums[own], whole.documents[own]
            part = replace(whole, ids=ids, sums=sums, documents=documents)
            if parts and size + part.nbytes > most_bytes:
                found.append(tuple(parts))
                size, parts = 0, []
            parts.append(part)
            size += part.nbytes
    return [*found, tuple(parts)]


def joined(parts: Sequence[BlockCounts]) -> BlockCounts:
    """Counts of several ticks, group after group."""
    groups: list[CountGroup] = []
    words: list[str] = []
    rows = 0
    for part in parts:
        groups += [CountGroup(g.source, g.window, g.stop + rows) for g in part.groups]
        words += part.words
        rows += len(part.ids)
    return BlockCounts(
        tuple(groups),
        np.concatenate([part.ids for part in parts]),
        words,
        *map(np.concatenate, zip(*(part.columns for part in parts), strict=True)),
    )
