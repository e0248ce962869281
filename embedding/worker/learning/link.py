"""A node's side of the exchange: it pulls rows, pushes work, and knows its last push."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from embedding.exchange.protocol import Ack, PulledRows, PullRequest, Push, Welcome
from embedding.exchange.transport import Transport
from embedding.kernel.records import Calendar, FloatArray, IntArray, ScorePairs, Table
from embedding.models.config import ModelConfig
from embedding.worker.config import NodeConfig
from embedding.worker.corpus.counting import source_progress
from embedding.worker.crawling.unacknowledged import Unacknowledged
from embedding.worker.learning.ticks import Tick, keys_of


@dataclass(frozen=True)
class LearnerSetup:
    """Settings of a learner.

    calendar    of the windows that its counts are booked in
    most_bytes  of the use of words that one push carries; the rest goes ahead of it
    incarnation  mark of the process, where it hands in how it used words
    """

    node: str
    model: ModelConfig
    config: NodeConfig
    calendar: Calendar
    most_bytes: int = 32 * 2**20
    incarnation: str = ""


class PushStopwatch:
    """Runs from push to push; waiting for text counts, waiting for other nodes does not."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._waited = 0.0

    def start(self) -> None:
        self._began, self._waited = time.monotonic(), 0.0

    def waited(self, rows: PulledRows, round_s: float = 0.0) -> None:
        """A pull was held back, and for `round_s` seconds by a round of L-BFGS."""
        self._waited += round_s + rows.waited_s

    def busy(self) -> float:
        """Seconds since the last push, less those held back; 0 before the first push.

        The first stretch is not measured: kernels are compiled in it.
        """
        if self._began is None:
            return 0.0
        return max(time.monotonic() - self._began - self._waited, 1e-3)


class NodeClock:
    """Follows what the server answers.

    A block is prepared at a clock of its own, which runs ahead of the pushes: the block after one
    that is not pushed yet is one clock further on (`prepared`).

    clock        at which the node goes on; sequence: its last push
    unacknowledged  documents that the frontier has not marked as done; None for a corpus
    """

    def __init__(
        self,
        welcome: Welcome,
        unacknowledged: Unacknowledged | None = None,
        stopwatch: PushStopwatch | None = None,
    ) -> None:
        self.clock, self.sequence = welcome.clock, welcome.sequence
        self.pace, self.active = welcome.pace, welcome.active
        self.unacknowledged = unacknowledged
        self.stopwatch = stopwatch or PushStopwatch()
        self._offset = welcome.offset
        self._at = 0

    @property
    def pooled(self) -> int:
        return self.pace.pooled or self.active

    def next(self, *, alone: bool) -> int:
        """The clock of the block that is prepared now; `alone`: the one before it is pushed."""
        self._at = self.clock - 1 if alone else self._at
        return self._at + 1

    def prepared(self, clock: int) -> None:
        """A block has come so far; others go on while this node has nothing to learn."""
        self._at = max(self._at, clock)

    def push(self, push: Push, keys: Sequence[str]) -> Push:
        """The next push, with this node's offset and time; keys: of its documents."""
        # What is learnt again is read nowhere: the reader goes on where it was.
        self._offset = push.offset or self._offset
        offset = self._offset
        if self.unacknowledged is not None:
            offset = self.unacknowledged.offset(keys)
        sequence = self.sequence + 1
        return replace(push, sequence=sequence, offset=offset, busy_s=self.stopwatch.busy())

    def pushed(self, keys: Sequence[str], ack: Ack) -> None:
        """The server has taken the push after `sequence`."""
        self.stopwatch.start()
        self.sequence += 1
        if self.unacknowledged is not None:
            self.unacknowledged.pushed(self.sequence, keys)
        self.clock, self.active, self.pace = ack.clock, ack.active, ack.pace

    def flushed(self, ack: Ack) -> None:
        """The client has pushed what compression kept back."""
        self.clock, self.sequence = ack.clock, ack.sequence

    def restart(self, clock: int, sequence: int) -> None:
        """Go on from where the server stands."""
        self.clock, self.sequence = clock, sequence
        self._at = clock - 1


class LearnerLink:
    """Pulls and pushes for one node, each at the node's clock.

    turn    where the node stands with the server
    pulled  makes a pull, and takes part in the rounds of all nodes that it is held back for
            meanwhile; returns what it brought, and their seconds
    """

    def __init__(
        self,
        server: Transport,
        setup: LearnerSetup,
        turn: NodeClock,
        pulled: Callable[[Callable[[], PulledRows]], tuple[PulledRows, float]],
    ) -> None:
        self.server = server
        self.turn = turn
        self._setup = setup
        self._pulled = pulled
        self._unseen: tuple[int, tuple[RowDelta, ...]] = (0, ())

    def pull(
        self, ids: Mapping[Table, IntArray], scores: Sequence[ScorePairs], clock: int
    ) -> PulledRows:
        """Pull these rows at a clock; every source's pairs are scored on the tables as they are.

        AheadError: at the next clock, before the last push is answered, where the policy waits.
        """
        request = PullRequest(ids, clock, scores)
        rows, round_s = self._pulled(partial(self.server.pull, request))
        self.turn.stopwatch.waited(rows, round_s)
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
        copied: bool = False,
    ) -> Ack:
        """Send what ticks learnt, on rows as they were at `clock`; follow what the server answers.

        copied  the node has copies of its own that these deltas are in already
        """
        first, setup = self.turn.sequence + 1, self._setup
        blocks = [block for tick in ticks for block in tick.blocks]
        uses = [use for tick in ticks for use in tick.uses]
        *ahead, usage = portions(uses, setup.most_bytes)
        empty = Push(setup.node, first, clock, incarnation=setup.incarnation)
        for portion in ahead:
            self._push(replace(empty, usage=portion), ())
        push = replace(
            empty,
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
        self._unseen = (self.turn.sequence, () if copied else deltas)
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


MOST_SUMS = 50_000
"""Sums in one message: of more it would be refused (`Push.usage`)."""


def portions(uses: Sequence[WindowUse], most_bytes: int) -> list[tuple[ContextSums, ...]]:
    """The sums of uses in messages of at most so many bytes; at least one, which may be empty."""
    size, parts, messages = 0, list[ContextSums](), list[tuple[ContextSums, ...]]()
    for whole in (whole for use in uses for whole in use.sums):
        step = max(1, most_bytes * len(whole.ids) // max(1, whole.nbytes))
        for at in range(0, max(1, len(whole.ids)), step):
            own = slice(at, at + step)
            ids, sums, documents = whole.ids[own], whole.sums[own], whole.documents[own]
            part = replace(whole, ids=ids, sums=sums, documents=documents)
            if parts and (size + part.nbytes > most_bytes or len(parts) >= MOST_SUMS):
                messages.append(tuple(parts))
                size, parts = 0, []
            parts.append(part)
            size += part.nbytes
    return [*messages, tuple(parts)]


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
