"""A node's own view of the rows: what the server sends, what the node keeps and has not sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from embedding.exchange.changes import kept_rows
from embedding.exchange.codec import from_message
from embedding.exchange.compression.halves import widen
from embedding.exchange.compression.sending import Sending
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import PulledRows, Push
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import IntArray, Table

Asked = Mapping[Table, IntArray]


def check_rows_came(asked: Asked, rows: Mapping[Table, Any]) -> None:
    """RefusedError unless there is a row for each id."""
    for table, ids in asked.items():
        if table not in rows or len(rows[table]) != len(ids):
            raise RefusedError(f"pull: the answer has not {len(ids)} rows of table {table}.")


class OwnRows:
    """Completes what is pulled. Not thread-safe: the client's stream lock guards it.

    kept    rows from one pull to the next; None: none
    direct  rows come from this server and what moves them goes to it, by nobody else
    """

    def __init__(self, config: ExchangeConfig, feedback: Sending) -> None:
        self.feedback = feedback
        self.config = config
        self.kept = kept_rows(config)
        self.direct = False

    @property
    def keeps(self) -> bool:
        """Whether rows are kept from one pull to the next."""
        return self.kept is not None and self.direct

    def greeted(self, epoch: int, sequence: int, *, direct: bool, first: bool) -> None:
        """The server, or a shard, greeted in this incarnation of it; `first`: nothing was pushed
        yet.

        sequence  the last push that it has taken
        """
        if self.kept is not None:
            self.kept.greeted(epoch, sequence, first=first)
        self.direct = direct

    def asking(self, message: Message, asked: Asked) -> Message:
        """A pull, with what is kept of the rows that it asks for."""
        return (
            message
            if self.kept is None
            else self.kept.asking(message, asked if self.direct else {})
        )

    def read(self, answer: Message, asked: Asked) -> PulledRows | None:
        """The rows in an answer, with what this node has learnt and not sent; None: it waits."""
        if answer.header["status"] != "ok":
            return None
        pulled = from_message(PulledRows, answer)
        found = dict(pulled.rows if self.kept is None else self.kept.came(answer, pulled, asked))
        if self.kept is None:
            check_rows_came(asked, found)
        if self.feedback.leaves:
            for table, ids in asked.items():
                rows = widen(found[table])
                self.feedback.add_to(table, ids, rows, pulled.sequence)
                found[table] = rows
        elif self.feedback.dtype == "float32":
            # A delta travels in the type of its rows, unless it is told otherwise.
            found = {
                table: rows if rows.dtype == np.float32 else widen(rows)
                for table, rows in found.items()
            }
        return replace(pulled, rows=found)

    def taken(self, push: Push) -> None:
        """The server has taken this push."""
        if push.keeps and self.kept is not None:
            self.kept.learnt(push)

    def refused(self) -> None:
        """The server refused a push: it has changed nothing that is kept."""

    def figures(self) -> dict[str, dict[str, Any]]:
        """What is held, JSON-safe; may be asked for by any thread."""
        kept = self.kept
        return {
            "compression": {
                "kind": self.config.compression,
                "residual_rows": self.feedback.rows,
                "residual_bytes": self.feedback.nbytes,
            },
            "cache": {
                "kind": self.config.pulls,
                "bytes": 0 if kept is None else kept.nbytes,
                "rows_asked": 0 if kept is None else kept.asked,
                "rows_spared": 0 if kept is None else kept.spared,
            },
        }

    def alive(self, ids: IntArray) -> None:
        """Words with a row, increasing: nothing is held of others."""
        self.feedback.keep(ids)
        if self.kept is not None:
            self.kept.alive(ids)
