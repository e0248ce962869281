"""From publication to the server: how old a document is when its words have been learnt.

    python -m benchmarks freshnesslag

A simulated news site publishes one article after another, a real node (crawler and gradient
process) reads its feed and pushes to a real parameter server, all on this machine. The lag of a
document is the time from its publication to the moment when its push was applied, as the server
measures it. Where it goes by stage the frontier and the node's report tell; from the queue to the
server is what is left. The node's memory is the sum over its processes. Cases: `polled` asks the
feed each second, at most ten requests a second to the host; `polite` leaves poll interval and rate
as they are when nothing is set. `rested` is `polled` without rehearsal.
Cases are played in turn, `--rounds` times.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from benchmarks.kept import RESULTS
from embedding.crawl.services import read_clock
from embedding.kernel.config import WITH_SECRETS
from embedding.kernel.processes import memory_mb
from embedding.worker.crawling.crawling import spread
from yeoron_bench.results import facts, free_port, keep

PACKAGES = ("httpx", "kiwipiepy", "torch", "trafilatura")
CASES: dict[str, dict[str, Any]] = {
    "polled": {"settings": {"every": 1.0, "rate": 10.0}, "a_second": 1.0, "asked_p95_s": 5.0},
    "polite": {"settings": {}, "a_second": 0.2, "asked_p95_s": 60.0},
    "rested": {
        "settings": {"every": 1.0, "rate": 10.0},
        "a_second": 1.0,
        "asked_p95_s": 5.0,
        "rehearsal_share": 0.0,
    },
}
EVENT_GAP = 86_400 / 18
"""Seconds of event time between two documents of the generated corpus."""
DIM = 100
STARTING = 600.0


def play(port: int, a_second: float) -> None:
    """The simulated web's process: until its input ends."""
    from yeoron_simweb.config import SimwebConfig
    from yeoron_simweb.serve import serve

    def end_with_parent() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end_with_parent, daemon=True).start()
    config = SimwebConfig(
        corpus=Path("generated"),
        port=port,
        speed=EVENT_GAP * a_second,
        longest_gap_hours=24.0,
        shares={"politics": 1.0},
    )
    serve(config, lambda url: print(url, flush=True))


def read(spec: str) -> None:
    """The node's process: until its input ends."""
    from embedding.worker.process.node import run_node
    from embedding.worker.spec import NodeSpec

    over = threading.Event()
    threading.Thread(target=_until_input_ends, args=(over,), daemon=True).start()
    run_node(NodeSpec.model_validate_json(spec), over.is_set)


def _until_input_ends(over: threading.Event) -> None:
    sys.stdin.read()
    over.set()


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "benchmarks.freshnesslag", *arguments]
    started = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield started
    finally:
        assert started.stdin is not None
        started.stdin.close()
        try:
            started.wait(40)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait(10)


