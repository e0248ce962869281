"""The primary of a server whose rows lie on shards (docs/adr/0007-shards.md).

Vocabulary, counts, clocks, windows and scores are here as in any server; of rows there is only the
log that orders their changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from embedding.exchange.protocol import Rows
from embedding.kernel.errors import RefusedError, UnavailableError
from embedding.kernel.records import FloatArray, IntArray, ScorePairs, Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.cutting.quality import Drawn, Scored
from embedding.server.policies import Apply, Instruction
from embedding.server.rows.composing import Bags, mean
from embedding.server.shards.link import ShardLinks
from embedding.server.shards.log import Change, CopyRows, ShardLog
from embedding.server.shards.sums import Key, LoggedSums
from embedding.server.shards.unsplit import (
    check_column_policy,
    check_columns,
    check_dealt,
    check_pushing,
)
from embedding.server.state import ServerState
from embedding.server.words.digests import WordDigests
from embedding.server.words.vocabulary import Admission

_PIECE_BYTES = 8 * 1024 * 1024
_COPY_S = 120.0
_SETTLE_S = 10.0
_KEEP_S = 60.0
_PAUSE_S = 0.05
_EMPTY: FloatArray = np.empty((0, 0), dtype=np.float32)


class LeadingState(ServerState):
    """A server's state without rows. `links` is set before the first request."""

    leads = True
    links: ShardLinks

    def __init__(
        self,
        config: ServerConfig,
        sync: SyncConfig,
        *,
        dim: int,
        seed: int,
        epoch: int | None = None,
        digests: WordDigests | None = None,
        buckets: int = 0,
        biases: int = 0,
    ) -> None:
        check_dealt(buckets, config.shards)
        changes: dict[str, Any] = {"initial_rows": 1}
        if config.split == "rows":
            check_pushing(sync, config.shards)
        else:
            check_columns(config, sync, dim=dim, buckets=buckets, biases=biases)
            # No node has rows to infer vectors from, or to add contexts up by.
            changes |= {"young_mentions": 0, "usage": False}
        small = config.model_copy(update=changes)
        super().__init__(
            small,
            sync,
            dim=dim,
            seed=seed,
            epoch=epoch,
            digests=digests,
            buckets=buckets,
            biases=biases,
        )
        self.config = config
        self.log = ShardLog(self.epoch, config.max_message_bytes)
        self._changes = LoggedSums(self.log)
        self._copies = 0

    @property
    def held_rows(self) -> int:
        """None: shards hold them."""
        return 0

    def pull(
        self,
        node: str,
        vectors: IntArray,
        contexts: IntArray,
        clock: int,
        score: Sequence[ScorePairs] = (),
        *,
        grams: IntArray | None = None,
        half: bool = False,
    ) -> Rows | list[str]:
        """From which position on the node may read the shards; or whom it waits for."""
        del half
        if len(vectors) or len(contexts) or grams is not None:
            raise RefusedError("pull: the rows lie on shards; the greeting tells where they are.")
        began = time.monotonic()
        with self.changed:
            clock, waiting_for = self._turn(node, clock, began)
            if waiting_for:
                return waiting_for
            waited = time.monotonic() - began
            drawn = [self.slots_to_score(pairs) for pairs in score]
            bags = self._bags(score, drawn) if score else None
            self._read_mark[node] = self.meters.pushes
            sequence = self.ledger.of(node).applied
            at = (self.log.number, self.log.position)
        nll: tuple[float | None, ...] = ()
        if score:
            held = self._fetched(score, bags, at)
            if isinstance(held, list):
                return held
            both = zip(score, drawn, strict=True)
            nll = tuple(self.scores.score(pairs, slots, held.of(pairs)) for pairs, slots in both)
        return Rows(clock, _EMPTY, _EMPTY, sequence, nll, waited, at=at)

    def execute(self, instructions: Sequence[Instruction], now: float) -> None:
        """Say to the shards what happens to the pushes, and count what was read."""
        for instruction in instructions:
            tickets = tuple((ticket.node, ticket.sequence) for ticket in instruction.tickets)
            change = Change(tickets, 0.0)
            if isinstance(instruction, Apply):
                change = Change(tickets, instruction.scale, instruction.average)
            self._changes.append(change)
        super().execute(instructions, now)

    def together(self, tickets: Key) -> AbstractContextManager[None]:
        """See HoldsRows."""
        return self._changes.together(tickets)

    def configure(self, sync: SyncConfig) -> None:
        """See ServerState.configure."""
        if self.config.split == "rows":
            check_pushing(sync, self.config.shards)
        else:
            check_column_policy(sync)
        super().configure(sync)

    def reading(self) -> AbstractContextManager[object]:
        """Nothing: the shards answer while nodes train."""
        return nullcontext()

    def live_rows(self, table: Table, ids: IntArray) -> torch.Tensor:
        """As HoldsRows.live_rows, with all that is in the log now."""
        bags = None
        with self.lock:
            at = (self.log.number, self.log.position)
            if table is Table.IN:
                bags = self.composer.bags(ids, self.vocabulary.slots(ids, "evaluate"))
        rows = self._on_device(_patiently(lambda: self.links.rows(table, ids, at)))
        if bags is not None:
            sums = _patiently(lambda: self.links.sums(bags, at))
            rows = mean(rows, self._on_device(sums), bags)
        return self.composer.columns(rows)

    def _on_device(self, rows: FloatArray) -> torch.Tensor:
        return torch.from_numpy(rows).to(self.tables.device)

    def copy_rows(self) -> RemoteCopy:
        """Begin a consistent copy of all rows (under the lock)."""
        self._copies += 1
        position = self.log.append(CopyRows(self._copies))
        slots = np.arange(self.vocabulary.rows, dtype=np.int64)
        at = (self.log.number, position)
        return RemoteCopy(
            self.links, self._copies, at, self.vocabulary.ids_at(slots), self.composer.buckets
        )

    def checkpoint_shards(self, *, wait: bool) -> None:
        """Have every shard write a checkpoint."""
        if wait:
            self.links.checkpoint()
        else:
            self.links.want_checkpoint()

    def settle(self) -> None:
        """See HoldsRows."""
        self.links.settle(_SETTLE_S)

    def keep_rows_first(self) -> None:
        """Have the shards write what this checkpoint builds on.

        So they are never behind the primary when everything starts anew, and a push that they are
        ahead by is not applied again.
        """
        position = self.log.position
        if not self.links.settle(_KEEP_S):
            raise UnavailableError(f"a shard was not up to date within {_KEEP_S:.0f} s")
        self.links.checkpoint(position)

    def shards(self) -> list[dict[str, Any]]:
        """Each shard, as the status shows it."""
        return self.links.describe()

    def locations(self) -> tuple[str, ...]:
        """Where nodes find the shards."""
        return self.links.locations

    def log_facts(self) -> dict[str, Any]:
        """What a checkpoint keeps of the log."""
        facts = {"shards": self.config.shards, "split": self.config.split}
        return {**facts, "log": self.log.to_json()}

    def log_at(self) -> tuple[int, int] | None:
        """See HoldsRows."""
        return self.log.number, self.log.position

    def log_merge(self, group: str, sequence: int) -> None:
        """See HoldsRows."""
        plain = self.config.optimizer != "sum"
        self._changes.append(Change(((group, sequence),), 1.0, plain=plain))

    def restore_log(self, facts: Mapping[str, Any]) -> None:
        """Go on from what a checkpoint kept."""
        self.log.restore(facts["log"])

    def make_room(self, words: int) -> int:
        """See HoldsRows: shards make it, and say so when they cannot."""
        return words

    def _place(self, admission: Admission) -> None:
        first = self.vocabulary.next_id - len(admission.ids)
        self.log.admit(first, len(admission.ids), admission.evicted)

    def _bags(self, score: Sequence[ScorePairs], drawn: Sequence[Drawn]) -> Bags | None:
        """The n-grams of all centres, each once (under the lock)."""
        ids = np.concatenate([pairs.centres for pairs in score])
        found, first = np.unique(ids, return_index=True)
        return self.composer.bags(found, np.concatenate([slots[0] for slots in drawn])[first])

    def _fetched(
        self, score: Sequence[ScorePairs], bags: Bags | None, at: tuple[int, int]
    ) -> FetchedRows | list[str]:
        """The rows of all pairs, each once, as they are when the pull is let through.

        Later than `at` at most by pushes of other nodes: the one that pulls waits for its answer.
        """
        centres = np.unique(np.concatenate([pairs.centres for pairs in score]))
        parts = [part.reshape(-1) for pairs in score for part in (pairs.contexts, pairs.negatives)]
        others = np.unique(np.concatenate(parts))
        rows_in = self.links.rows(Table.IN, centres, at)
        rows_out = self.links.rows(Table.OUT, others, at)
        sums = None if bags is None else self.links.sums(bags, at)
        if isinstance(rows_in, list) or isinstance(rows_out, list) or isinstance(sums, list):
            return sorted({*_names(rows_in), *_names(rows_out), *_names(sums)})
        columns, inputs = self.composer.columns, self._on_device(rows_in)
        if bags is not None and sums is not None:
            inputs = mean(inputs, self._on_device(sums), bags)
        return FetchedRows(centres, columns(inputs), others, columns(self._on_device(rows_out)))


