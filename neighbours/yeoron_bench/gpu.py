"""Rows a second with the tables on a GPU: resident, over the bus, over the wire, and what binds.

    yeoron bench gpu --text english.txt --gold men.tsv

Push and pull of one row of `dim` float32 move five rows' bytes through the GPU's memory (pull: read
the row, write the answer; push: read the delta and the row, write the row). At 4.3 TB/s that bounds
both together at 2.15 billion rows/s x 100/dim, whatever the kernel; the share of it is what counts.
"""

from __future__ import annotations

import socket
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.kernel.devices import on_gpu
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rows.devices import RowSteps
from embedding.server.rows.torchdevice import TorchDevice, TorchSteps, gpu
from embedding.server.service import running_server
from embedding.worker.learning.training import in_place
from yeoron_bench.corpora import encode, sentences
from yeoron_bench.gpukernel import kernel_rows, kernels
from yeoron_bench.results import facts, hardware, keep_and_print
from yeoron_bench.wire import Batches, Plain, process
from yeoron_bench.wire import timed as wall

BOUND = 2.15e9
"""Rows of 100 float32 a second, push and pull together, at 4.3 TB/s of memory."""
ASKED = 0.4
WIRE_ROWS = (8_192, 65_536, 262_144)
SEEDS = (1, 2, 3)


def timed(device: TorchDevice, call: Callable[[], object], repeats: int) -> float:
    """Median seconds of a call, after two that do not count."""
    seconds = []
    for turn in range(repeats + 2):
        device.wait()
        began = time.perf_counter()
        call()
        device.wait()
        if turn >= 2:
            seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def resident(
    device: TorchDevice, steps: RowSteps, rows: int, dim: int, repeats: int
) -> dict[str, float]:
    """Rows/s of batches of `rows` that lie on the device, of a table four times as long."""
    table = device.zeros(4 * rows, dim)
    moved = device.zeros(4 * rows)
    where = torch.randperm(4 * rows, device=device.torch)[:rows].contiguous()
    delta = torch.full((rows, dim), 1e-3, device=device.torch)
    pull = timed(device, lambda: steps.gather(table, where), repeats)
    push = timed(device, lambda: steps.add(table, where, delta, 1.0), repeats)
    stepped = timed(device, lambda: steps.adagrad(table, moved, where, delta, 1.0, 1.0), repeats)
    bound = BOUND * 100 / dim
    return {
        "pull_rows_per_s": rows / pull,
        "push_rows_per_s": rows / push,
        "push_adagrad_rows_per_s": rows / stepped,
        "share": rows / (pull + push) / bound,
        "share_adagrad": rows / (pull + stepped) / bound,
    }


