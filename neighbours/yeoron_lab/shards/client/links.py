"""A client's streams to all shards of a server, asked at the same time and watched while idle."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from embedding.exchange.codec import to_message
from embedding.exchange.peer import ask
from embedding.exchange.protocol import Push, Welcome
from embedding.exchange.rows import KeptRows
from embedding.exchange.session import RowLinks, Session
from embedding.exchange.wire import Message
from embedding.kernel.errors import ConfigError, ExchangeError, UnavailableError
from yeoron_lab.shards.client.stream import ShardStream

logger = logging.getLogger(__name__)
T = TypeVar("T")

KEEP_S = 1.0
"""An idle node looks at its shards so often, so that one that was started again gets its pushes."""
CLOSE_S = 5.0
"""How long a goodbye waits for the last pushes to be in every shard's checkpoint."""


class ShardLinks(RowLinks[Push]):
    """The streams to shards, a thread for each, and one that looks after them.

    The streams are used under the session's lock alone, whichever thread does.

    split    (push, shards) → the part of each shard
    keeping  (shards) → what is kept of the rows of each
    encode   how a part is sent
    send     sends a shard its part of a new push
    """

    def __init__(
        self,
        session: Session[Push],
        *,
        split: Callable[[Push, int], list[Push]],
        keeping: Callable[[int], Sequence[KeptRows]],
        encode: Callable[[Push], Message] = to_message,
        send: Callable[[ShardStream, Push], None] = ShardStream.push,
    ) -> None:
        self._session = session
        self._split, self._keeping = split, keeping
        self._encode, self._send = encode, send
        self._shards: list[ShardStream] = []
        self._pool: ThreadPoolExecutor | None = None
        self._closed = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="shard-keeper", daemon=True)

    def __len__(self) -> int:
        return len(self._shards)

    def __iter__(self) -> Iterator[ShardStream]:
        return iter(self._shards)

    def bring(self, welcome: Welcome) -> None:
        """The shards get what they lack before the server hears of it again.

        This client may die before the next step, and nobody else has those rows: a server that
        knew of a push which a shard lacks would wait for it for ever.
        """
        locations = [reached(shard, self._session.location) for shard in welcome.shards]
        if [shard.location for shard in self._shards] != locations:
            self._attach(locations)
        if len(self._session.log):
            self.tend()

    def each(self, call: Callable[..., T], *parts: Sequence[object]) -> list[T]:
        """Run call(shard, its part, …) for all shards at the same time, one part a shard.

        Raises the first error once all have ended.
        """
        if self._pool is None:
            raise UnavailableError(f"server {self._session.location}: the client was closed.")
        pairs = zip(self._shards, *parts, strict=True)
        futures = [self._pool.submit(call, *pair) for pair in pairs]
        for future in futures:
            future.exception()
        return [future.result() for future in futures]

    def spread(self, push: Push) -> None:
        self.each(self._send, self._split(push, len(self)))

    def rest(self, push: Push) -> Push:
        """What was read, without what it moved."""
        return replace(push, deltas=(), packed=(), minibatches=None, keeps=False)

    def tend(self) -> None:
        """Look at every shard; one that was started again gets what it lost."""
        with self._session.lock:
            self.each(ShardStream.confirm)

    def safe(self, durable: int) -> int:
        """The last that is in a checkpoint of the server, which says `durable`, and every shard."""
        return min([durable, *(shard.durable for shard in self._shards)])

    def wait_durable(self) -> None:
        """What this client pushed is lost if it dies with a shard: wait until both are safe."""
        self._closed.set()
        if not self._shards or not len(self._session.log):
            return
        deadline = time.monotonic() + CLOSE_S
        session = self._session
        try:
            with session.lock:
                self._look()
                if len(self._session.log):
                    ask(session.location, session.config, "checkpoint", {"wait": False}, CLOSE_S)
                while len(self._session.log) and time.monotonic() < deadline:
                    time.sleep(0.02)
                    self._look()
        except ExchangeError as error:
            logger.warning(
                "node %s: its last pushes may be in no checkpoint: %s", session.node, error
            )

    def close(self) -> None:
        """Close all streams and end the threads."""
        self._closed.set()
        with self._session.lock:
            for shard in self._shards:
                shard.peer.close()
            self._shards = []
            if self._pool is not None:
                self._pool.shutdown()
                self._pool = None
        if self._keeper.is_alive():
            self._keeper.join(timeout=5)

    def _attach(self, locations: Sequence[str]) -> None:
        session = self._session
        if not locations:
            raise ConfigError(f"server {session.location}: it has no shards any more.")
        for shard in self._shards:
            shard.peer.close()

        def unconfirmed(shard: int, sequence: int) -> list[Push]:
            pushes = session.log.since(sequence)
            return [self._split(push, len(locations))[shard] for push in pushes]

        self._shards = [
            ShardStream(
                location,
                node=session.node,
                config=session.config,
                unconfirmed=partial(unconfirmed, index),
                held=lambda: session.log.held,
                kept=kept,
                encode=self._encode,
                stop=session.peer.stop,
            )
            for index, (location, kept) in enumerate(
                zip(locations, self._keeping(len(locations)), strict=True)
            )
        ]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(len(locations), thread_name_prefix="shard")
            self._keeper.start()

    def _look(self) -> None:
        """As `tend`, and the server is asked too, but what is away now is left alone."""
        self.each(partial(ShardStream.confirm, patient=False))
        confirm, peer = Message({"op": "confirm"}), self._session.peer
        if peer.is_open:
            self._session.taken(peer.request(confirm, patient=False))

    def _keep(self) -> None:
        # A shard that is started again begins at its checkpoint. What it lost is with the nodes,
        # and one that is idle or waits for a policy would bring it at its next push alone.
        while not self._closed.wait(KEEP_S):
            if not self._session.lock.acquire(blocking=False):
                continue
            try:
                if not self._closed.is_set() and len(self._session.log):
                    self._look()
            except ExchangeError as error:
                # Who pulls or pushes hears of it.
                logger.debug("node %s: %s", self._session.node, error)
            finally:
                self._session.lock.release()


def reached(shard: str, server: str) -> str:
    """Where a node reaches a shard: one that listens on every address, at the server's host."""
    scheme, _, place = shard.partition("://")
    host, _, port = place.rpartition(":")
    if host not in ("0.0.0.0", "[::]"):  # noqa: S104 - looked for, not bound
        return shard
    return f"{scheme}://{server.partition('://')[2].rpartition(':')[0]}:{port}"
