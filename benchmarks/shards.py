"""What a row costs as shards and rows grow: processor time and memory of the shards' processes.

    python -m benchmarks.shards

Each shard is a process of its own, with no vocabulary and no checkpoint. This process plays the
primary, which orders what is applied, and one node, which pushes and pulls rows (float16) over
loopback. Every shard gets as many rows in a message whatever the number of shards, at random places
of its table, which is the worst case for caches. Processor time is user and system time of the
shards alone: other work on the machine spoils it less than time on a clock. Memory is what the
processes grew by; where the tables are small that is the buffers of messages. `allocated` counts
tables, accumulators and places as they are allocated, with the room that doubling leaves free; the
pages of that room do not exist yet.

Caches and the processor's address cache (TLB) make memory itself slower as tables grow. `memory` is
what the same reads and additions at random rows cost in this process on a bare array of the same
size, in pages of 2 MB as tables have them, and in pages of 4 KB.
"""

from __future__ import annotations

import gc
import json
import mmap
import statistics
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from benchmarks.machine import hardware, versions
from embedding.exchange.codec import encode_push
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.exchange.shards.split import Layout
from embedding.exchange.shards.stream import ShardStream
from embedding.exchange.wire import Message
from embedding.records import IntArray, Table
from embedding.server.config import ServerConfig
from embedding.server.shards.fleet import Fleet, shard_specs
from embedding.server.shards.link import ShardLinks
from embedding.server.shards.log import Change, ShardLog

RESULTS = Path(__file__).parent / "results"
BATCH = 8_192
"""Rows of each table in a message to one shard."""
ADMITTED = 250_000
"""Ids that are given at a time, so that tables grow as they do in a training."""
WARM = 2_000
"""Rows that are there before the measurement begins."""
FREE_SHARE = 0.6
"""Of the free memory, the most that the tables of one measurement may take."""


