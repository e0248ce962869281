"""The node's side where shards hold columns: no row travels, only words and one number an example.

Ordentlich et al. 2016, "Network-efficient Distributed Word2vec Training System for Large
Vocabularies", section 4. A block is opened on every shard; for each minibatch the shards answer
partial scores, and their sum goes back as one number an example, in the message that asks for the
next one. The last numbers are the push, which the primary's log orders like any other.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from embedding.exchange.codec import with_record
from embedding.exchange.compression.base import entry_type
from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.compression.sending import Sending
from embedding.exchange.protocol import PulledRows, PullRequest, Push
from embedding.exchange.rows import KeptRows
from embedding.exchange.session import Session
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError, UnavailableError
from embedding.kernel.records import FloatArray, HalfArray, Table
from yeoron_lab.columns.checks import check_column_exchange
from yeoron_lab.columns.minibatches import Minibatches, encode_block_push
from yeoron_lab.shards.client.links import ShardLinks
from yeoron_lab.shards.client.rows import ShardedNodeRows
from yeoron_lab.shards.client.stream import ShardStream
from yeoron_lab.slices import slopes_of

if TYPE_CHECKING:
    from embedding.worker.learning.training import MakeTraining


class ColumnsOnShards(ShardedNodeRows):
    """No rows travel: `learn` learns blocks, a push is what was learnt, and pulls are empty.

    Raises ConfigError for settings of the exchange that are about rows.
    """

    def __init__(self, session: Session[Push], feedback: Sending) -> None:
        super().__init__(session, feedback)
        check_column_exchange(session.config)
        self.links = ShardLinks(
            session,
            split=_split,
            keeping=self.keeping,
            encode=encode_block_push,
            send=self._push_part,
        )
        self._learnt: Minibatches | None = None

    def pull(self, request: PullRequest) -> PulledRows:
        """Wait for the policy and have pairs scored; which rows are named does not matter."""
        if Table.SUB in request.ids:
            raise RefusedError("pull: rows of n-grams have no columns on shards.")
        return self.ask(replace(request, ids={}), KeptRows(), self.links.tend)

    def training(self) -> MakeTraining:
        from yeoron_lab.columns.training import ColumnTraining

        return partial(ColumnTraining, columns=self)

    def learn(
        self, block: Minibatches, rows: PulledRows, weights: FloatArray | None = None
    ) -> tuple[Minibatches, FloatArray]:
        """Learn a block on the shards' copies of its rows, as they are at `rows`.

        weights  float32 [e], factor of each example's step; None: 1
        Returns the block with its slopes, to be pushed next, and losses float32 [e] in nats.
        """
        deadline = time.monotonic() + self.session.config.pull_timeout_s
        while (learnt := self._minibatches(block, rows, weights)) is None:
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"block at clock {rows.clock}: the shards were not told of what the primary "
                    f"had applied for {self.session.config.pull_timeout_s:.0f} s."
                )
            # A shard or the primary was restarted: what was learnt of the block is gone with it.
            rows = self.pull(PullRequest({}, rows.clock))
        return learnt

    def _minibatches(
        self, block: Minibatches, rows: PulledRows, weights: FloatArray | None
    ) -> tuple[Minibatches, FloatArray] | None:
        if rows.at is None:
            raise RefusedError("pull: the server did not say what its shards have to hold.")
        outputs = block.examples.outputs
        slopes: FloatArray | HalfArray = np.empty(outputs.shape, entry_type(self.session.config))
        losses = np.empty(len(outputs), np.float32)
        header = {"op": "open", "at": list(rows.at), "rows": self.session.config.rows}
        message = with_record(Message(header), "batch", block)
        with self.session.lock:
            for start, stop in block.bounds:
                scores = self._scores(message)
                if scores is None:
                    return None
                steps, losses[start:stop] = slopes_of(scores, outputs[start:stop])
                if weights is not None:
                    steps *= weights[start:stop, None]
                slopes[start:stop] = narrow(steps) if slopes.dtype == np.float16 else steps
                message = Message({"op": "step"}, {"slopes": slopes[start:stop]})
            self._learnt = replace(block, slopes=slopes)
            return self._learnt, losses

    def _scores(self, message: Message) -> FloatArray | None:
        """The sum of all shards' partial scores; None when one of them has not got the block."""
        answers = self.links.each(lambda shard: shard.peer.request(message))
        if any(answer.header["status"] != "ok" for answer in answers):
            return None
        total, *others = (widen(answer.array("scores", "f4 f2", 2)) for answer in answers)
        for other in others:
            total = total + other
        return total

    def _push_part(self, shard: ShardStream, part: Push) -> None:
        """The shard has all but the last numbers, unless it was started again."""
        block = part.minibatches
        learnt = self._learnt
        if learnt is not None and isinstance(block, Minibatches) and block.slopes is learnt.slopes:
            header = {"op": "learnt", "sequence": part.sequence, "clock": part.clock}
            last = block.slopes[block.bounds[-1][0] :]
            answer = shard.ask(Message(header, {"slopes": last, "shares": block.shares}))
            if answer.header["status"] == "ok":
                return
        shard.push(part)


def _split(push: Push, shards: int) -> list[Push]:
    """Every shard gets the whole block."""
    part = Push(push.node, push.sequence, push.clock, minibatches=push.minibatches)
    return [part] * shards
