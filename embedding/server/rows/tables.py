"""The tables of rows on their device, and the optimiser that changes them.

Rows are addressed by slot here; which word has which slot is the vocabulary's business. The slot
of an n-gram row is its bucket.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from embedding.kernel.devices import DeviceArray
from embedding.kernel.errors import ConfigError, RefusedError
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table
from embedding.models.starting import UniformDraws, first_vectors
from embedding.server.rows.devices import HostDevice, RowDevice, SharedRows

_STEP_BYTES = 4 * 1024 * 1024
_BREATH_S = 0.0002


class RowsCopy(Protocol):
    """All rows at one moment, wherever they lie; they are copied while training goes on.

    Copy on write, by row: whoever is about to change a row that was not copied yet copies it
    first; a background thread copies the rest in small steps. So training is held up by single
    steps only, not by the whole copy.
    """

    def finish(self, lock: AbstractContextManager[object]) -> float:
        """Complete the copy; the longest time in seconds for which `lock` was held."""

    def pick(self, table: Table, slots: IntArray) -> FloatArray:
        """float32 [n, dim] of some slots."""

    def rows(self, table: Table) -> FloatArray:
        """float32 [n, dim], a whole table."""

    def release(self) -> None:
        """The copy is needed no longer."""


class RowCopy:
    """One array [n, …] as it was when this was made. `save` and `step` need the server's lock.

    source  the array, on `device`
    """

    def __init__(self, source: Callable[[], DeviceArray], n: int, device: RowDevice) -> None:
        self._source, self._device = source, device
        self.n = n
        shape = (n, *source().shape[1:])
        self.rows: FloatArray = np.empty(shape, dtype=np.float32)
        self._done: npt.NDArray[np.bool_] = np.zeros(n, dtype=np.bool_)
        self._at = 0
        width = max(1, int(np.prod(shape[1:], dtype=np.int64)))
        self._stride = max(1, _STEP_BYTES // (4 * width))

    def save(self, slots: IntArray) -> None:
        if self._at >= self.n:
            return
        inside = slots[(slots >= self._at) & (slots < self.n)]
        fresh = inside[~self._done[inside]]
        if len(fresh):
            self.rows[fresh] = self._device.host(self._source()[self._device.place(fresh)])
            self._done[fresh] = True

    def step(self) -> bool:
        """Copy the next few rows; False when all are copied."""
        low, high = self._at, min(self._at + self._stride, self.n)
        part = self._device.host(self._source()[low:high])
        done = self._done[low:high]
        if done.any():
            self.rows[low:high][~done] = part[~done]
        else:
            self.rows[low:high] = part
        self._at = high
        return high < self.n

    def finish(self, lock: AbstractContextManager[object]) -> float:
        """Copy what is left, taking `lock` for each step; returns the longest step in seconds."""
        longest, more = 0.0, self.n > 0
        while more:
            with lock:
                began = time.perf_counter()
                more = self.step()
                longest = max(longest, time.perf_counter() - began)
            # Locks are not fair: without a breath the pushes that wait would starve.
            time.sleep(_BREATH_S)
        return longest


@dataclass(frozen=True)
class Optimizer:
    """How a delta changes a row.

    sum:     row += delta                                        (Downpour, Dean 2012)
    adagrad: A += mean(delta²); row += delta · min(1, rate / sqrt(A)), one accumulator a row
             (AdaGrad, Duchi 2011, kept by row)
    """

    name: Literal["sum", "adagrad"] = "sum"
    rate: float = 1.0


class Watcher:
    """Sees rows before they change."""

    def save(self, table: Table, slots: IntArray, writer: str | None) -> None:
        """These rows (slots, none negative) are about to change.

        writer  the node that has the change already; None: nobody has
        """
        raise NotImplementedError

    def replaced(self, slots: IntArray) -> None:
        """Words came or went: these slots of the words' tables have got other rows."""

    def lost(self, nodes: Collection[str]) -> None:
        """Pushes of these were dropped: what they added to rows that they keep is not here."""


WORD_TABLES = (Table.IN, Table.OUT)
_DRAWN = 1 << 15
"""First numbers that are drawn at a time: each takes some 24 bytes meanwhile."""
SHARED = (Table.OUT, Table.IN, Table.SUB)
"""Order in shared memory: word and n-gram vectors lie side by side, as the kernel wants them."""


@dataclass(frozen=True)
class TablesPart:
    """What of the rows is held.

    columns       of a whole row; first_column: the first that is held
    first_bucket, bucket_step  which buckets are held
    """

    columns: int
    first_column: int = 0
    first_bucket: int = 0
    bucket_step: int = 1


