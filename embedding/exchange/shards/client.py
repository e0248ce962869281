"""The node's side where rows lie on several shards (docs/concepts/server.md)."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from embedding.exchange.channel import Channel
from embedding.exchange.client import ParameterClient
from embedding.exchange.codec import acknowledged, encode_push
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.protocol import Ack, Push, Rows, Welcome
from embedding.exchange.shards.ownrows import ShardedRows
from embedding.exchange.shards.split import joined, places, split_push
from embedding.exchange.shards.stream import ShardStream
from embedding.exchange.wire import Message
from embedding.kernel.errors import ConfigError, ExchangeError, RefusedError, UnavailableError
from embedding.kernel.records import IntArray, ScorePairs, Table

logger = logging.getLogger(__name__)
T = TypeVar("T")

KEEP_S = 1.0
"""An idle node looks at its shards so often, so that one that was started again gets its pushes."""
CLOSE_S = 5.0
"""How long a goodbye waits for the last pushes to be in every shard's checkpoint."""
_TRIES = 3
_NONE: IntArray = np.empty(0, dtype=np.int64)


def connect(
    location: str,
    *,
    node: str,
    config: ExchangeConfig,
    config_digest: str = "",
    stop: threading.Event | None = None,
    life: str = "",
) -> ParameterClient:
    """A client that has greeted the server, of the kind that the server's topology needs."""
    client = ParameterClient(
        location, node=node, config=config, config_digest=config_digest, stop=stop, life=life
    )
    try:
        welcome = client.hello()
        if not welcome.shards:
            return client
    except BaseException:
        client.close()
        raise
    client.close()
    kind = ShardedClient
    if welcome.split == "columns":
        from embedding.exchange.shards.columns import ColumnsClient  # brings the kernels with it

        kind = ColumnsClient
    sharded = kind(
        location, node=node, config=config, config_digest=config_digest, stop=stop, life=life
    )
    try:
        sharded.hello()
    except BaseException:
        sharded.close()
        raise
    return sharded


