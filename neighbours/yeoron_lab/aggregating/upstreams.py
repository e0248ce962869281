"""An aggregator's lines to the server, and to the shards where the rows lie on several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from embedding.exchange.channel import Channel
from embedding.exchange.codec import encode_push
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import Push
from embedding.exchange.relay import TOGETHER
from embedding.exchange.shards.links import reached
from embedding.exchange.shards.split import split_deltas
from embedding.kernel.errors import RefusedError
from yeoron_lab.together import add_up, encode_together


class Upstreams:
    """Open while they work; on any error they are closed and opened again."""

    def __init__(self, server: str, config: ExchangeConfig) -> None:
        self._channels: list[Channel] = []
        try:
            self._primary = self._opened(server, config)
            status = self._primary.action("status", {})
            self._shards = [
                self._opened(reached(shard["location"], server), config)
                for shard in status["shards"]
            ]
        except BaseException:
            self.close()
            raise

    def send(self, pushes: Sequence[Push], sessions: Sequence[int]) -> list[dict[str, Any]]:
        """The server's answer to each of these pushes of different nodes, their rows added up.

        To every shard goes its part first, and then what was read to the primary, which orders: a
        sum that it does not take is never applied. RefusedError when one of them does not take it.
        """
        if self._shards:
            self._send_parts(pushes)
            pushes = [replace(push, deltas=()) for push in pushes]
        message = encode_together(pushes, sessions)
        return list(self._primary.request(message).header["acks"])

    def close(self) -> None:
        """Close all."""
        for channel in self._channels:
            channel.close()

    def _send_parts(self, pushes: Sequence[Push]) -> None:
        if any(push.packed for push in pushes):
            raise RefusedError("a sum of packed rows: each node sends its own.")
        first, tickets = pushes[0], [[push.node, push.sequence] for push in pushes]
        parts = split_deltas(add_up(pushes), len(self._shards))
        for shard, deltas in zip(self._shards, parts, strict=True):
            message = encode_push(Push(first.node, first.sequence, first.clock, deltas))
            header = {**message.header, "op": TOGETHER, "tickets": tickets}
            shard.request(replace(message, header=header))

    def _opened(self, location: str, config: ExchangeConfig) -> Channel:
        channel = Channel(location, config)
        self._channels.append(channel)
        channel.open()
        return channel
