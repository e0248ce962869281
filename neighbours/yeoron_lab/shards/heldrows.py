"""Which rows a shard holds, and where they lie: words by slot, n-grams by bucket."""

from __future__ import annotations

import numpy as np

from embedding.exchange.protocol import Push
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import IntArray, Table
from embedding.server.rows.devices import pick_device
from embedding.server.rows.rowmap import RowMap
from embedding.server.rows.tables import Optimizer, Tables, TablesPart, bucket_rows
from yeoron_lab.shards.log import Admit
from yeoron_lab.shards.spec import ShardSpec


class HeldRows:
    """Tables and places of one shard. The shard's lock guards them.

    next_id  the first id that was not given yet; ids are given in order
    """

    def __init__(self, spec: ShardSpec) -> None:
        config = spec.server
        self.spec = spec
        self.tables = Tables(
            spec.columns.stop - spec.columns.start,
            device=pick_device(config.device),
            capacity=max(1, config.initial_rows // spec.count),
            seed=spec.seed,
            optimizer=Optimizer(config.optimizer, config.adagrad_rate),
            buckets=spec.buckets,
            part=TablesPart(spec.dim, spec.columns.start, spec.index, spec.count),
        )
        self.map = RowMap()
        self.next_id = 0

    @property
    def rows(self) -> int:
        """Rows that are used, of words and of n-grams."""
        return len(self.map) + self.tables.buckets

    @property
    def nbytes(self) -> int:
        return self.tables.nbytes + self.map.nbytes

    def admit(self, entry: Admit) -> None:
        """Carry an entry out.

        Rows start as a function of seed and id alone (`models/starting.py`).
        """
        spec = self.spec
        evicted = self.map.slots(entry.evicted[spec.layout.held(entry.evicted, spec.index)])
        gone = evicted[evicted >= 0]
        if len(gone):
            self.map.free(gone)
            self.tables.replaced(gone)
        first = max(entry.first, self.next_id)
        ids = np.arange(first, entry.first + entry.count, dtype=np.int64)
        self._give(ids[spec.layout.held(ids, spec.index)])
        self.next_id = max(self.next_id, entry.first + entry.count)

    def _give(self, ids: IntArray) -> None:
        """Rows for ids that have none; nothing is given while there is no memory for them."""
        slots = self.map.fresh(len(ids))
        if len(ids):
            self.tables.ensure(int(slots.max()) + 1)
            self.tables.start(slots, ids)
            self.map.put(slots, ids)

    def check_own(self, push: Push) -> None:
        """RefusedError when a row of a push is none of this shard's."""
        for delta in push.deltas:
            if delta.table is Table.SUB:
                self.gram_places(delta.ids, "push")
            else:
                self.own(delta.ids, "push")

    def places(self, table: Table, ids: IntArray, what: str) -> IntArray:
        return self.gram_places(ids, what) if table is Table.SUB else self.map.slots(ids)

    def gram_places(self, ids: IntArray, what: str) -> IntArray:
        """Rows int64 [n] of n-gram buckets: b lies on shard b mod `count`, at b div `count`.

        RefusedError for one that there is not, or of others.
        """
        spec = self.spec
        bucket_rows(ids, spec.buckets, what)
        if bool(np.any(ids % spec.count != spec.index)):
            raise RefusedError(
                f"{what}: an n-gram bucket that is not of shard {spec.index} of {spec.count}, "
                f"which holds those with bucket mod {spec.count} = {spec.index}."
            )
        rows: IntArray = ids // spec.count
        return rows

    def own(self, ids: IntArray, what: str) -> None:
        """RefusedError for ids of words that are not this shard's."""
        spec = self.spec
        if len(ids) and (int(ids.min()) < 0 or not spec.layout.held(ids, spec.index).all()):
            raise RefusedError(
                f"{what}: an id that is not of shard {spec.index} of {spec.count}, which holds "
                f"those with id mod {spec.count} = {spec.index}."
            )

    def slots(self, table: Table, ids: IntArray, what: str) -> IntArray:
        """Where rows lie, -1 for evicted ids; RefusedError for ids not given, or of others."""
        if table is Table.SUB:
            return self.gram_places(ids, what)
        self.own(ids, what)
        if len(ids) and int(ids.max()) >= self.next_id:
            raise RefusedError(
                f"{what}: an id outside 0 … {self.next_id - 1}, which are the ids given so far."
            )
        return self.map.slots(ids)
