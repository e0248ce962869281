"""A node's own view of the rows: what the server sends, what the node keeps and has not sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from embedding.exchange.codec import decode_packed
from embedding.exchange.compression.base import unpacked
from embedding.exchange.compression.feedback import Feedback
from embedding.exchange.compression.halves import widen
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.headers import position, whole
from embedding.exchange.mirror import Mirror, Wanted
from embedding.exchange.protocol import PulledRows, Push
from embedding.exchange.rowcache import NAMES, RowCache
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table

Asked = Mapping[Table, IntArray]


class OwnRows:
    """Completes what is pulled. Not thread-safe: the client's stream lock guards it.

    direct  rows come from this server and what moves them goes to it, by nobody else
    """

    def __init__(self, config: ExchangeConfig, feedback: Feedback) -> None:
        self.feedback = feedback
        self.config = config
        self.changes = config.pulls == "changes"
        self.cache = RowCache(0 if self.changes else config.cache_bytes)
        self.mirror = Mirror(config.cache_bytes)
        self.direct = False
        self._order: dict[Table, IntArray] = {}

    @property
    def keeps(self) -> bool:
        return (self.changes or bool(self.cache.memory)) and self.direct

    def greeted(self, epoch: int, sequence: int, *, direct: bool, first: bool) -> None:
        """The server, or a shard, greeted in this incarnation of it; `first`: nothing was pushed
        yet.

        sequence  the last push that it has taken
        """
        if first:
            self.cache.sequence = sequence
        self.cache.follow(epoch)
        self.forget_mirror()
        self.direct = direct

    def forget_mirror(self) -> None:
        """What the other side believes this one has may be wrong: the next pull brings all."""
        self.mirror = Mirror(self.config.cache_bytes)

    def asking(self, message: Message, asked: Asked) -> Message:
        """A pull, with what is kept of the rows that it asks for."""
        if not self.keeps or not any(map(len, asked.values())):
            self._order = {}
            return message
        if self.changes:
            return self._asking_changes(message, asked)
        header, parts = self.cache.ask(asked)
        return Message({**message.header, **header}, {**message.arrays, **parts})

    def _asking_changes(self, message: Message, asked: Asked) -> Message:
        """Ids in order, in which they take few bytes, and the answer can name rows by place."""
        self._order = {table: np.argsort(ids, kind="stable") for table, ids in asked.items()}
        parts = {NAMES[table]: asked[table][order] for table, order in self._order.items()}
        config = self.config
        wanted = Wanted(
            self.mirror.pulls,
            config.cache_bytes,
            config.threshold,
            config.relative_threshold,
            config.directions,
        )
        return Message({**message.header, **wanted.header()}, {**message.arrays, **parts})

    def _came(self, answer: Message, asked: Asked) -> dict[Table, FloatArray | HalfArray]:
        """The rows in an answer, in the order in which they were asked for."""
        memory = answer.header.get("changes")
        if memory is None or not self._order:
            self.forget_mirror()  # the server has none of this pull
            found = {table: answer.array(NAMES[table], "f4 f2", 2) for table in asked}
        else:
            if not self.mirror.pulls:
                self.mirror = Mirror(
                    whole(answer.header, "changes", least=1), whole(answer.header, "start")
                )
            inorder = {table: asked[table][order] for table, order in self._order.items()}
            packed = decode_packed(answer)
            found = {**self.mirror.changed(inorder, packed, self.config.max_message_bytes)}
        if self._order and any(len(found[table]) != len(ids) for table, ids in asked.items()):
            raise RefusedError("pull: the answer has another number of rows than were asked for.")
        for table, order in self._order.items():
            rows = np.empty_like(found[table])
            rows[order] = found[table]
            found[table] = rows
        return found

    def read(self, answer: Message, asked: Asked) -> PulledRows | None:
        """The rows in an answer, with what this node has learnt and not sent; None: it waits."""
        header = answer.header
        if header["status"] != "ok":
            return None
        sequence = whole(header, "sequence")
        found = self._came(answer, asked)
        if self.keeps and not self.changes and any(map(len, asked.values())):
            found = {**self.cache.filled(asked, found, answer, sequence=sequence)}
        if self.feedback.leaves:
            for table, ids in asked.items():
                rows = widen(found[table])
                self.feedback.add_to(table, ids, rows, sequence)
                found[table] = rows
        elif self.feedback.dtype == "float32":
            # A delta travels in the type of its rows, unless it is told otherwise.
            found = {
                table: rows if rows.dtype == np.float32 else widen(rows)
                for table, rows in found.items()
            }
        return PulledRows(
            clock=whole(header, "clock"),
            vectors=found[Table.IN],
            contexts=found[Table.OUT],
            sequence=sequence,
            nll=tuple(header.get("nll", ())),
            grams=found.get(Table.SUB),
            at=position(header.get("at")),
        )

    def taken(self, push: Push) -> None:
        if push.keeps and self.changes:
            self.mirror.learnt(unpacked(push))
        elif push.keeps:
            self.cache.learnt(unpacked(push), push.sequence)

    def refused(self) -> None:
        """The server refused a push: it has changed nothing that is kept."""

    def figures(self) -> dict[str, dict[str, Any]]:
        return {
            "compression": {
                "kind": self.config.compression,
                "residual_rows": self.feedback.rows,
                "residual_bytes": self.feedback.nbytes,
            },
            "cache": {
                "kind": self.config.pulls,
                "bytes": self.cache.nbytes + self.mirror.nbytes,
                "rows_asked": self.cache.asked,
                "rows_spared": self.cache.spared,
            },
        }

    def alive(self, ids: IntArray) -> None:
        self.feedback.keep(ids)
        self.cache.keep(ids)
