"""Rows in the server's own tables."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import PullRequest
from embedding.kernel.devices import DeviceArray
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import IntArray, ScorePairs, Table
from embedding.server.config import SyncConfig
from embedding.server.parts import Content, Erasure, Saved
from embedding.server.policies.traits import POLICIES
from embedding.server.rows.composing import GramComposer
from embedding.server.rows.devices import pick_device
from embedding.server.rows.tables import Optimizer, Tables, TablesCopy
from embedding.server.rowstore.interface import ReadRows, RowSetup, RowStore, Scorable
from embedding.server.validation import check_buckets, check_score
from embedding.server.words.vocabulary import Admission

logger = logging.getLogger(__name__)


def shares(sync: SyncConfig) -> bool:
    """Whether nodes write to the tables themselves."""
    return POLICIES.traits(sync.policy).needs_shared_memory


class LocalRows(RowStore):
    """See RowStore."""

    local = nodes_hold_rows = True

    def __init__(self, setup: RowSetup) -> None:
        config, shape, shared = setup.config, setup.shape, shares(setup.sync)
        device = pick_device(config.device, shared=shared)
        self.tables = Tables(
            shape.dim,
            device=device,
            capacity=config.max_words if shared else config.initial_rows,
            seed=shape.seed,
            optimizer=Optimizer(config.optimizer, config.adagrad_rate),
            shared=partial(POLICIES.get(setup.sync.policy).shared_rows, device),
            buckets=shape.buckets,
        )
        self._vocabulary, self._lock = setup.vocabulary, setup.lock
        names = self._vocabulary.names
        self.composer = GramComposer(self.tables, names, buckets=shape.buckets, biases=shape.biases)
        self._max_words = config.max_words
        self.full: str | None = None

    def check(self, sync: SyncConfig, before: SyncConfig) -> None:
        if shares(sync) is not shares(before):
            raise RefusedError(
                f"configure: from {before.policy} to {sync.policy}: tables lie in memory that "
                "nodes share from the start or never; start the server with that policy."
            )

    def slots(self, table: Table, ids: IntArray, what: str) -> IntArray:
        """See RowStore; the slot of an n-gram is its bucket."""
        if table is Table.SUB:
            return check_buckets(ids, self.tables.buckets, what)
        return self._vocabulary.slots(ids, what)

    def read(self, request: PullRequest) -> ReadRows:
        slots = {table: self.slots(table, ids, "pull") for table, ids in request.ids.items()}
        for pairs in request.score:
            check_score(pairs, self._vocabulary)
        rows = {table: self.tables.gather(table, where) for table, where in slots.items()}
        return ReadRows(rows, partial(self._to_score, request.score))

    def _to_score(self, score: Sequence[ScorePairs]) -> Iterator[Scorable]:
        """Rows of one source at a time are held. They are as they are now: the node that asks
        waits for its answer, and learns nothing."""
        for pairs in score:
            with self._lock:
                slots = check_score(pairs, self._vocabulary)
                centres, contexts, negatives = slots
                columns = self.composer.columns
                flat = columns(self.tables.gather(Table.OUT, negatives.reshape(-1)))
                vectors = (
                    self.composer.centres(pairs.centres, centres),
                    columns(self.tables.gather(Table.OUT, contexts)),
                    flat.reshape(*negatives.shape, flat.shape[-1]),
                )
            yield pairs, slots, vectors

    def add(self, delta: RowDelta, scale: float | None, writer: str | None) -> int:
        slots = self.slots(delta.table, delta.ids, "push")
        return self.tables.change(delta.table, slots, delta.values, scale, writer)

    def make_room(self, words: int) -> int:
        if self.tables.memory is not None:  # shared tables do not grow
            return min(words, self._max_words - len(self._vocabulary))
        rows = self._vocabulary.rows
        try:
            self.tables.ensure(min(rows + words, self._max_words))
        except (MemoryError, RuntimeError) as error:  # what torch raises is a RuntimeError
            if self.full is None:
                logger.exception("there is no memory for rows of more words")
            self.full = (
                f"no new words: there is no memory for more than the {self.tables.capacity} rows "
                f"that there are ({type(error).__name__}); learning goes on without them."
            )
            return self.tables.capacity - rows
        self.full = None
        return words

    def evict(self, ids: IntArray) -> None:
        slots = self._vocabulary.slots(ids, "evict")
        self.tables.replaced(slots[slots >= 0])
        self.composer.forget(ids)

    def admit(self, admission: Admission) -> None:
        self.tables.ensure(self._vocabulary.rows)
        self.tables.start(admission.slots, admission.ids)

    def live(self, table: Table, ids: IntArray) -> DeviceArray:
        with self._lock:
            slots = self._vocabulary.slots(ids, "evaluate")
            if table is Table.IN:
                return self.composer.centres(ids, slots)
            return self.composer.columns(self.tables.gather(Table.OUT, slots))

    def copy(self) -> TablesCopy:
        return self.tables.copy(self._vocabulary.rows, accumulators=False)

    def own_copy(self) -> TablesCopy:
        return self.tables.checkpoint_copy(self._vocabulary.rows)

    def save(self) -> Saved:
        """See Part; the rows themselves are `own_copy`."""
        return Saved({"shards": 1, "split": "rows"})

    def load(self, content: Content) -> None:
        """See Part; the vocabulary is there already."""
        words = content.tables["words"]
        slots = self._vocabulary.slots(words["id"].to_numpy(), "checkpoint")
        self.tables.ensure(self._vocabulary.rows)
        self.tables.restore_from(content.arrays, slots, words["slot"].to_numpy())

    def forget(self, erasure: Erasure) -> None:
        self.tables.clear(self._vocabulary.slots(erasure.ids, "forget"))
