"""What a row costs as shards and rows grow: processor time and memory of the shards' processes.

    python -m benchmarks shards

Each shard is a process of its own, with no vocabulary and no checkpoint. This process plays the
primary, which orders what is applied, and one node, which pushes and pulls rows (float16) over
loopback. Every message has as many rows, whatever the size and the number of shards, at random
places of the shard's table, which is the worst case for caches. Processor time is user and system
time of the shards alone: other work on the machine spoils it less than time on a clock.

All sizes of a number of shards are there at the same time and are measured in turn, in an order
drawn again for each round, and with them one shard of 10^5 rows: what is compared are ratios within
a round (`to the first`: median ratio to that shard), so that a machine that is loaded, or slows
down, spoils no comparison. A spread is the largest of them over the smallest, less one.

Memory is what the processes grew by since they had the rows of one message each and had answered
some thousand, divided by the rows since; what they had by then is the fixed part (`fixed_mb`, of
one process). Where there are few rows, small differences of buffers count, so that what a further
row takes (`bytes_more`: the difference to the next smaller size, which began with as many rows) is
what tells whether it is flat. `allocated` counts tables, accumulators and places as they are
allocated, with the room that doubling leaves free; the pages of that room do not exist yet.

Caches and the processor's address cache (TLB) make memory itself slower as tables grow. `memory` is
what the same reads and additions at random rows cost in this process on a bare array of the same
size, in pages of 2 MB as tables have them, and in pages of 4 KB.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import statistics
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.kept import RESULTS
from embedding.exchange.codec import to_message
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import PullRequest, Push
from embedding.exchange.rows import KeptRows
from embedding.kernel.errors import ConfigError
from embedding.kernel.records import IntArray, Table
from embedding.server.config import ServerConfig
from embedding.server.rows.devices import HostDevice
from yeoron_bench.results import facts, hardware, keep_and_print
from yeoron_lab.processes import Fleet
from yeoron_lab.shards.client.split import Layout
from yeoron_lab.shards.client.stream import ShardStream
from yeoron_lab.shards.link import PrimaryLinks
from yeoron_lab.shards.log import Change, ShardLog
from yeoron_lab.shards.sharding import shard_specs

BATCH = 2_048
"""Rows of each table in a message to one shard: the fewest that a shard has here."""
TICKS = 40
"""Messages of a measurement."""
FIRST = (1, 100_000)
"""Shards and rows of what all others are compared with."""
PROCESS = 400 * 2**20
"""Bytes of a process before it holds a row, about."""
ADMITTED = 250_000
"""Ids that are given at a time, so that tables grow as they do in a training."""
WARM_TICKS = 1_000
"""Messages before the measurement begins, as long as those that are measured: by then all buffers
of a process are there."""
FREE_SHARE = 0.6
"""Of the free memory, the most that the tables of one measurement may take."""


def memory_us(rows: int, dim: int, *, large: bool, repeats: int = 5) -> float:
    """Processor time a row and way of adding to, and reading, random rows of a bare array."""
    pages = mmap.mmap(-1, 4 * rows * dim, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_HUGEPAGE if large else mmap.MADV_NOHUGEPAGE)
    table = np.frombuffer(pages, dtype=np.float32).reshape(rows, dim)
    table[:] = 1.0
    rng = np.random.default_rng(1)
    size = min(BATCH, rows)
    steps, delta, times = HostDevice().steps(dim), np.ones((size, dim), dtype=np.float32), []
    for _ in range(repeats):
        batches = [np.sort(rng.choice(rows, size, replace=False)) for _ in range(20)]
        began = time.process_time()
        for where in batches:
            steps.add(table, where, delta, 1.0)
            steps.gather(table, where)
        times.append((time.process_time() - began) / (2 * size * len(batches)) * 1e6)
    return statistics.median(times)


def processor_s(pid: int) -> float:
    """User and system time of a process; to the nanosecond on Linux, where psutil has 10 ms."""
    if sys.platform == "linux":
        return time.clock_gettime((~pid << 3) | 2)
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


class Rig:
    """Some shards, their log and one node."""

    def __init__(self, shards: int, dim: int) -> None:
        self.shards, self.dim, self.sequence, self.admitted = shards, dim, 0, 0
        config = ServerConfig.model_validate({"shards": shards, "device": "cpu"}).model_copy(
            update={"initial_rows": 1024}
        )
        self.fleet = Fleet(shard_specs(config, dim=dim, seed=1, identity="bench"))
        locations = self.fleet.start()
        self.log = ShardLog(1)
        line = ExchangeConfig()
        layout = Layout(shards, "rows", dim)
        self.links = PrimaryLinks(self.log, layout)
        self.links.connect(locations, identity="bench", config=line)
        self.links.start()
        self.streams = [
            ShardStream(
                location,
                node="bench",
                config=line,
                unconfirmed=lambda _: [],
                held=lambda: (self.sequence + 1, self.sequence),
                kept=KeptRows(),
                encode=to_message,
            )
            for location in locations
        ]
        for stream in self.streams:
            stream.confirm()

    def close(self) -> None:
        for stream in self.streams:
            stream.peer.close()
        self.links.stop()
        self.fleet.stop()

    def processor_s(self) -> float:
        return sum(processor_s(pid) for pid in self.fleet.pids)

    def resident(self) -> int:
        return sum(psutil.Process(pid).memory_info().rss for pid in self.fleet.pids)

    def admit(self, rows: int) -> None:
        """Give ids until there are so many."""
        none = np.empty(0, dtype=np.int64)
        while self.admitted < rows:
            n = min(ADMITTED, rows - self.admitted)
            self.log.admit(self.admitted, n, none)
            self.admitted += n
        if not self.links.catch_up(600):
            raise TimeoutError("the shards did not make their rows within 600 s")

    def tick(self, ids: Sequence[IntArray], values: np.ndarray) -> None:
        """Push both tables' rows, have them applied, and pull them."""
        self.sequence += 1
        for stream, own in zip(self.streams, ids, strict=True):
            part = values[: len(own)]
            deltas = (RowDelta(Table.IN, own, part), RowDelta(Table.OUT, own, part))
            stream.peer.request(to_message(Push("bench", self.sequence, 0, deltas)))
        at = [self.log.number, self.log.append(Change((("bench", self.sequence),), 1.0))]
        for stream, own in zip(self.streams, ids, strict=True):
            wanted = PullRequest({Table.IN: own, Table.OUT: own}, 0, half=True)
            answer = stream.peer.request(to_message(wanted, at=at))
            if answer.header["status"] != "ok":
                raise TimeoutError("a shard did not apply a push within a second")


