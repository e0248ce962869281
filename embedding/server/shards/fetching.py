"""One shard as its primary reaches it, and what it asks of the shard's rows."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

import numpy as np

from embedding.exchange.channel import Channel
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.headers import whole
from embedding.exchange.protocol import PROTOCOL_VERSION
from embedding.exchange.wire import Message
from embedding.kernel.errors import ExchangeError, UnavailableError
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.rows.composing import GramBags
from embedding.server.shards.log import ShardLog

logger = logging.getLogger(__name__)


class LateError(UnavailableError):
    """A shard has waited a moment and not carried out the log up to where it was asked."""


@dataclass(frozen=True)
class ShardEndpoint:
    """Where a shard is.

    identity  of the training: a shard of another one refuses the primary
    """

    index: int
    location: str
    identity: str
    config: ExchangeConfig

    def greeted(self, log: ShardLog) -> tuple[Channel, Message]:
        """An open stream, and where the shard is in the log; UnavailableError when it is away."""
        channel = Channel(self.location, self.config)
        try:
            channel.open()
            header = {
                "op": "lead",
                "version": PROTOCOL_VERSION,
                "number": log.number,
                "identity": self.identity,
            }
            return channel, channel.request(Message(header))
        except BaseException:
            channel.close()
            raise


class ShardCalls:
    """Asks one shard for rows, on a stream of its own. For any thread; it raises UnavailableError
    while the shard is away, and LateError while it is behind the position that is named.
    """

    def __init__(self, shard: ShardEndpoint, log: ShardLog) -> None:
        self._shard, self._log = shard, log
        self._unneeded: set[int] = set()
        self._lock = threading.Lock()
        self._channel: Channel | None = None

    def rows(self, table: Table, ids: IntArray, at: tuple[int, int]) -> FloatArray:
        """float32 [n, dim] at `at` or later."""
        header = {"op": "rows", "table": table, "at": list(at)}
        return self.fetch(Message(header, {"ids": ids})).array("rows", "f4", 2)

    def sums(self, bags: GramBags, at: tuple[int, int]) -> FloatArray:
        """float32 [n, dim], the sum of each bag's rows of n-grams; otherwise as `rows`."""
        arrays = {"ids": bags.buckets.astype(np.int64), "offsets": bags.offsets.astype(np.int64)}
        return self.fetch(Message({"op": "sums", "at": list(at)}, arrays)).array("rows", "f4", 2)

    def copy_begun(self, number: int, at: tuple[int, int]) -> None:
        """Return when the copy at `at` was begun."""
        self.fetch(Message({"op": "copied", "number": number, "at": list(at)}))

    def copied(self, number: int, at: tuple[int, int], table: Table, ids: IntArray) -> FloatArray:
        """float32 [n, dim] of the copy at `at`."""
        header = {"op": "copied", "number": number, "table": table, "at": list(at)}
        return self.fetch(Message(header, {"ids": ids})).array("rows", "f4", 2)

    def forget(self, number: int) -> None:
        """A copy is needed no longer; a shard that does not answer hears it with the next one."""
        self._unneeded.add(number)
        try:
            for each in sorted(self._unneeded):
                self.fetch(Message({"op": "forget", "number": each}))
                self._unneeded.discard(each)
        except ExchangeError as error:
            logger.debug("shard %d: %s", self._shard.index, error)

    def incarnation(self) -> int:
        """Of the shard as it runs now."""
        with self._lock:
            self._drop()
            self._channel, answer = self._shard.greeted(self._log)
            return whole(answer.header, "epoch")

    def fetch(self, message: Message) -> Message:
        """The answer to one request."""
        with self._lock:
            try:
                if self._channel is None:
                    self._channel, _ = self._shard.greeted(self._log)
                answer = self._channel.request(message)
            except UnavailableError:
                self._drop()
                raise
        if answer.header["status"] != "ok":
            raise LateError(f"shard {self._shard.index} has not carried out the log up to there.")
        return answer

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
