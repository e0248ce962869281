"""A client's rows where shards hold rows (docs/concepts/server.md).

A push goes to every shard and then, without its rows, to the server, which says to all shards when
it is to be applied. A pull asks the server first, which lets it through as the policy says and
names the position of its log from which on the shards may be read.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from embedding.exchange.compression.sending import Sending
from embedding.exchange.protocol import PulledRows, PullRequest, Push
from embedding.exchange.rows import KeptRows, MakeRows, NodeRows, kept_rows
from embedding.exchange.session import Session
from embedding.kernel.config import part_of
from embedding.kernel.errors import RefusedError, UnavailableError
from embedding.kernel.records import IntArray, Table
from yeoron_lab.settings import KeepingSettings
from yeoron_lab.shards.client.columns import columns
from yeoron_lab.shards.client.links import ShardLinks
from yeoron_lab.shards.client.split import joined, places, split_push

_TRIES = 3


class ShardedNodeRows(NodeRows):
    """The rows of all shards together; of the server itself, which has none, nothing is kept.

    Each shard has marks, clocks and an incarnation of its own; a shard that starts again changes
    nothing of what is kept of the others. What compression keeps back is one store for all.
    """

    links: ShardLinks

    def keeping(self, shards: int) -> Sequence[KeptRows]:
        """Begin with so many shards; each may take its part of `cache_bytes`."""
        config = self.session.config
        whole = part_of(config, KeepingSettings).cache_bytes
        share = max(1, whole // shards) if whole else 0
        config = config.model_copy(update={"cache_bytes": share})
        self.feedback.shards = shards
        self.kept = [kept_rows(config) for _ in range(shards)]
        return self.kept

    def learnt(self, push: Push) -> None:
        for rows, part in zip(self.kept, split_push(push, len(self.kept)), strict=True):
            rows.learnt(part)

    def refused(self) -> None:
        """The primary refused a push that shards have taken: what they keep is not this."""
        for rows in self.kept:
            rows.refused()


class RowsOnShards(ShardedNodeRows):
    """Rows go to and come from all shards at the same time."""

    def __init__(self, session: Session[Push], feedback: Sending) -> None:
        super().__init__(session, feedback)
        self.links = ShardLinks(session, split=split_push, keeping=self.keeping)

    def pull(self, request: PullRequest) -> PulledRows:
        patience = self.session.config.pull_timeout_s
        deadline = time.monotonic() + patience
        rows = self.ask(replace(request, ids={}), KeptRows(), self.links.tend)
        attempt = 0
        while (gathered := self._gather(rows, request.ids, patient=attempt < _TRIES)) is None:
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"pull at clock {request.clock}: the shards were not told of what the primary "
                    f"had applied for {patience:.0f} s."
                )
            attempt += 1
            self.links.tend()
            # A restarted primary counts again; what was scored before is scored.
            again = self.ask(PullRequest({}, request.clock), KeptRows(), self.links.tend)
            rows = replace(again, nll=rows.nll, waited_s=rows.waited_s)
        return gathered

    def _gather(
        self, rows: PulledRows, asked: Mapping[Table, IntArray], *, patient: bool
    ) -> PulledRows | None:
        """The rows from all shards; None when the primary was restarted meanwhile.

        patient  None also when some shards alone have applied a push of this node, so that the
                 primary is asked again
        """
        with self.session.lock:
            if rows.at is None:
                raise RefusedError("pull: the server did not say what its shards have to hold.")
            n = len(self.links)
            where = {table: places(ids, n) for table, ids in asked.items()}
            parts = [
                {table: asked[table][own[index]] for table, own in where.items()}
                for index in range(n)
            ]
            at, half = rows.at, self.session.config.rows == "float16"
            answers = self.links.each(lambda shard, part: shard.pull(at, part, half=half), parts)
            # One after the other: what compression keeps back is one store.
            read = [
                self.read(answer, part, shard.kept)
                for shard, answer, part in zip(self.links, answers, parts, strict=True)
            ]
        pulled = [part for part in read if part is not None]
        sequences = {part.sequence for part in pulled}
        if len(pulled) < len(read) or (patient and len(sequences) > 1):
            return None
        gathered = {t: joined(own, [part.rows[t] for part in pulled]) for t, own in where.items()}
        return replace(rows, rows=gathered, sequence=min(sequences))


def node_rows(split: str) -> MakeRows:
    """Of a node, where shards hold rows, or columns."""
    return columns().node_rows if split == "columns" else RowsOnShards
