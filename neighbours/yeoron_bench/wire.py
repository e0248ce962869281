"""Rows a second over the wire: the real client and one shard on loopback, push and pull.

    yeoron bench wire

The server is a process of its own (policy asp, no checkpoints). In each round one batch is pulled
and one pushed, and the same bytes of rows go over a plain socket to and from a third process, in
turn, so that all see the same machine. "Both ways" counts a batch for a pull and a push together.
Times are wall times, medians over the rounds; processor time is that of client and server.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import PullRequest, Push
from embedding.kernel.records import Table
from embedding.server.config import ServerConfig, SyncConfig
from yeoron_bench.results import facts, hardware, keep_and_print

_PACKAGES = ("yeoron", "numpy", "numba", "pyarrow", "torch")
WARM, WORDS, PICKS = 5, 100_000, 8
PLAIN = ServerConfig(min_count=1, device="cpu").model_copy(update={"initial_rows": WORDS})
WIRE_SIDES = {
    "float32": ("float32", "none"),
    "float16": ("float16", "fp16"),
    "threshold": ("float16", "threshold"),
    "onebit": ("float16", "onebit"),
    "topk": ("float16", "topk"),
}
"""How rows are pulled and how deltas are pushed."""


def serve(config: ServerConfig, dim: int) -> None:
    """The server's process: until its input ends."""
    from embedding.server.service import running_server

    with running_server(config, SyncConfig(policy="asp"), dim=dim) as server:
        print(server.location, flush=True)
        sys.stdin.read()