def drawn(shards: int, rows: int, rng: np.random.Generator) -> list[IntArray]:
    """Distinct ids of each shard, at random."""
    batches = []
    for shard in range(shards):
        own_rows = -(-(rows - shard) // shards)
        offsets = rng.choice(own_rows, size=min(BATCH, own_rows), replace=False)
        batches.append(np.sort(offsets) * shards + shard)
    return batches


class Subject:
    """A rig of one size, filled and ready to be measured."""

    def __init__(self, shards: int, rows: int, dim: int) -> None:
        gc.collect()
        self.shards, self.rows, self.rig = shards, rows, Rig(shards, dim)
        self.rng = np.random.default_rng(1)
        self.values = self.rng.normal(size=(BATCH, dim)).astype(np.float16)
        self.costs: list[float] = []
        self.clocks: list[float] = []
        try:
            # What the first messages import, compile and buffer is not the rows' cost.
            warm = shards * BATCH
            self.rig.admit(warm)
            for _ in range(WARM_TICKS):
                self.rig.tick(drawn(shards, warm, self.rng), self.values)
            before, began = self.rig.resident(), self.rig.processor_s()
            self.rig.admit(rows)
            made = self.rig.processor_s() - began
            for _ in range(TICKS):
                self.rig.tick(drawn(shards, rows, self.rng), self.values)
            self.grown = self.rig.resident() - before
            self.fixed_mb = before / shards / 1e6
            self.bytes = self.grown / (rows - warm)
            self.made_us = made / (rows - warm) * 1e6
        except BaseException:
            self.rig.close()
            raise

    def turn(self) -> None:
        """One measurement: processor time of the shards, and time on the clock, a row and way."""
        batches = [drawn(self.shards, self.rows, self.rng) for _ in range(TICKS)]
        moved = 2 * 2 * sum(len(own) for ids in batches for own in ids)
        cpu, clock = self.rig.processor_s(), time.perf_counter()
        for ids in batches:
            self.rig.tick(ids, self.values)
        self.costs.append((self.rig.processor_s() - cpu) / moved * 1e6)
        self.clocks.append((time.perf_counter() - clock) / moved * 1e6)

    def figures(self, first: Sequence[float]) -> dict[str, Any]:
        """What was measured; `first`: costs of the one to compare with, of the same rounds."""
        dim, per_shard = self.rig.dim, -(-self.rows // self.shards)
        ratios = [own / other for own, other in zip(self.costs, first, strict=True)]
        allocated = sum(link.figures["bytes"] for link in self.rig.links.links)
        return {
            "shards": self.shards,
            "rows": self.rows,
            "dim": dim,
            "processor_us": statistics.median(self.costs),
            "to_first": statistics.median(ratios),
            "clock_us": statistics.median(self.clocks),
            "memory_us": memory_us(per_shard, dim, large=True),
            "memory_4k_us": memory_us(per_shard, dim, large=False),
            "made_us": self.made_us,
            "fixed_mb": self.fixed_mb,
            "bytes": self.bytes,
            "bytes_allocated": allocated / self.rows,
            "bytes_over_tables": self.bytes - 8 * dim,
            "bytes_more": None,
        }


def measured(shards: int, rows: Sequence[int], dim: int, repeats: int) -> list[dict[str, Any]]:
    """All sizes at the same time, in turn."""
    order, subjects = np.random.default_rng(2), []
    try:
        for count, n in dict.fromkeys([FIRST, *((shards, n) for n in rows)]):
            subjects.append(Subject(count, n, dim))
        for _ in range(repeats):
            for at in order.permutation(len(subjects)):
                subjects[at].turn()
        lines, smaller = [], None
        for subject in sorted(subjects, key=lambda each: each.rows):
            if subject.shards != shards or subject.rows not in rows:
                continue
            figures = subject.figures(subjects[0].costs)
            if smaller is not None:
                more = subject.grown - smaller.grown
                figures["bytes_more"] = more / (subject.rows - smaller.rows)
            smaller = subject
            lines.append(figures)
            print(json.dumps(figures), file=sys.stderr, flush=True)
        return lines
    finally:
        for subject in subjects:
            subject.rig.close()


def fitting(shards: Sequence[int], rows: Sequence[int], dim: int) -> int:
    """The dimension, halved until all sizes of the most shards fit into the free memory."""
    free = FREE_SHARE * psutil.virtual_memory().available
    processes = PROCESS * (1 + max(shards) * len(rows))
    # Growing by doubling, the largest table is there one and a half times for a moment.
    while dim > 1 and processes + 8 * sum(rows) * dim + 4 * max(rows) * dim > free:
        dim //= 2
    return dim


def spread(sizes: Sequence[dict[str, Any]], figure: str) -> float | None:
    """How much more the dearest costs than the cheapest, as a share; None of fewer than two."""
    rates = [size[figure] for size in sizes if size[figure] is not None]
    return max(rates) / min(rates) - 1 if len(rates) > 1 else None


def spreads(sizes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of time and memory: as rows grow, for each number of shards, and over all sizes."""
    by_shards = {
        str(count): [size for size in sizes if size["shards"] == count]
        for count in dict.fromkeys(size["shards"] for size in sizes)
    }
    return {
        "time": {count: spread(own, "to_first") for count, own in by_shards.items()},
        "memory": {count: spread(own, "bytes_more") for count, own in by_shards.items()},
        "time_all": spread(sizes, "to_first"),
        "memory_all": spread(sizes, "bytes_more"),
    }


def bench_shards(
    shards: Sequence[int] = (1, 2, 4),
    rows: Sequence[int] = (10_000, 100_000, 1_000_000, 10_000_000),
    dim: int = 32,
    repeats: int = 9,
    *,
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Measure every size, print a table, write a dated JSON and Markdown file."""
    if min(rows) < 2 * BATCH or min(rows) < max(shards) * BATCH:
        raise ConfigError(
            f"rows {min(rows)} on {max(shards)} shards: every message has {BATCH} rows of one "
            f"shard; at least {max(2, max(shards)) * BATCH} rows are accepted."
        )
    dim = fitting(shards, list(rows), dim)
    load = [os.getloadavg()[0]]
    sizes = [each for count in shards for each in measured(count, rows, dim, repeats)]
    load.append(os.getloadavg()[0])
    machine = {**hardware(), "load_1min_before_and_after": load}
    report = {
        **facts("shards", ("numba", "numpy", "pyarrow", "torch"), machine),
        "rows_a_message": BATCH,
        "repeats": repeats,
        "spread": spreads(sizes),
        "sizes": sizes,
    }
    keep_and_print(report, results=results)
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    bench_shards(given.shards, given.rows, given.dim, given.repeats, results=given.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