class Tables:
    """`in` and `out`, float32 [capacity, dim], growing by doubling; shared ones do not grow.

    buckets  rows of `sub`, all there from the start: 0, and then there is no such table
    shared   makes the tables where nodes write to them, too
    part     what is held where others hold the rest
    watchers  see rows before they change
    """

    def __init__(
        self,
        dim: int,
        *,
        device: RowDevice,
        capacity: int,
        seed: int,
        optimizer: Optimizer,
        shared: Callable[[Sequence[int], int], SharedRows | None] = lambda *_: None,
        buckets: int = 0,
        part: TablesPart | None = None,
    ) -> None:
        if dim < 1:
            raise ConfigError(f"dim {dim}: at least 1 is accepted.")
        self.dim = dim
        self.device = device
        self.seed = seed
        part = part or TablesPart(dim)
        self._whole, self._first = part.columns, part.first_column
        self.optimizer = optimizer
        self.capacity = capacity
        self._steps = device.steps(dim)
        grams = range(part.first_bucket, buckets, part.bucket_step)
        self.buckets = len(grams)
        kinds = tuple(Table) if grams else WORD_TABLES
        order = [table for table in SHARED if table in kinds]
        self.memory = memory = shared([self._size(table) for table in order], dim)
        self._rows = {
            table: device.zeros(self._size(table), dim) if memory is None else memory.table(at)
            for at, table in enumerate(order)
        }
        self._moved = {table: device.zeros(self._size(table)) for table in kinds}
        self._start_grams(grams)
        self.watchers: list[Watcher] = []

    @property
    def kinds(self) -> tuple[Table, ...]:
        return tuple(self._moved)

    @property
    def nbytes(self) -> int:
        return sum(4 * self._size(table) * (self.dim + 1) for table in self.kinds)

    def ensure(self, capacity: int) -> None:
        """Make room for `capacity` rows."""
        if capacity <= self.capacity:
            return
        if self.memory is not None:
            raise RefusedError(f"shared tables have room for {self.capacity} words (max_words).")
        grown = max(capacity, 2 * self.capacity)
        for held, shape in ((self._rows, (grown, self.dim)), (self._moved, (grown,))):
            for table in WORD_TABLES:
                fresh = self.device.zeros(*shape)
                fresh[: self.capacity] = held[table][: self.capacity]  # tried again it is longer
                held[table] = fresh
        self.capacity = grown

    def start(self, slots: IntArray, ids: IntArray) -> None:
        """Give new rows their first values (word2vec): `in` uniform in ±0.5/dim, `out` zero."""
        for table in WORD_TABLES:
            self._before_change(table, slots)
        piece = max(1, _DRAWN // self.dim)
        for at in range(0, len(ids), piece):
            where = self.device.place(slots[at : at + piece])
            stretch = slice(self._first, self._first + self.dim)
            fresh = first_vectors(ids[at : at + piece], self._whole, self.seed, stretch)
            self._rows[Table.IN][where] = self.device.place(fresh)
            self._rows[Table.OUT][where] = 0.0
            for table in WORD_TABLES:
                self._moved[table][where] = 0.0
        if self.memory is not None:
            self.device.wait()  # nodes train on them as soon as they hear of them
        self.replaced(slots)

    def replaced(self, slots: IntArray) -> None:
        """Words came or went: what was known of the rows in these slots is of others."""
        for watcher in self.watchers:
            watcher.replaced(slots)

    def lost(self, nodes: Collection[str]) -> None:
        """Pushes of these nodes were dropped."""
        for watcher in self.watchers:
            watcher.lost(nodes)

    def gather(self, table: Table, slots: IntArray) -> DeviceArray:
        """Rows [n, dim] on the device; a negative slot (an evicted word) gives a zero row."""
        return self._steps.gather(self._rows[table], self.device.place(slots))

    def add(
        self,
        table: Table,
        slots: IntArray,
        values: FloatArray | HalfArray,
        scale: float = 1.0,
        writer: str | None = None,
    ) -> None:
        """Apply a delta [n, dim] to distinct, non-negative slots; `writer` as in `change`."""
        # What the optimiser makes of a delta its node does not know.
        self._before_change(table, slots, writer if self.optimizer.name == "sum" else None)
        rows, where, delta = self._rows[table], self.device.place(slots), self.device.place(values)
        if self.optimizer.name == "adagrad":
            moved, rate = self._moved[table], self.optimizer.rate
            self._steps.adagrad(rows, moved, where, delta, scale, rate)
        else:
            self._steps.add(rows, where, delta, scale)

    def change(
        self,
        table: Table,
        slots: IntArray,
        values: FloatArray | HalfArray,
        scale: float | None,
        writer: str | None,
    ) -> int:
        """Add what a push moves rows by, all of it or nothing; how many rows there were.

        slots   -1 for evicted words, which are left out
        scale   None: past the optimiser
        writer  who has these changes already
        """
        gone = slots < 0
        if gone.any():
            slots, values = slots[~gone], values[~gone]
        if scale is None:
            self.put(table, slots, self.read(table, slots) + values)
        else:
            self.add(table, slots, values, scale, writer)
        return len(slots)

    def read(self, table: Table, slots: IntArray) -> FloatArray:
        """Rows [n, dim] as a numpy array of their own."""
        rows: FloatArray = self.device.host(self.gather(table, slots))
        return rows

    def copy(self, n: int, *, accumulators: bool) -> TablesCopy:
        """Begin a consistent copy of `n` words' rows, as they are now (under the lock).

        `TablesCopy.finish` completes it while the tables go on changing. `sub` is copied whole.
        """
        copy = TablesCopy(self, n, accumulators=accumulators)
        self.watchers.append(copy)
        return copy

    def checkpoint_copy(self, n: int) -> TablesCopy:
        """`copy` of all that `restore_from` needs: with accumulators, where there are such."""
        return self.copy(n, accumulators=self.optimizer.name == "adagrad")

    def put(self, table: Table, slots: IntArray, rows: FloatArray) -> None:
        """Set rows [n, dim] of distinct, non-negative slots; accumulators stay as they are."""
        self._before_change(table, slots)
        self._rows[table][self.device.place(slots)] = self.device.place(rows)

    def source(self, table: Table, *, accumulators: bool) -> DeviceArray:
        """The whole array of rows, or of the optimiser's accumulators."""
        return (self._moved if accumulators else self._rows)[table]

    def restore(
        self, table: Table, slots: IntArray, rows: FloatArray, moved: FloatArray | None = None
    ) -> None:
        """Set rows and accumulators, which without `moved` begin again."""
        where = self.device.place(slots)
        self._rows[table][where] = self.device.place(rows)
        self._moved[table][where] = 0.0 if moved is None else self.device.place(moved)

    def restore_from(
        self, arrays: Mapping[str, npt.NDArray[Any]], slots: IntArray, places: IntArray
    ) -> None:
        """Set what a checkpoint has (`TablesCopy.arrays`): n-grams' rows, and at `slots` words',
        which are at `places` of its arrays; both int64 [n].
        """
        for table in self.kinds:
            rows, moved = arrays[f"rows.{table}"], arrays.get(f"moved.{table}")
            if table is Table.SUB:
                slots = places = np.arange(len(rows))
            self.restore(table, slots, rows[places], None if moved is None else moved[places])

    def clear(self, slots: IntArray) -> None:
        for table in WORD_TABLES:
            self.restore(table, slots, np.zeros((len(slots), self.dim), dtype=np.float32))

    def _size(self, table: Table) -> int:
        return self.buckets if table is Table.SUB else self.capacity

    def _start_grams(self, held: range) -> None:
        """Uniform in ±0.5/dim, as words start; the same numbers for the same seed.

        Those of all buckets are drawn in order, so that each starts alike wherever it is held.
        """
        if not held:
            return
        rows, half = self._rows[Table.SUB], 0.5 / self.dim
        generator, piece = UniformDraws(self.seed), max(1, _DRAWN // self.dim)
        for at in range(0, held.stop, piece):
            fresh = generator.draw((min(piece, held.stop - at), self.dim), half)
            own = fresh[(held.start - at) % held.step :: held.step]
            place = len(range(held.start, at, held.step))
            rows[place : place + len(own)] = self.device.place(np.ascontiguousarray(own))

    def _before_change(self, table: Table, slots: IntArray, writer: str | None = None) -> None:
        for watcher in self.watchers:
            watcher.save(table, slots, writer)


class TablesCopy(Watcher):
    """A consistent copy of all tables."""

    def __init__(self, tables: Tables, n: int, *, accumulators: bool) -> None:
        self._tables = tables
        sizes = {table: tables.buckets if table is Table.SUB else n for table in tables.kinds}
        self._parts = {
            (table, moved): RowCopy(
                partial(tables.source, table, accumulators=moved), size, tables.device
            )
            for table, size in sizes.items()
            for moved in ((False, True) if accumulators else (False,))
        }

    def save(self, table: Table, slots: IntArray, writer: str | None) -> None:
        for (of, _), part in self._parts.items():
            if of is table:
                part.save(slots)

    def finish(self, lock: AbstractContextManager[object]) -> float:
        try:
            return max(part.finish(lock) for part in self._parts.values())
        finally:
            with lock:
                self._tables.watchers.remove(self)

    def release(self) -> None:
        """The copy is needed no longer."""

    def rows(self, table: Table) -> FloatArray:
        return self._parts[table, False].rows

    def pick(self, table: Table, slots: IntArray) -> FloatArray:
        """float32 [m, dim] of some slots, once finished.

        By a kernel: numpy's indexing would hold the interpreter up while it copies a whole table.
        """
        return HostDevice().gather(self.rows(table), slots)

    def arrays(self) -> dict[str, FloatArray]:
        """All that was copied, by slot, once finished: rows.TABLE float32 [n, dim], and with
        `accumulators` moved.TABLE float32 [n].
        """
        return {
            f"{'moved' if moved else 'rows'}.{table}": part.rows
            for (table, moved), part in self._parts.items()
        }


def bucket_rows(ids: IntArray, buckets: int, what: str) -> IntArray:
    """Rows of buckets in a table of so many, the same numbers; RefusedError for other ids."""
    if not buckets:
        raise RefusedError(
            f"{what}: rows of n-grams are named; this server has none, its model is not fasttext.",
            kind="id",
        )
    if len(ids) and (int(ids.min()) < 0 or int(ids.max()) >= buckets):
        raise RefusedError(
            f"{what}: n-gram buckets {int(ids.min())} to {int(ids.max())} are named; 0 to "
            f"{buckets - 1} are accepted.",
            kind="id",
        )
    return ids