def memory_us(rows: int, dim: int, *, large: bool, repeats: int = 5) -> float:
    """Processor time a row and way of adding to, and reading, random rows of a bare array."""
    pages = mmap.mmap(-1, 4 * rows * dim, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    pages.madvise(mmap.MADV_HUGEPAGE if large else mmap.MADV_NOHUGEPAGE)
    table = torch.from_numpy(np.frombuffer(pages, dtype=np.float32).reshape(rows, dim))
    table.fill_(1.0)
    rng = np.random.default_rng(1)
    size = min(BATCH, rows)
    delta, found = torch.ones((size, dim)), []
    for _ in range(repeats):
        drawn = [np.sort(rng.choice(rows, size, replace=False)) for _ in range(20)]
        batches = [torch.from_numpy(each) for each in drawn]
        began = time.process_time()
        for where in batches:
            table.index_add_(0, where, delta)
            table.index_select(0, where)
        found.append((time.process_time() - began) / (2 * size * len(batches)) * 1e6)
    return statistics.median(found)


def columns(rows: int, dim: int) -> int:
    """The dimension, halved until both tables fit."""
    while 8 * rows * dim > FREE_SHARE * psutil.virtual_memory().available and dim > 1:
        dim //= 2
    return dim


class Rig:
    """Some shards, their log and one node."""

    def __init__(self, shards: int, dim: int) -> None:
        self.shards, self.dim, self.sequence, self.admitted = shards, dim, 0, 0
        config = ServerConfig(shards=shards, device="cpu", initial_rows=1024)
        self.fleet = Fleet(shard_specs(config, dim=dim, seed=1, identity="bench"))
        locations = self.fleet.start()
        self.log = ShardLog(1)
        line = ExchangeConfig()
        layout = Layout(shards, "rows", dim)
        self.links = ShardLinks(locations, self.log, identity="bench", config=line, layout=layout)
        self.links.start()
        self.streams = [
            ShardStream(
                location,
                node="bench",
                config=line,
                unconfirmed=lambda _: [],
                first=lambda: self.sequence + 1,
            )
            for location in locations
        ]
        for stream in self.streams:
            stream.confirm()

    def close(self) -> None:
        for stream in self.streams:
            stream.close()
        self.links.stop()
        self.fleet.stop()

    def processor_s(self) -> float:
        times = [psutil.Process(pid).cpu_times() for pid in self.fleet.pids]
        return sum(each.user + each.system for each in times)

    def resident(self) -> int:
        return sum(psutil.Process(pid).memory_info().rss for pid in self.fleet.pids)

    def admit(self, rows: int) -> None:
        """Give ids until there are so many."""
        none = np.empty(0, dtype=np.int64)
        while self.admitted < rows:
            n = min(ADMITTED, rows - self.admitted)
            self.log.admit(self.admitted, n, none)
            self.admitted += n
        if not self.links.settle(600):
            raise TimeoutError("the shards did not make their rows within 600 s")

    def tick(self, ids: Sequence[IntArray], values: np.ndarray) -> None:
        """Push both tables' rows, have them applied, and pull them."""
        self.sequence += 1
        for stream, own in zip(self.streams, ids, strict=True):
            part = values[: len(own)]
            deltas = (RowDelta(Table.IN, own, part), RowDelta(Table.OUT, own, part))
            stream.request(encode_push(Push("bench", self.sequence, 0, deltas)))
        at = [self.log.number, self.log.append(Change((("bench", self.sequence),), 1.0))]
        for stream, own in zip(self.streams, ids, strict=True):
            header = {"op": "pull", "at": at, "rows": "float16"}
            answer = stream.request(Message(header, {"vectors": own, "contexts": own}))
            if answer.header["status"] != "ok":
                raise TimeoutError("a shard did not apply a push within a second")


def drawn(shards: int, rows: int, rng: np.random.Generator) -> list[IntArray]:
    """Distinct ids of each shard, at random."""
    found = []
    for shard in range(shards):
        held = -(-(rows - shard) // shards)
        places = rng.choice(held, size=min(BATCH, held), replace=False)
        found.append(np.sort(places) * shards + shard)
    return found


def measure(shards: int, rows: int, dim: int, repeats: int) -> dict[str, Any]:
    """One size: bytes a row, and the median of `repeats` runs of microseconds a row and way."""
    gc.collect()
    rig = Rig(shards, dim)
    rng = np.random.default_rng(1)
    try:
        values = rng.normal(size=(BATCH, dim)).astype(np.float16)
        # What the first messages import, compile and buffer is not the rows' cost.
        rig.admit(WARM)
        for _ in range(20):
            rig.tick(drawn(shards, WARM, rng), values)
        before, began = rig.resident(), rig.processor_s()
        rig.admit(rows)
        rig.tick(drawn(shards, rows, rng), values)
        held, made = rig.resident() - before, rig.processor_s() - began
        found, wall = [], []
        for _ in range(repeats):
            batches = [drawn(shards, rows, rng) for _ in range(20)]
            moved = 2 * 2 * sum(len(own) for ids in batches for own in ids)
            cpu, clock = rig.processor_s(), time.perf_counter()
            for ids in batches:
                rig.tick(ids, values)
            found.append((rig.processor_s() - cpu) / moved * 1e6)
            wall.append((time.perf_counter() - clock) / moved * 1e6)
        return {
            "shards": shards,
            "rows": rows,
            "dim": dim,
            "processor_us": statistics.median(found),
            "processor_ns_a_number": statistics.median(found) * 1000 / dim,
            "clock_us": statistics.median(wall),
            "memory_us": memory_us(-(-rows // shards), dim, large=True),
            "memory_4k_us": memory_us(-(-rows // shards), dim, large=False),
            "made_us": made / (rows - WARM) * 1e6,
            "bytes": held / (rows - WARM),
            "bytes_allocated": sum(link.figures["bytes"] for link in rig.links.links) / rows,
            "bytes_over_tables": held / (rows - WARM) - 8 * dim,
        }
    finally:
        rig.close()


def bench_shards(
    shards: Sequence[int] = (1, 2, 4),
    rows: Sequence[int] = (10_000, 100_000, 1_000_000, 10_000_000),
    dim: int = 32,
    repeats: int = 5,
    *,
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Measure every size, print a table, write a dated JSON and Markdown file."""
    sizes = []
    for n in rows:
        fitting = columns(n, dim)
        for count in shards:
            sizes.append(measure(count, n, fitting, repeats))
            print(json.dumps(sizes[-1]), file=sys.stderr, flush=True)
    report = {
        "bench": "shards",
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "hardware": hardware(),
        "versions": versions(("numpy", "pyarrow", "torch")),
        "rows_a_message": BATCH,
        "sizes": sizes,
    }
    results.mkdir(parents=True, exist_ok=True)
    name = f"shards-{datetime.now(UTC):%Y-%m-%dT%H%M}"
    text = table(report)
    (results / f"{name}.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (results / f"{name}.md").write_text(text, encoding="utf-8")
    print(text)
    return report


def table(report: dict[str, Any]) -> str:
    hard = report["hardware"]
    lines = [
        f"# What a row costs on shards, {report['when'][:10]}",
        "",
        (
            f"{hard['cpu']}, {hard['cores']} cores, load {hard['load_1min']:.1f}; messages of "
            f"{report['rows_a_message']:,} rows a table and shard, pushed and pulled as float16."
        ),
        "",
        (
            "| rows | dim | shards | processor µs a row | memory µs | with 4 KB pages "
            "| on the clock µs | made µs | bytes a row | beside the rows | allocated |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {size['rows']:,} | {size['dim']} | {size['shards']} | {size['processor_us']:.3f} "
        f"| {size['memory_us']:.3f} | {size['memory_4k_us']:.3f} "
        f"| {size['clock_us']:.3f} | {size['made_us']:.2f} | {size['bytes']:,.0f} "
        f"| {size['bytes_over_tables']:,.0f} | {size['bytes_allocated']:,.0f} |"
        for size in report["sizes"]
    ]
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rows", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    bench_shards(given.shards, given.rows, given.dim, given.repeats, results=given.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