def copies(device: TorchDevice, repeats: int) -> dict[str, float]:
    """Bytes a second of plain copies inside the device, reads and writes counted: in its memory,
    and of a quarter of its L2 cache; 0 where it does not say how large that is."""

    def copied(size: int) -> float:
        source = device.zeros(size // 4)
        target = torch.empty_like(source)
        return 2 * size / timed(device, lambda: target.copy_(source), repeats)

    on_card = device.type == "cuda"
    cache = torch.cuda.get_device_properties(device.torch).L2_cache_size // 4 if on_card else 0
    return {
        "copy_bytes_per_s": copied(2**30 if on_card else 2**26),
        "l2_bytes_per_s": copied(cache) if cache else 0.0,
    }


def bus(device: TorchDevice, size: int, repeats: int) -> dict[str, float]:
    """Seconds for `size` bytes to the device and back, as the server moves them."""
    values = np.zeros(size, dtype=np.uint8)
    placed = device.place(values)
    return {
        "to_device_s": timed(device, lambda: device.place(values), repeats),
        "to_host_s": timed(device, lambda: device.host(placed), repeats),
    }


def socket_copy(size: int, repeats: int) -> float:
    """Seconds for `size` bytes through a plain loopback socket."""
    with process() as (_, port), socket.create_connection(("127.0.0.1", int(port))) as line:
        plain = Plain(line, size)
        return statistics.median([wall(plain.push) for _ in range(repeats + 2)][2:])


def round_trip(device: str, rows: int, dim: int, repeats: int) -> dict[str, float]:
    """Seconds of a pull and of a push of `rows` rows as float16 over loopback, by one client."""
    config = ServerConfig(
        min_count=1, device=device, max_words=4 * rows, max_message_bytes=2**30
    ).model_copy(update={"initial_rows": rows})
    exchange = ExchangeConfig(max_message_bytes=2**30)
    pulls, pushes = [], []
    with (
        running_server(config, SyncConfig(policy="asp"), dim=dim) as server,
        ParameterClient(server.location, node="bench", config=exchange) as client,
    ):
        batches = Batches(client, rows, dim, words=rows, kind="f2")
        for number in range(repeats + 2):
            pulls.append(wall(partial(batches.pull, number)))
            pushes.append(wall(partial(batches.push, number)))
    return {"pull_s": statistics.median(pulls[2:]), "push_s": statistics.median(pushes[2:])}


def limit(parts: dict[str, float]) -> str:
    """The part of a round trip that takes longest."""
    return max(parts, key=lambda name: parts[name])


def over_the_wire(device: TorchDevice, rows: int, dim: int, repeats: int) -> dict[str, Any]:
    """A round trip of `rows` rows, taken apart."""
    trip = round_trip(device.type, rows, dim, repeats)
    alone = resident(device, device.steps(dim), rows, dim, repeats)
    crossed = bus(device, rows * dim * 2, repeats)
    kernels = rows / alone["pull_rows_per_s"] + rows / alone["push_rows_per_s"]
    parts = {
        "kernels": kernels,
        "bus": crossed["to_device_s"] + crossed["to_host_s"],
        "socket": 2 * socket_copy(rows * dim * 2, repeats),
    }
    total = trip["pull_s"] + trip["push_s"]
    parts["messages, checks and locks"] = max(0.0, total - sum(parts.values()))
    return {
        "rows": rows,
        "pull_rows_per_s": rows / trip["pull_s"],
        "push_rows_per_s": rows / trip["push_s"],
        "parts_ms": {name: 1000 * seconds for name, seconds in parts.items()},
        "binds": limit(parts),
    }


def bench_gpu(
    rows: int,
    dim: int,
    repeats: int,
    *,
    results: Path,
    text: Path | None = None,
    gold: Sequence[Path] = (),
) -> dict[str, Any]:
    """Measure and write a dated result; ConfigError without a GPU.

    text  plain text that the training kernel learns, besides; gold: what its vectors are judged by
    """
    on_gpu("cuda")
    device = gpu()
    corpus = None if text is None else encode(list(sentences(text, sys.maxsize)))
    kinds = {"one pass": device.steps(dim), "torch": TorchSteps()}
    machine = hardware() | {"gpu": torch.cuda.get_device_name(device.torch)}
    report = {
        **facts("gpu", ("numpy", "torch", "pyarrow"), machine),
        "rows": rows,
        "dim": dim,
        "repeats": repeats,
        "bound_rows_per_s": BOUND * 100 / dim,
        "asked_share": ASKED,
        **copies(device, repeats),
        "resident": {
            name: {"kind": type(steps).__name__, **resident(device, steps, rows, dim, repeats)}
            for name, steps in kinds.items()
        },
        "wire": [over_the_wire(device, n, dim, max(3, repeats // 2)) for n in WIRE_ROWS],
    }
    if text is not None and corpus is not None:
        report["corpus"] = {"file": text.name, "words": corpus.known}
        report["kernels"] = {
            model: kernels(corpus, model, gold, SEEDS, device, in_place().trainer)
            for model in ("sgns", "cbow")
        }
        report["kernels, medians"] = kernel_rows(report["kernels"], report)
    keep_and_print(report, results=results)
    return report