@dataclass(frozen=True)
class FetchedRows:
    """Rows of words that are to be scored, each once.

    centres, others   int64 [n], [m], increasing ids
    inputs, outputs   float32 [n, d], [m, d] on the server's device
    """

    centres: IntArray
    inputs: torch.Tensor
    others: IntArray
    outputs: torch.Tensor

    def of(self, pairs: ScorePairs) -> Scored:
        """Vectors of a source's centres, contexts and negatives."""
        return (
            self._picked(self.inputs, self.centres, pairs.centres),
            self._picked(self.outputs, self.others, pairs.contexts),
            self._picked(self.outputs, self.others, pairs.negatives),
        )

    @staticmethod
    def _picked(rows: torch.Tensor, ids: IntArray, wanted: IntArray) -> torch.Tensor:
        return rows[torch.from_numpy(np.searchsorted(ids, wanted)).to(rows.device)]


class RemoteCopy:
    """All rows at one position of the log, as the shards copied them.

    ids      int64 [n], id of each slot of the vocabulary then
    buckets  rows of n-grams
    """

    def __init__(
        self, links: ShardLinks, number: int, at: tuple[int, int], ids: IntArray, buckets: int
    ) -> None:
        self._links = links
        self._number = number
        self._at = at
        self._ids = ids
        self._buckets = buckets

    def finish(self, lock: AbstractContextManager[object]) -> float:
        """Wait until every shard has begun its copy; the lock is not needed."""
        del lock
        for link in self._links.links:
            self._until(lambda link=link: link.copied(self._number, self._at))
        return 0.0

    def pick(self, table: Table, slots: IntArray) -> FloatArray:
        """float32 [m, dim] of some slots; UnavailableError when a shard lost its copy."""
        return self._fetched(table, self._ids[slots])

    def rows(self, table: Table) -> FloatArray:
        """float32 [buckets, dim], all rows of n-grams; of words there are only those picked."""
        if table is not Table.SUB:
            raise RefusedError(f"table {table}: its rows are picked by slot.")
        return self._fetched(table, np.arange(self._buckets, dtype=np.int64))

    def _fetched(self, table: Table, ids: IntArray) -> FloatArray:
        layout = self._links.layout
        found = np.empty((len(ids), layout.dim), dtype=np.float32)
        piece = max(1, _PIECE_BYTES // (4 * layout.dim))
        for link in self._links.links:
            where, columns = (
                np.flatnonzero(layout.held(ids, link.index)),
                layout.columns(link.index),
            )
            for start in range(0, len(where), piece):
                part = where[start : start + piece]
                found[part, columns] = self._until(
                    lambda link=link, part=part: link.copied(
                        self._number, self._at, table, ids[part]
                    )
                )
        return found

    def release(self) -> None:
        """The copy is needed no longer."""
        for link in self._links.links:
            link.forget(self._number)

    def _until(self, fetch: Any) -> FloatArray:
        """Fetch, again while a shard is away or behind."""
        deadline = time.monotonic() + _COPY_S
        while True:
            try:
                found: FloatArray | None = fetch()
            except UnavailableError:
                found = None
                time.sleep(0.2)
            except RefusedError as error:
                raise UnavailableError(str(error)) from error
            if found is not None:
                return found
            if time.monotonic() > deadline:
                raise UnavailableError(f"a shard did not copy its rows within {_COPY_S:.0f} s.")


def _patiently(fetch: Callable[[], FloatArray | list[str]]) -> FloatArray:
    """What shards answer, once all do; UnavailableError when some do not."""
    deadline = time.monotonic() + _SETTLE_S
    while isinstance(found := fetch(), list):
        if time.monotonic() > deadline:
            raise UnavailableError(
                f"{', '.join(found)} did not answer within {_SETTLE_S:.0f} s; ask again."
            )
        time.sleep(_PAUSE_S)
    return found


def _names(rows: FloatArray | list[str] | None) -> list[str]:
    return rows if isinstance(rows, list) else []
