"""A client's rows where shards hold rows (docs/concepts/server.md).

A push goes to every shard and then, without its rows, to the server, which says to all shards when
it is to be applied. A pull asks the server first, which lets it through as the policy says and
names the position of its log from which on the shards may be read.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from embedding.exchange.codec import to_message
from embedding.exchange.compression.sending import Sending
from embedding.exchange.protocol import PulledRows, PullRequest, Push
from embedding.exchange.rowpath import ClientSession, pull_from_server
from embedding.kernel.errors import RefusedError, UnavailableError
from embedding.kernel.records import IntArray, Table
from yeoron_lab.shards.client.links import ShardLinks
from yeoron_lab.shards.client.split import joined, places, split_push
from yeoron_lab.shards.client.view import ShardedView

_TRIES = 3


class RowsOnShards:
    """A RowPath whose rows go to and come from all shards at the same time."""

    def __init__(self, session: ClientSession, feedback: Sending) -> None:
        self._session = session
        self.view = ShardedView(session.config, feedback)
        self.links = ShardLinks(session, self.view, split_push, lambda part: [to_message(part)])

    def pull(self, request: PullRequest) -> PulledRows:
        asked = request.ids
        patience = self._session.config.pull_timeout_s
        deadline = time.monotonic() + patience
        ask = PullRequest({}, request.clock, request.score)
        rows = pull_from_server(self._session, self.view, ask, self.links.tend)
        attempt = 0
        while (found := self._gather(rows, asked, patient=attempt < _TRIES)) is None:
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"pull at clock {request.clock}: the shards were not told of what the primary "
                    f"had applied for {patience:.0f} s."
                )
            attempt += 1
            self.links.tend()
            # A restarted primary counts again; what was scored before is scored.
            nll, waited = rows.nll, rows.waited_s
            again = PullRequest({}, request.clock)
            rows = pull_from_server(self._session, self.view, again, self.links.tend)
            rows = replace(rows, nll=nll, waited_s=waited)
        return found

    def spread(self, push: Push) -> None:
        self.links.push(push)

    def rest(self, push: Push) -> Push:
        return without_rows(push)

    def _gather(
        self, rows: PulledRows, asked: Mapping[Table, IntArray], *, patient: bool
    ) -> PulledRows | None:
        """The rows from all shards; None when the primary was restarted meanwhile.

        patient  None also when some shards alone have applied a push of this node, so that the
                 primary is asked again
        """
        with self._session.lock:
            if rows.at is None:
                raise RefusedError("pull: the server did not say what its shards have to hold.")
            n = len(self.links)
            where = {table: places(ids, n) for table, ids in asked.items()}
            parts = [
                {table: asked[table][found[index]] for table, found in where.items()}
                for index in range(n)
            ]
            at, half = rows.at, self._session.config.rows == "float16"
            answers = self.links.each(lambda shard, part: shard.pull(at, part, half=half), parts)
            # One after the other: what compression keeps back is one store.
            read = [
                shard.rows.read(answer, part)
                for shard, answer, part in zip(self.links, answers, parts, strict=True)
            ]
        got = [each for each in read if each is not None]
        sequences = {each.sequence for each in got}
        if len(got) < len(read) or (patient and len(sequences) > 1):
            return None
        found = {t: joined(at, [each.rows[t] for each in got]) for t, at in where.items()}
        return replace(rows, rows=found, sequence=min(sequences))


def without_rows(push: Push) -> Push:
    """What was read, without what it moved."""
    return replace(push, deltas=(), packed=(), minibatches=None, keeps=False)
