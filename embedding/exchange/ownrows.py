"""A node's own view of the rows: what the server sends, what the node keeps and has not sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from embedding.exchange.changes import NodeChanges, needed_changes
from embedding.exchange.compression.base import unpacked
from embedding.exchange.compression.feedback import Feedback
from embedding.exchange.compression.halves import widen
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.headers import position, whole
from embedding.exchange.protocol import NAMES, PulledRows, Push
from embedding.exchange.rowcache import RowCache
from embedding.exchange.wire import Message
from embedding.kernel.records import IntArray, Table

Asked = Mapping[Table, IntArray]


class OwnRows:
    """Completes what is pulled. Not thread-safe: the client's stream lock guards it.

    direct  rows come from this server and what moves them goes to it, by nobody else
    """

    def __init__(self, config: ExchangeConfig, feedback: Feedback) -> None:
        self.feedback = feedback
        self.config = config
        self.changes: NodeChanges | None = None
        if config.pulls == "changes":
            self.changes = needed_changes().of_node(config)
        self.cache = RowCache(0 if self.changes else config.cache_bytes)
        self.direct = False

    @property
    def keeps(self) -> bool:
        return (self.changes is not None or bool(self.cache.memory)) and self.direct

    def greeted(self, epoch: int, sequence: int, *, direct: bool, first: bool) -> None:
        """The server, or a shard, greeted in this incarnation of it; `first`: nothing was pushed
        yet.

        sequence  the last push that it has taken
        """
        if first:
            self.cache.sequence = sequence
        self.cache.follow(epoch)
        self.forget_changes()
        self.direct = direct

    def forget_changes(self) -> None:
        """Pulls of changes begin again."""
        if self.changes is not None:
            self.changes.forget()

    def asking(self, message: Message, asked: Asked) -> Message:
        """A pull, with what is kept of the rows that it asks for."""
        if self.changes is not None:
            return self.changes.asking(message, asked if self.keeps else {})
        if not self.keeps or not any(map(len, asked.values())):
            return message
        header, parts = self.cache.ask(asked)
        return Message({**message.header, **header}, {**message.arrays, **parts})

    def read(self, answer: Message, asked: Asked) -> PulledRows | None:
        """The rows in an answer, with what this node has learnt and not sent; None: it waits."""
        header = answer.header
        if header["status"] != "ok":
            return None
        sequence = whole(header, "sequence")
        if self.changes is not None:
            found = self.changes.came(answer, asked)
        else:
            found = {table: answer.array(NAMES[table], "f4 f2", 2) for table in asked}
            if self.keeps and any(map(len, asked.values())):
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
            rows=found,
            sequence=sequence,
            nll=tuple(header.get("nll", ())),
            at=position(header.get("at")),
        )

    def taken(self, push: Push) -> None:
        if push.keeps and self.changes is not None:
            self.changes.learnt(push)
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
                "bytes": self.cache.nbytes + (self.changes.nbytes if self.changes else 0),
                "rows_asked": self.cache.asked,
                "rows_spared": self.cache.spared,
            },
        }

    def alive(self, ids: IntArray) -> None:
        self.feedback.keep(ids)
        self.cache.keep(ids)