def echo() -> None:
    """The plain socket's process: takes `size` bytes after b"i", gives as many after b"o"."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        with listening.accept()[0] as line:
            size = int.from_bytes(line.recv(8), "little")
            block = bytearray(size)
            while way := line.recv(1):
                if way == b"o":
                    line.sendall(block)
                else:
                    receive(line, block)
                    line.sendall(b".")


def receive(line: socket.socket, into: bytearray) -> None:
    view, at = memoryview(into), 0
    while at < len(into):
        got = line.recv_into(view[at:])
        if not got:
            raise EOFError("the other process ended")
        at += got


@contextmanager
def process(*arguments: str) -> Iterator[tuple[psutil.Process, str]]:
    """A part of this file as a process of its own, and the first line that it said."""
    command = [sys.executable, "-m", "yeoron_bench.wire", *arguments]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if child.stdin is None or child.stdout is None:
        raise RuntimeError("a process without pipes")
    try:
        yield psutil.Process(child.pid), child.stdout.readline().strip()
    finally:
        child.stdin.close()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait(20)
        child.stdout.close()


def serving(config: ServerConfig, dim: int) -> AbstractContextManager[tuple[psutil.Process, str]]:
    """A server as a process of its own, and its address."""
    return process("--serve", config.model_dump_json(), "--dim", str(dim))


class Plain:
    """The same bytes over a plain socket."""

    def __init__(self, line: socket.socket, size: int) -> None:
        self.line, self.block = line, bytearray(size)
        line.sendall(size.to_bytes(8, "little"))

    def push(self) -> None:
        self.line.sendall(b"i")
        self.line.sendall(self.block)
        self.line.recv(1)

    def pull(self) -> None:
        self.line.sendall(b"o")
        receive(self.line, self.block)


class Batches:
    """The same batches again and again, by the real client.

    words  from which the rows of a batch are chosen
    """

    def __init__(
        self, client: ParameterClient, rows: int, dim: int, words: int = WORDS, kind: str = "f4"
    ) -> None:
        self.client = client
        welcome = client.hello()
        self.clock, self.sequence = welcome.clock, welcome.sequence
        names = [f"w{i}" for i in range(words)]
        ids = client.admit(names, np.full(words, 9, dtype=np.int64))
        random = np.random.default_rng(0)
        self.picks = [np.sort(random.choice(ids, rows, replace=False)) for _ in range(PICKS)]
        self.values = (random.normal(size=(rows, dim)) * 0.003).astype(kind)
        self.none = ids[:0]

    def pull(self, round_: int) -> None:
        ids = self.picks[round_ % PICKS]
        self.clock = self.client.pull(
            PullRequest({Table.IN: ids, Table.OUT: self.none}, clock=self.clock)
        ).clock

    def push(self, round_: int) -> None:
        self.sequence += 1
        delta = RowDelta(Table.IN, self.picks[round_ % PICKS], self.values)
        ack = self.client.push(Push(self.client.node, self.sequence, self.clock, (delta,)))
        self.clock = ack.clock


def timed(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def cpu(*processes: psutil.Process) -> float:
    return sum(sum(each.cpu_times()[:2]) for each in processes)


def measure(side: str, rows: int, dim: int, rounds: int, threads: int) -> dict[str, Any]:
    """One way of sending: rows a second each way, and of the plain socket in the same rounds."""
    precision, compression = WIRE_SIDES[side]
    config = ExchangeConfig(rows=precision, compression=compression)
    width = 4 if precision == "float32" else 2
    times: dict[str, list[float]] = {name: [] for name in ("pull", "push", "in", "out")}
    with (
        serving(PLAIN.model_copy(update={"threads": threads}), dim) as (server, location),
        process() as (_, port),
        socket.create_connection(("127.0.0.1", int(port))) as line,
        ParameterClient(location, node="bench", config=config) as client,
    ):
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plain, batches = Plain(line, rows * dim * width), Batches(client, rows, dim)
        used = 0.0
        for round_ in range(WARM + rounds):
            before = cpu(psutil.Process(), server)
            seconds_of = {
                "pull": timed(lambda: batches.pull(round_)),  # noqa: B023 - called at once
                "push": timed(lambda: batches.push(round_)),  # noqa: B023
            }
            after = cpu(psutil.Process(), server)
            seconds_of |= {"in": timed(plain.push), "out": timed(plain.pull)}
            if round_ >= WARM:
                used += after - before
                for name, seconds in seconds_of.items():
                    times[name].append(seconds)
        per_entry = client.status()["bytes"]["pushed_per_entry"]
    return figures(times, rows) | {
        "side": side,
        "cpu_us_a_row": 1e6 * used / (2 * rows * rounds),
        "pushed_bytes_an_entry": per_entry,
    }


def figures(times: dict[str, list[float]], rows: int) -> dict[str, float]:
    median = {name: statistics.median(each) for name, each in times.items()}
    both = statistics.median(a + b for a, b in zip(times["pull"], times["push"], strict=True))
    plain = statistics.median(a + b for a, b in zip(times["in"], times["out"], strict=True))
    return {
        "pull_rows_per_second": rows / median["pull"],
        "push_rows_per_second": rows / median["push"],
        "both_ways_rows_per_second": rows / both,
        "fastest_both_ways": rows / (min(times["pull"]) + min(times["push"])),
        "plain_both_ways": rows / plain,
        "ratio_to_plain": plain / both,
    }


def bench_wire(
    *,
    sides: Sequence[str],
    rows: int,
    dim: int,
    rounds: int,
    threads: int,
    results: Path,
) -> dict[str, Any]:
    """Measure each way of sending; write a dated result file."""
    load = hardware()
    runs = [measure(side, rows, dim, rounds, threads) for side in sides]
    report = {
        **facts("wire", _PACKAGES, load),
        "setting": {"rows": rows, "dim": dim, "rounds": rounds, "server_threads": threads},
        "runs": runs,
    }
    keep_and_print(report, results=results)
    return report


def main() -> None:
    """Be the server or the plain socket's other end, in a process of its own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", metavar="CONFIG", help="be the server; its settings as JSON")
    parser.add_argument("--dim", type=int, default=128)
    given = parser.parse_args()
    if given.serve:
        serve(ServerConfig.model_validate_json(given.serve), given.dim)
    else:
        echo()


if __name__ == "__main__":
    main()
