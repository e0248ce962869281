"""Server groups with shards without a network, a process or a clock: real clients, real sessions.

`Network` stands for Flight: a channel to an address talks to a session of whatever is there now.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.wire import Message, decode, encode
from embedding.kernel.errors import UnavailableError
from embedding.server.config import GroupConfig, ServerConfig, SyncConfig
from embedding.server.figures.meters import Parts
from embedding.server.flight.shell import NodeSession, _answer
from embedding.server.parts import Content
from embedding.server.recovery.restoring import assemble, collect, restore
from embedding.server.rowstore import RowShape
from embedding.server.state import ServerState
from yeoron_lab.groups.following import following_shard
from yeoron_lab.groups.leader import Leader, following_config
from yeoron_lab.groups.leading import LedGroups
from yeoron_lab.groups.link import GroupLink
from yeoron_lab.groups.replica import LocalReplica
from yeoron_lab.groups.shardedreplica import ShardedReplica
from yeoron_lab.shards import recovery as shardrecovery
from yeoron_lab.shards.service import ShardSession
from yeoron_lab.shards.sharding import shard_specs
from yeoron_lab.shards.spec import ShardSpec
from yeoron_lab.shards.state import ShardState

DIM = 2
IMPATIENT = ExchangeConfig(
    rows="float32",
    compression="none",
    connect_timeout_s=0.02,
    max_backoff_s=0.001,
    max_message_bytes=1 << 16,
).model_copy(update={"backoff_s": 0.001, "max_unconfirmed": 10_000})
PLACES = ("embedding.exchange.peer", "embedding.exchange.channel")


class Network:
    """What is at each address; `faults` are used up by requests to the leading group."""

    def __init__(self) -> None:
        self.there: dict[str, ServerState | ShardState] = {}
        self.faults: list[str] = []
        self.before: Callable[[], None] = lambda: None

    def __enter__(self) -> Network:
        self._patches = [patch(f"{p}.Channel", self.channel) for p in PLACES]
        self._patches.append(patch("yeoron_lab.shards.state.SHARD_WAIT_S", 0.005))
        self._patches.append(patch("yeoron_lab.shards.client.links.KEEP_S", 1e6))
        self._patches.append(patch("yeoron_lab.groups.shardedreplica._REACH_S", 0.02))
        self._patches.append(patch("yeoron_lab.groups.leader.TRY_S", 0.02))
        for each in self._patches:
            each.start()
        return self

    def __exit__(self, *error: object) -> None:
        for each in self._patches:
            each.stop()

    def channel(self, location: str, config: ExchangeConfig) -> Line:
        del config
        return Line(self, location)


class Line:
    """A channel: real messages, a real session, faults by plan."""

    def __init__(self, network: Network, location: str) -> None:
        self.network = network
        self.location = location
        self.session: NodeSession | ShardSession | None = None

    def open(self) -> None: ...

    def action(self, name: str, body: object, timeout_s: float | None = None) -> None:
        """Nobody writes a checkpoint but the test."""

    def close(self) -> None: ...

    def request(self, message: Message, timeout_s: float | None = None) -> Message:
        network, state = self.network, self.network.there.get(self.location)
        if self.session is None and state is not None:
            self.session = (
                ShardSession(state) if isinstance(state, ShardState) else NodeSession(state)
            )
        if self.session is None or self.session.state is not state:
            raise UnavailableError(f"{self.location} is away.")
        if "at" in message.header:
            network.before()
        is_sharded = self.location.startswith("grpc://leader")
        fault = network.faults.pop(0) if network.faults and is_sharded else "ok"
        if fault == "request lost":
            raise UnavailableError("the request was lost.")
        sent, header = encode(message)
        chunk = SimpleNamespace(data=sent, app_metadata=pa.py_buffer(header))
        session = self.session
        answer = _answer(lambda: session.handle(chunk, 0, Parts()), state)
        if fault == "answer lost":
            raise UnavailableError("the answer was lost.")
        batch, header = encode(answer)
        found = decode(batch, pa.py_buffer(header))
        if found.header["status"] == "unavailable":
            raise UnavailableError(found.header["reason"])
        assert found.header["status"] in ("ok", "waiting"), found.header
        return found


class Server:
    """A parameter server on the network, with its shards; what it keeps is in `kept`."""

    def __init__(self, network: Network, name: str, shards: int, leader: str | None) -> None:
        self.network = network
        self.name = name
        self.shards = shards
        self.location = f"grpc://{name}:1"
        group = GroupConfig()
        if leader is not None:
            group = GroupConfig(leader=leader, name=name, rows="float32")
            group = group.model_copy(update={"curvature": 0.0})
        self.config = ServerConfig(
            min_count=1,
            half_life_tokens=None,
            device="cpu",
            shards=shards,
            group=group,
            max_message_bytes=1 << 16,
        ).model_copy(update={"initial_rows": 1})
        self.incarnations = 0
        self.kept: tuple[Content, list[Content]] | None = None
        self.link: GroupLink | None = None
        self.start()

    def start(self) -> None:
        """A new incarnation from what is kept."""
        self.incarnations += 1
        follows = self.config.group.leader is not None
        config = following_config(self.config) if follows else self.config
        seed = 2 if follows else 1
        if follows:
            self.network.faults = []
        leader = Leader(config) if follows else None
        self.state: Any = ServerState(
            config,
            SyncConfig(policy="asp"),
            RowShape(DIM, seed=seed),
            epoch=self.incarnations,
            upstream=leader,
        )
        self.state.ledger.keeps_checkpoints = True
        self.groups: LedGroups = self.state.parts["groups"]
        if self.kept is not None:
            restore(self.state, self.kept[0], "test")
        if self.shards > 1:
            specs = shard_specs(config, dim=DIM, seed=seed, identity="one")
            self.specs: list[ShardSpec] = specs
            held = None if self.kept is None else self.kept[1]
            for index in range(self.shards):
                self.start_shard(index, None if held is None else held[index])
            self.state.rows.links.connect(
                [self.at(index) for index in range(self.shards)], identity="one", config=IMPATIENT
            )
        self.network.there[self.location] = self.state
        if leader is not None:
            state, rows = self.state, self.state.rows
            replica = (
                ShardedReplica(rows, state.vocabulary, state.ledger, state.lock, 1 << 16)
                if self.shards > 1
                else LocalReplica(rows.tables, state.vocabulary, state.lock)
            )
            self.link = GroupLink(state, leader, replica)
            self.link.join()

    def at(self, index: int) -> str:
        return f"grpc://{self.name}-{index}:1"

    def start_shard(self, index: int, held: Content | None) -> None:
        spec = self.specs[index]
        state: ShardState
        if self.link is not None or self.config.group.leader is not None:
            state = following_shard(spec)
        else:
            self.incarnations += 1
            state = ShardState(spec, epoch=self.incarnations)
            state.inbox.ledger.keeps_checkpoints = True
            if held is not None:
                shardrecovery.restore(state, held, "test")
        self.network.there[self.at(index)] = state

    def shard(self, index: int) -> Any:
        return self.network.there[self.at(index)]

    def deliver(self) -> None:
        """Bring the log to every shard that is there."""
        if self.shards == 1:
            return
        for link in self.state.rows.links.links:
            try:
                channel = link._peer.open()
                while link._send(channel, 0.0):
                    pass
                link.away = False
            except UnavailableError:
                link.away = True
            finally:
                link._peer.close()

    def on_disk(self) -> list[Content]:
        """What the shards would write now."""
        found = []
        for index in range(self.shards if self.shards > 1 else 0):
            state = self.shard(index)
            with state.lock:
                facts, slots = shardrecovery.collect(state)
                copy = state.tables.copy(state.held.map.end, accumulators=False)
            copy.finish(state.lock)
            found.append(Content(facts, {**copy.arrays(), "ids": slots}, {}))
        return found

    def checkpoint(self) -> None:
        """All that is here, the shards' part first."""
        state = self.state
        with state.lock:
            collected = collect(state)
            copy = state.rows.own_copy()
        copy.finish(state.lock)
        self.deliver()
        shards = self.on_disk()
        for index, content in enumerate(shards):
            self.shard(index).inbox.ledger.persisted(content.facts["applied"])
        self.kept = (assemble(collected, copy), shards)
        state.ledger.persisted(collected.facts["applied"])

    def rows(self, table: Any, ids: np.ndarray) -> np.ndarray:
        state = self.state
        if self.shards > 1:
            self.deliver()
            return state.rows.links.rows(table, ids, state.rows.position())
        return state.tables.read(table, state.vocabulary.slots(ids, "test"))
