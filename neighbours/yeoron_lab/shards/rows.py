"""Rows on shards (docs/adr/0007-shards.md)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import PullRequest
from embedding.kernel.config import part_of
from embedding.kernel.devices import DeviceArray
from embedding.kernel.errors import ConfigError, RefusedError, UnavailableError
from embedding.kernel.records import FloatArray, IntArray, ScorePairs, Table
from embedding.server.compatibility import SHARDS
from embedding.server.config import SyncConfig
from embedding.server.parts import Content, Erasure, Moment, Saved
from embedding.server.policies.base import Apply, Instruction
from embedding.server.rows.composing import GramBags, GramComposer, mean
from embedding.server.rows.devices import beside, pick_device
from embedding.server.rows.tables import Optimizer, Tables, TablesCopy
from embedding.server.rowstore import (
    LogPosition,
    PairSlots,
    ReadRows,
    RowSetup,
    RowStore,
    Scorable,
    Vectors,
)
from embedding.server.words.vocabulary import Admission
from yeoron_lab.settings import GroupSettings, ShardSettings
from yeoron_lab.shards.client.columns import columns
from yeoron_lab.shards.client.split import Layout
from yeoron_lab.shards.link import LateError, LateShardsError, PrimaryLinks
from yeoron_lab.shards.log import Change, CopyRows, ShardLog

T = TypeVar("T")

_PIECE_BYTES = 8 * 1024 * 1024
_COPY_S = 120.0
_CATCH_UP_S = 10.0
_KEEP_S = 60.0
_PAUSE_S = 0.05


class ShardedRows(RowStore):
    """See RowStore. Of rows there is only the log that orders their changes.

    log    what shards carry out
    links  to the shards; there are none before `links.start`
    """

    local = False
    full: str | None = None

    def __init__(self, setup: RowSetup) -> None:
        config, shape = setup.config, setup.shape
        settings = part_of(config, ShardSettings)
        shards, split = settings.shards, settings.split
        if 0 < shape.buckets < shards:
            raise ConfigError(
                f"buckets {shape.buckets} with {shards} shards: each holds some of the rows "
                f"of n-grams; at least {shards} are needed."
            )
        if part_of(config, GroupSettings).group.leader is not None:
            raise ConfigError(
                f"group.leader with {shards} shards and split {split}: groups tell "
                "each other how far the rows of one process have moved; 1 shard with split rows is "
                "accepted."
            )
        if split == "columns":
            columns().check_server(config, shape)
        self._config, self._shards = config, shards
        self.layout = {"shards": shards, "split": split}
        self.nodes_hold_rows = split == "rows"
        self.check_policy(setup.sync, setup.sync)
        self.tables = Tables(
            shape.dim,
            device=pick_device(config.device),
            capacity=1,
            seed=shape.seed,
            optimizer=Optimizer(config.optimizer, config.adagrad_rate),
        )
        self._vocabulary, self._lock = setup.vocabulary, setup.lock
        self.composer = GramComposer(
            self.tables,
            self._vocabulary.names,
            buckets=shape.buckets,
            biases=shape.biases,
        )
        self.log = ShardLog(setup.epoch, config.max_message_bytes)
        self.links = PrimaryLinks(self.log, Layout(shards, split, shape.dim))
        self._copies = 0

    def check_policy(self, sync: SyncConfig, before: SyncConfig) -> None:
        if self.nodes_hold_rows:
            SHARDS.check(sync.policy, f"{self._shards} shards", ", or 1 shard")
        else:
            columns().check_policy(sync)

    @property
    def where(self) -> str:
        return f"{self._shards} shards" + ("" if self.nodes_hold_rows else " of columns")

    def slots(self, table: Table, ids: IntArray, what: str) -> IntArray:
        raise RefusedError(f"{what}: the rows lie on shards; the greeting tells where they are.")

    def read(self, request: PullRequest) -> ReadRows:
        for table, ids in request.ids.items():
            if len(ids) or table is Table.SUB:
                self.slots(table, ids, "pull")
        none = dict.fromkeys((Table.IN, Table.OUT), self.tables.device.zeros(0, 0))
        score = request.score
        if not score:
            return ReadRows(none, lambda: iter(()), self.position())
        slots = [self._vocabulary.score_slots(pairs) for pairs in score]
        # The n-grams of all centres, each once.
        ids = np.concatenate([pairs.centres for pairs in score])
        centres, first = np.unique(ids, return_index=True)
        bags = self.composer.bags(centres, np.concatenate([each[0] for each in slots])[first])
        at = self.position()
        return ReadRows(none, partial(self._to_score, score, slots, bags, at), at)

    def _to_score(
        self,
        score: Sequence[ScorePairs],
        slots: Sequence[PairSlots],
        bags: GramBags | None,
        at: LogPosition,
    ) -> Iterator[Scorable] | list[str]:
        """The rows of all pairs, each once, as they are when the pull is let through.

        They may hold later pushes of other nodes, but none of the node that pulls: it waits for
        its answer.
        """
        centres = np.unique(np.concatenate([pairs.centres for pairs in score]))
        parts = [part.reshape(-1) for pairs in score for part in (pairs.contexts, pairs.negatives)]
        others = np.unique(np.concatenate(parts))
        try:
            inputs = self._vectors(Table.IN, centres, bags, at)
            outputs = self._vectors(Table.OUT, others, None, at)
        except LateShardsError as error:
            return error.shards

        def vectors(pairs: ScorePairs) -> Vectors:
            return (
                _picked(inputs, centres, pairs.centres),
                _picked(outputs, others, pairs.contexts),
                _picked(outputs, others, pairs.negatives),
            )

        return ((pairs, each, vectors(pairs)) for pairs, each in zip(score, slots, strict=True))

    def _vectors(
        self, table: Table, ids: IntArray, bags: GramBags | None, at: LogPosition
    ) -> DeviceArray:
        """Vectors [n, d] of words at `at` or later; LateShardsError.

        bags  their n-grams, where a vector is a mean with those
        """
        rows = self.tables.device.place(self.links.rows(table, ids, at))
        if bags is not None:
            rows = mean(rows, self.tables.device.place(self.links.sums(bags, at)), bags)
        return self.composer.columns(rows)

    def released(self, instructions: Sequence[Instruction]) -> None:
        """See RowStore: the log says it to the shards."""
        for instruction in instructions:
            tickets = tuple((ticket.node, ticket.sequence) for ticket in instruction.tickets)
            change = Change(tickets, 0.0)
            if isinstance(instruction, Apply):
                change = Change(tickets, instruction.scale, instruction.combine is not None)
            self.log.append(change)

    def add(self, delta: RowDelta, scale: float | None, writer: str | None) -> int:
        return len(self.slots(delta.table, delta.ids, "push"))

    def make_room(self, words: int) -> int:
        return words

    def evict(self, ids: IntArray) -> None:
        self.composer.forget(ids)

    def admit(self, admission: Admission) -> None:
        first = self._vocabulary.next_id - len(admission.ids)
        self.log.admit(first, len(admission.ids), admission.evicted)

    def live(self, table: Table, ids: IntArray) -> DeviceArray:
        """See RowStore: with all that is in the log now."""
        bags = None
        with self._lock:
            at = self.position()
            if table is Table.IN:
                bags = self.composer.bags(ids, self._vocabulary.slots(ids, "evaluate"))
        deadline = time.monotonic() + _CATCH_UP_S
        while True:
            try:
                return self._vectors(table, ids, bags, at)
            except LateShardsError as error:
                if time.monotonic() > deadline:
                    raise UnavailableError(
                        f"{', '.join(error.shards)} did not answer within {_CATCH_UP_S:.0f} s; "
                        "ask again."
                    ) from error
            time.sleep(_PAUSE_S)

    def copy(self) -> RemoteCopy:
        self._copies += 1
        position = self.log.append(CopyRows(self._copies))
        slots = np.arange(self._vocabulary.rows, dtype=np.int64)
        at, ids = (self.log.number, position), self._vocabulary.slot_map.ids(slots)
        return RemoteCopy(self.links, self._copies, at, ids, self.composer.buckets)

    def own_copy(self) -> TablesCopy:
        return self.tables.checkpoint_copy(0)

    def keep_first(self) -> None:
        """See RowStore.

        Invariant: on disk no shard is behind the primary's checkpoint. Otherwise, if all died at
        once, a push that the primary counts as applied would be missing from a shard's rows, and
        nobody would send it again. A shard that is ahead does no harm: it knows the numbers of the
        pushes that it has, and applies none of them twice.
        """
        position = self.log.position
        if not self.links.catch_up(_KEEP_S):
            raise UnavailableError(f"a shard was not up to date within {_KEEP_S:.0f} s")
        self.links.checkpoint(position)

    def save(self) -> Saved:
        return Saved({**self.layout, "log": self.log.to_json()})

    def load(self, content: Content) -> None:
        log = content.facts["log"]
        # What a change of a group moves nobody sends any more: the shards would wait for it.
        if content.facts.get("groups") or any(True in entry[5:] for entry in log["entries"]):
            raise ConfigError(
                "checkpoint: it is of a leader of server groups whose rows lie on shards; end that "
                "training with Yeoron of the morning of 30 November 2026, or begin anew in an "
                "empty state_dir."
            )
        self.log.restore(log)

    def forget(self, erasure: Erasure) -> None:
        """See Part: out of the checkpoints of all shards, none of which runs."""
        from yeoron_lab.shards.recovery import erase_rows
        from yeoron_lab.shards.sharding import shard_specs

        dim, seed, buckets = self.tables.dim, self.tables.seed, self.composer.buckets
        for spec in (
            shard_specs(self._config, dim=dim, seed=seed, identity="", buckets=buckets)
            if len(erasure.ids)
            else ()
        ):
            erase_rows(spec, erasure.ids)

    def position(self) -> LogPosition:
        """From where on shards have all that was taken so far."""
        return self.log.number, self.log.position

    def locations(self) -> tuple[str, ...]:
        return self.links.locations

    def describe(self, at: Moment) -> dict[str, Any]:
        return {"shards": self.links.describe()}


def _picked(rows: DeviceArray, ids: IntArray, wanted: IntArray) -> DeviceArray:
    """Rows of wanted ids; those of `rows` are `ids`, int64 [n], increasing."""
    return rows[beside(np.searchsorted(ids, wanted), rows)]


@dataclass(frozen=True)
class RemoteCopy:
    """All rows at one position of the log, as the shards copied them.

    number   under which they did, at position `at`
    ids      int64 [n], id of each slot of the vocabulary then
    buckets  rows of n-grams
    """

    links: PrimaryLinks
    number: int
    at: LogPosition
    ids: IntArray
    buckets: int

    def finish(self, lock: AbstractContextManager[object]) -> float:
        """Wait until every shard has begun its copy; the lock is not needed."""
        for link in self.links.links:
            self._until(partial(link.copy_begun, self.number, self.at))
        return 0.0

    def pick(self, table: Table, slots: IntArray) -> FloatArray:
        """float32 [m, dim] of some slots; UnavailableError when a shard lost its copy."""
        return self._fetched(table, self.ids[slots])

    def rows(self, table: Table) -> FloatArray:
        """float32 [buckets, dim], all rows of n-grams; of words there are only those picked."""
        if table is not Table.SUB:
            raise RefusedError(f"table {table}: its rows are picked by slot.")
        return self._fetched(table, np.arange(self.buckets, dtype=np.int64))

    def _fetched(self, table: Table, ids: IntArray) -> FloatArray:
        layout = self.links.layout
        rows = np.empty((len(ids), layout.dim), dtype=np.float32)
        piece = max(1, _PIECE_BYTES // (4 * layout.dim))
        for link in self.links.links:
            columns = layout.columns(link.index)
            own = np.flatnonzero(layout.held(ids, link.index))
            for start in range(0, len(own), piece):
                part = own[start : start + piece]
                rows[part, columns] = self._until(
                    partial(link.copied, self.number, self.at, table, ids[part])
                )
        return rows

    def release(self) -> None:
        for link in self.links.links:
            link.forget(self.number)

    def _until(self, fetch: Callable[[], T]) -> T:
        """Fetch, again while a shard is away or behind."""
        deadline = time.monotonic() + _COPY_S
        while True:
            try:
                return fetch()
            except LateError:
                pass  # it has waited already
            except UnavailableError:
                time.sleep(0.2)
            except RefusedError as error:
                raise UnavailableError(str(error)) from error
            if time.monotonic() > deadline:
                raise UnavailableError(f"a shard did not copy its rows within {_COPY_S:.0f} s.")