class ShardedClient(ParameterClient):
    """A ParameterClient whose rows go to and come from all shards at the same time.

    A push is sent to every shard and then, without its rows, to the primary, which says to all
    shards when it is to be applied. A pull asks the primary first, which lets it through as the
    policy says and names the position of its log from which on the shards may be read.
    """

    def __init__(
        self,
        location: str,
        *,
        node: str,
        config: ExchangeConfig,
        config_digest: str = "",
        stop: threading.Event | None = None,
        life: str = "",
    ) -> None:
        super().__init__(
            location, node=node, config=config, config_digest=config_digest, stop=stop, life=life
        )
        self.rows: ShardedRows = ShardedRows(config, self.feedback)
        self._shards: list[ShardStream] = []
        self._pool: ThreadPoolExecutor | None = None
        self._closed = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="shard-keeper", daemon=True)

    def pull(
        self,
        vectors: IntArray,
        contexts: IntArray,
        *,
        clock: int,
        score: Sequence[ScorePairs] = (),
        grams: IntArray | None = None,
    ) -> Rows:
        """See ParameterClient.pull."""
        named = zip(Table, (vectors, contexts, grams), strict=True)
        asked = {table: ids for table, ids in named if ids is not None}
        deadline = time.monotonic() + self.config.pull_timeout_s
        rows = super().pull(_NONE, _NONE, clock=clock, score=score)
        for attempt in itertools.count():
            found = self._gather(rows, asked, patient=attempt < _TRIES)
            if found is not None:
                return found
            if time.monotonic() > deadline:
                raise UnavailableError(
                    f"pull at clock {clock}: the shards were not told of what the primary had "
                    f"applied for {self.config.pull_timeout_s:.0f} s."
                )
            self._held_back()
            # A restarted primary counts anew; what was scored before is scored.
            nll, waited = rows.nll, rows.waited_s
            rows = replace(super().pull(_NONE, _NONE, clock=clock), nll=nll, waited_s=waited)
        raise AssertionError  # never reached

    def durable(self) -> int:
        """The last push of this node that is in a checkpoint of every shard and of the primary."""
        with self._stream_lock:
            self._tend()
            return min([super().durable(), *(shard.durable for shard in self._shards)])

    def close(self) -> None:
        """Say goodbye, once the last pushes are in a checkpoint or `CLOSE_S` have passed."""
        self._closed.set()
        if self._shards and len(self.log):
            self._settle()
        super().close()
        with self._stream_lock:
            for shard in self._shards:
                shard.close()
            self._shards = []
            if self._pool is not None:
                self._pool.shutdown()
                self._pool = None
        if self._keeper.is_alive():
            self._keeper.join(timeout=5)

    def _resend(self, channel: Channel, welcome: Welcome) -> None:
        """See ParameterClient; what the primary hears of, every shard has."""
        self._bring(welcome)
        super()._resend(channel, welcome)

    def _bring(self, welcome: Welcome) -> None:
        """The shards get first what they lack: this node may die before the next step."""
        found = [reached(shard, self.location) for shard in welcome.shards]
        if [shard.location for shard in self._shards] != found:
            self._attach(found)
        if self._unsafe:
            self._tend()

    def _attach(self, locations: Sequence[str]) -> None:
        if not locations:
            raise ConfigError(f"server {self.location}: it has no shards any more.")
        for shard in self._shards:
            shard.close()
        parts = self.rows.attach(len(locations))
        self._shards = [
            ShardStream(
                location,
                node=self.node,
                config=self.config,
                unconfirmed=partial(self._parts, index, len(locations)),
                held=self._held,
                rows=rows,
                messages=self._messages,
                stop=self._stop,
            )
            for index, (location, rows) in enumerate(zip(locations, parts, strict=True))
        ]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(len(locations), thread_name_prefix="shard")
            self._keeper.start()

    def _parts(self, index: int, count: int, sequence: int) -> list[Push]:
        """One shard's parts of the pushes after `sequence`."""
        return [self._split(push, count)[index] for push in self.log.since(sequence)]

    @property
    def _unsafe(self) -> bool:
        """Whether anything is here that a shard which is started again may lack."""
        return len(self.log) > 0

    def _held(self) -> tuple[int, int]:
        """The first push that is still here or will be made, and the last that was made."""
        return self.log.forgotten + 1, self.log.forgotten + len(self.log)

    def _messages(self, part: Push) -> list[Message]:
        """How a shard's part of a push is sent."""
        return [encode_push(part)]

    def _split(self, push: Push, count: int) -> list[Push]:
        """What each shard gets of a push."""
        return split_push(push, count)

    def _send(self, push: Push) -> Ack:
        """Rows to the shards, all at once; then what was read to the primary, which orders."""
        self._stream()  # the first greeting tells where the shards are
        ack = self._relayed(push)
        if ack is not None:
            return ack
        parts = self._split(push, len(self._shards))
        self._each(
            [
                partial(self._push_part, shard, part)
                for shard, part in zip(self._shards, parts, strict=True)
            ]
        )
        return acknowledged(self._stream().request(encode_push(self._stripped(push))))

    def _push_part(self, shard: ShardStream, part: Push) -> None:
        shard.push(part)

    def _stripped(self, push: Push) -> Push:
        return replace(push, deltas=(), packed=(), minibatches=None, keeps=False)

    def _taken(self, ack: Ack) -> None:
        durable = min([ack.durable, *(shard.durable for shard in self._shards)])
        super()._taken(replace(ack, durable=durable))

    def _push(self, push: Push) -> Ack:
        try:
            return super()._push(push)
        except RefusedError:
            self.rows.refused()
            raise

    def _held_back(self) -> None:
        """A pull waits; meanwhile a shard may have been started again and lack this node's rows."""
        with self._stream_lock:
            self._tend()

    def _gather(self, rows: Rows, asked: Mapping[Table, IntArray], *, patient: bool) -> Rows | None:
        """The rows from all shards; None when the primary was restarted meanwhile.

        patient  None also when some shards alone have applied a push of this node, so that the
                 primary is asked anew
        """
        with self._stream_lock:
            if rows.at is None:
                raise RefusedError("pull: the server did not say what its shards have to hold.")
            where = {table: places(ids, len(self._shards)) for table, ids in asked.items()}
            parts = [
                {table: asked[table][found[index]] for table, found in where.items()}
                for index in range(len(self._shards))
            ]
            header = {"op": "pull", "at": list(rows.at), "rows": self.config.rows}
            answers = self._each(
                [
                    partial(shard.pull, header, part)
                    for shard, part in zip(self._shards, parts, strict=True)
                ]
            )
            # One after the other: what compression keeps back is one store.
            read = [
                shard.rows.read(answer, part)
                for shard, answer, part in zip(self._shards, answers, parts, strict=True)
            ]
        got = [each for each in read if each is not None]
        sequences = {each.sequence for each in got}
        if len(got) < len(read) or (patient and len(sequences) > 1):
            return None
        tables = [each.by_table() for each in got]
        found = {table: joined(at, [each[table] for each in tables]) for table, at in where.items()}
        return replace(
            rows,
            vectors=found[Table.IN],
            contexts=found[Table.OUT],
            grams=found.get(Table.SUB),
            sequence=min(sequences),
        )

    def _each(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Run one call for each shard at the same time; raises the first error once all ended."""
        if self._pool is None:
            raise UnavailableError(f"server {self.location}: the client was closed.")
        futures = [self._pool.submit(call) for call in calls]
        for future in futures:
            future.exception()
        return [future.result() for future in futures]

    def _tend(self) -> None:
        """Look at every shard; one that was started again gets what it lost."""
        self._each([shard.confirm for shard in self._shards])

    def _look(self) -> None:
        """As `durable`, but what is away now is left alone."""
        self._each([partial(shard.confirm, patient=False) for shard in self._shards])
        if self._channel is not None:
            self._taken(acknowledged(self._channel.request(Message({"op": "confirm"}))))

    def _keep(self) -> None:
        while not self._closed.wait(KEEP_S):
            if not self._stream_lock.acquire(blocking=False):
                continue
            try:
                if not self._closed.is_set() and self._unsafe:
                    self._look()
            except ExchangeError as error:
                logger.debug("node %s: %s", self.node, error)  # who pulls or pushes hears of it
            finally:
                self._stream_lock.release()

    def _settle(self) -> None:
        """What this node pushed is lost if it dies with a shard: wait until both are safe."""
        deadline = time.monotonic() + CLOSE_S
        control = Channel(self.location, self.config)
        try:
            with self._stream_lock:
                self._look()
                if len(self.log):
                    control.action("checkpoint", {"wait": False}, CLOSE_S)
                while len(self.log) and time.monotonic() < deadline:
                    time.sleep(0.02)
                    self._look()
        except ExchangeError as error:
            logger.warning("node %s: its last pushes may be in no checkpoint: %s", self.node, error)
        finally:
            control.close()


def reached(shard: str, server: str) -> str:
    """Where a node reaches a shard: one that listens on every address, at the server's host."""
    scheme, _, place = shard.partition("://")
    host, _, port = place.rpartition(":")
    if host not in ("0.0.0.0", "[::]"):  # noqa: S104 - looked for, not bound
        return shard
    return f"{scheme}://{server.partition('://')[2].rpartition(':')[0]}:{port}"