def measure(case: str, seconds: float) -> dict[str, Any]:
    """One case for so many seconds of publishing."""
    from embedding.crawl.config import CrawlConfig
    from embedding.models.config import ModelConfig
    from embedding.server.config import ServerConfig, SyncConfig
    from embedding.server.service import running_server
    from embedding.sources.config import SourceConfig
    from embedding.worker.config import NodeConfig
    from embedding.worker.spec import NodeSpec

    setting = CASES[case]
    node_config = NodeConfig(
        rehearsal_share=setting.get("rehearsal_share", NodeConfig().rehearsal_share)
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        process("--play", str(free_port()), str(setting["a_second"])) as web,
        running_server(
            ServerConfig(min_count=1, device="cpu"), SyncConfig(policy="asp"), dim=DIM
        ) as server,
    ):
        assert web.stdout is not None
        base = web.stdout.readline().strip()
        source = SourceConfig(
            name="news",
            kind="feed",
            url=f"{base}/news/politics/rss.xml",
            timezone="UTC",
            **setting["settings"],
        )
        spec = NodeSpec(
            name="node",
            server=server.location,
            sources=(source,),
            crawl=CrawlConfig(
                frontier=f"sqlite:///{folder}/frontier.db",
                allow_private_hosts=(base.removeprefix("http://"),),
                replay_clock_url=f"{base}/clock.json",
            ),
            model=ModelConfig(dim=DIM),
            node=node_config,
            min_count=1,
        )
        with process("--read", spec.model_dump_json(context=WITH_SECRETS)) as node:
            await_reading(server)
            urllib.request.urlopen(f"{base}/control/start", timeout=60).read()
            memory = _watch(node.pid, seconds)
            status = server.status()
            seen = _stages(f"{folder}/frontier.db", base)
    row = status["sources"].get("news") or {}
    reported = status["nodes"]["node"]["report"].get("stages", {})
    return {
        "case": case,
        **setting,
        "every_s": source.every,
        "seconds": seconds,
        "documents": row.get("documents", 0),
        "lag_p50_s": row.get("lag_p50_s"),
        "lag_p95_s": row.get("lag_p95_s"),
        "tokens": status["tokens"],
        "replayed_tokens": status["replayed_tokens"],
        "stages": {**seen, **reported},
        "node_peak_memory_mb": memory,
        "faults": status["nodes"]["node"]["report"]
        .get("sources", {})
        .get("news", {})
        .get("errors"),
        "load_1min": round(os.getloadavg()[0], 2),
    }


def _stages(frontier: str, base: str) -> dict[str, Any]:
    """What the frontier knows of the way: publication, seen in the feed, fetched."""
    answer = urllib.request.urlopen(f"{base}/clock.json", timeout=60).read()
    clock = read_clock(json.loads(answer))
    query = "SELECT published_at, discovered_at, fetched_at FROM frontier_urls"
    with closing(sqlite3.connect(frontier, timeout=30)) as database:
        rows = database.execute(
            f"{query} WHERE fetched_at IS NOT NULL AND published_at > 0"
        ).fetchall()
    if not rows:
        return {}
    return {
        "published_to_seen": spread([seen - clock.wall(when) for when, seen, _ in rows]),
        "seen_to_fetched": spread([fetched - seen for _, seen, fetched in rows]),
    }


def _watch(node: int, seconds: float) -> dict[str, float]:
    """Wait; the node's memory by process when all of it together was largest, and the sum."""
    deadline, largest = time.monotonic() + seconds, {"all": 0.0}
    while time.monotonic() < deadline:
        sizes = memory_mb(node)
        total = round(sum(sizes.values()), 1)
        if total > largest["all"]:
            largest = {"all": total, **sizes}
        time.sleep(min(5.0, max(0.1, deadline - time.monotonic())))
    return largest


def await_reading(server: Any) -> None:
    """Until the node has polled its source once and its analyser is loaded."""
    deadline = time.monotonic() + STARTING
    while time.monotonic() < deadline:
        reports = [node["report"] or {} for node in server.status()["nodes"].values()]
        for report in reports:
            row = report.get("sources", {}).get("news")
            if report.get("prepared") and row and row["pending"] == 0:
                return
        time.sleep(0.2)
    raise SystemExit(f"bench freshness-lag: the node did not read within {STARTING:.0f} s.")


def bench_freshness_lag(
    cases: Sequence[str] = tuple(CASES),
    seconds: float = 180.0,
    rounds: int = 1,
    *,
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Each case so many times, in turn; a dated file."""
    rows = []
    for case in [*cases] * rounds:
        rows.append(measure(case, seconds))
        print(json.dumps(rows[-1]), flush=True)
    report = {
        **facts("freshness-lag", PACKAGES),
        "cases": rows,
    }
    file = keep(report, results=results)
    print(f"Written to {file}")
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--play", nargs=2)
    parser.add_argument("--read")
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--case", action="append", choices=list(CASES), help="all unless given")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    if given.play:
        play(int(given.play[0]), float(given.play[1]))
    elif given.read:
        read(given.read)
    else:
        bench_freshness_lag(
            tuple(given.case or CASES), given.seconds, given.rounds, results=given.results
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
