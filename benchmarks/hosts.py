"""Three hosts against one machine of the same cores: words a second, in turn.

    python -m benchmarks hosts

Hosts are network namespaces of this machine, joined by a bridge: the first has the parameter server
and a node, the two others a node each, and all lines are mutual TLS, as the platform has them. The
other arm has the same processes on loopback, without TLS. Each node learns its share of one text;
words a second are those that the server took between a tenth and nine tenths of them. Real cables
add a latency that a bridge does not have.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kept import RESULTS
from embedding.exchange.config import ExchangeConfig
from embedding.kernel.certificates import ensure_certificate, ensure_issued
from embedding.kernel.errors import PlatformError
from embedding.kernel.private import ensure_secret
from embedding.server.config import ServerConfig
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.spec import CorpusShare, NodeSpec
from yeoron_bench.results import facts, hardware, keep_and_print

HOSTS = 3
NETWORK = "198.51.100"
SERVE = """
import sys, threading, time
from embedding.server.config import ServerConfig
from embedding.server.service import running_server
config = ServerConfig.model_validate_json(sys.argv[1])
with running_server(config, dim=int(sys.argv[2])) as server:
    print(server.location, flush=True)
    reading = threading.Thread(target=sys.stdin.read, daemon=True)
    reading.start()
    while reading.is_alive():
        time.sleep(0.1)
        print(time.monotonic(), server.state.meters.tokens, flush=True)
"""
NODE = """
import sys
from embedding.worker.process.node import run_node
from embedding.worker.spec import NodeSpec
run_node(NodeSpec.model_validate_json(sys.argv[1]), lambda: False)
"""


def ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PlatformError(f"ip {' '.join(arguments)}: {done.stderr.strip()}; root is needed.")


@contextmanager
def namespaces() -> Iterator[list[str]]:
    """Three hosts on one bridge; their names, and NETWORK.1 … their addresses."""
    bridge = f"hb{os.getpid()}"
    names = [f"h{os.getpid()}{i}" for i in range(1, HOSTS + 1)]
    try:
        ip("link", "add", bridge, "type", "bridge")
        ip("link", "set", bridge, "up")
        for i, name in enumerate(names, start=1):
            ip("netns", "add", name)
            ip("link", "add", f"{name}x", "type", "veth", "peer", "name", f"{name}y")
            ip("link", "set", f"{name}x", "netns", name)
            ip("link", "set", f"{name}y", "master", bridge, "up")
            for command in (
                ("link", "set", "lo", "up"),
                ("link", "set", f"{name}x", "up"),
                ("addr", "add", f"{NETWORK}.{i}/24", "dev", f"{name}x"),
            ):
                ip("netns", "exec", name, "ip", *command)
        yield names
    finally:
        for name in names:
            with suppress(PlatformError):
                ip("netns", "del", name)
        with suppress(PlatformError):
            ip("link", "del", bridge)


def write_text(path: Path, tokens: int, words: int = 20_000, length: int = 20) -> None:
    """Sentences of words by Zipf's law."""
    random = np.random.default_rng(0)
    weights = 1.0 / np.arange(1, words + 1)
    drawn = random.choice(words, size=(tokens // length, length), p=weights / weights.sum())
    with path.open("w", encoding="utf-8") as file:
        file.writelines(" ".join(f"w{word}" for word in row) + "\n" for row in drawn.tolist())


def arm(folder: Path, text: Path, hosts: Sequence[str], dim: int) -> float:
    """Words a second of three nodes; without hosts all are on loopback."""
    server = ServerConfig(min_count=1, device="cpu", window="month")
    line = ExchangeConfig()
    if hosts:
        own = ensure_certificate(folder, "authority")
        cert, key = ensure_issued(folder, "server", own, (f"{NETWORK}.1",))
        token = folder / "token"
        ensure_secret(token, "f" * 64 + "\n")
        known = {"tls_cert": cert, "tls_key": key, "tls_ca": own[0], "tls_client_ca": own[0]}
        listening = {"host": f"{NETWORK}.1", "token_file": token}
        server = server.model_copy(update={**known, **listening})
        shown = {"tls_ca": own[0], "tls_cert": own[0], "tls_key": own[1], "token_file": token}
        line = line.model_copy(update=shown)
    with ExitStack() as running:
        first = started(running, hosts[:1], SERVE, server.model_dump_json(), str(dim))
        location = first.stdout.readline().strip()
        seen: list[tuple[float, int]] = []

        def listen() -> None:
            for each in first.stdout:
                at, tokens = each.split()
                seen.append((float(at), int(tokens)))

        threading.Thread(target=listen, daemon=True).start()
        nodes = []
        for i in range(HOSTS):
            spec = NodeSpec(
                name=f"n{i}",
                server=location,
                corpus=CorpusShare(path=str(text), index=i, count=HOSTS),
                text=TextConfig(tokenizer="whitespace"),
                node=NodeConfig(replay_ratio=0.0),
                exchange=line,
                min_count=1,
            )
            nodes.append(started(running, hosts[i : i + 1], NODE, spec.model_dump_json()))
        for node in nodes:
            if code := node.wait(400):
                raise PlatformError(f"a node ended with {code}")
        time.sleep(0.3)
    return speed(seen)


def started(running: ExitStack, host: Sequence[str], code: str, *arguments: str) -> Any:
    inside = ("ip", "netns", "exec", *host) if host else ()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    child = subprocess.Popen(
        [*inside, sys.executable, "-c", code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    )

    def end() -> None:
        child.kill()
        child.wait(20)

    running.callback(end)
    return child


def speed(seen: Sequence[tuple[float, int]]) -> float:
    """Words a second between a tenth and nine tenths of what was learnt."""
    total = seen[-1][1]
    begin = next(look for look in seen if look[1] >= 0.1 * total)
    last = next(look for look in seen if look[1] >= 0.9 * total)
    return (last[1] - begin[1]) / (last[0] - begin[0])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", type=int, default=3_000_000)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    load, runs = hardware(), []
    # Namespaces and processes are taken away however this ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory() as place, namespaces() as hosts:
        folder = Path(place)
        text = folder / "text.txt"
        write_text(text, given.tokens)
        # Kernels are compiled and kept before anything is measured.
        short = folder / "short.txt"
        write_text(short, given.tokens // 10)
        for names in ((), hosts):
            arm(folder, short, names, given.dim)
        for pair in range(given.pairs):
            rates = {}
            for name in ("one", "three")[:: -1 if pair % 2 else 1]:
                rates[name] = arm(folder, text, hosts if name == "three" else (), given.dim)
            runs.append({**rates, "ratio": rates["three"] / rates["one"]})
            print(json.dumps(runs[-1]), flush=True)
    setting = {"tokens": given.tokens, "dim": given.dim, "pairs": given.pairs}
    packages = ("yeoron", "numpy", "numba", "pyarrow", "torch")
    report = {**facts("hosts", packages, load), "setting": setting, "runs": runs}
    report["median_ratio"] = statistics.median(run["ratio"] for run in runs)
    report["load_end"] = os.getloadavg()[0]
    keep_and_print(report, results=given.results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
