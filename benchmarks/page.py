"""The trends page on a large store: a word's page, its first view in a browser, a report, memory.

    python -m benchmarks page [--store DIR]

The store is invented (`pagestore.py`): daily snapshots of drifting vectors. Every request asks for
another word, so that no answer is kept from before. Wall time needs a calm machine; processor time
is given beside it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import psutil
from fastapi import Depends

from benchmarks.kept import RESULTS
from benchmarks.pagestore import make
from embedding.snapshots.store import SnapshotStore
from embedding.trends import storage
from embedding.trends.report import build_report
from embedding.web.app import create_app
from embedding.web.config import WebConfig
from yeoron_bench.results import facts, keep

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
PAINTED = """
() => new Promise(done => {
  const look = () => {
    const paint = performance.getEntriesByName('first-contentful-paint')[0];
    const charts = [...document.querySelectorAll('[data-chart]')].every(e => e.dataset.drawn);
    if (paint && charts) done({paint: paint.startTime, drawn: performance.now()});
    else setTimeout(look, 10);
  };
  look();
})
"""


def memory(pid: int) -> dict[str, float]:
    """MB: resident, of which anonymous (the rest are pages of mapped files, which the system may
    take back), and the peak."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    facts_of = dict(line.split(":", 1) for line in lines)
    fields = {"resident": "VmRSS", "anonymous": "RssAnon", "peak": "VmHWM"}
    return {name: int(facts_of[field].split()[0]) / 1000 for name, field in fields.items()}


def spread(values: list[float]) -> dict[str, float]:
    p50, p95 = np.percentile(values, [50, 95])
    return {"p50": round(float(p50), 1), "p95": round(float(p95), 1), "n": len(values)}


def report_of(store: str) -> dict[str, Any]:
    """One window's report in a process of its own."""
    code = f"from benchmarks.page import one_report; one_report({store!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=1800
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def one_report(store: str) -> None:
    """In that process."""
    began, used = time.monotonic(), time.process_time()
    report = build_report(SnapshotStore(store))
    spent = {"wall_s": time.monotonic() - began, "processor_s": time.process_time() - used}
    storage.save(report, Path(store).parent / "trends")
    memory_of = {"memory_mb": memory(os.getpid()), "compared": report.ranked.get("moved", 0)}
    print(json.dumps(spent | memory_of))


def serve(folder: str, port: int) -> None:
    """In the server's process."""
    import uvicorn

    root = Path(folder)
    config = WebConfig(snapshots=str(root / "snapshots"), reports=root / "trends")
    app = create_app(config, dependencies=[Depends(lambda: None)])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


def start(root: Path) -> tuple[subprocess.Popen[bytes], str, float]:
    """A server, its address, and the seconds until its read-ahead was over."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    code = f"from benchmarks.page import serve; serve({str(root)!r}, {port})"
    server = subprocess.Popen([sys.executable, "-c", code])
    base, began = f"http://127.0.0.1:{port}", time.monotonic()
    process = psutil.Process(server.pid)
    idle = 0
    while idle < 5:
        if server.poll() is not None or time.monotonic() - began > 600:
            raise RuntimeError("the page did not come up.")
        used = sum(process.cpu_times()[:2])
        time.sleep(1.0)
        up = True
        try:
            httpx.get(base + "/health", timeout=5, trust_env=False)
        except httpx.HTTPError:
            up = False
        idle = idle + 1 if up and sum(process.cpu_times()[:2]) - used < 0.1 else 0
    return server, base, time.monotonic() - began - 5


def words_of(store: SnapshotStore, n: int, seed: int = 7) -> list[str]:
    """n distinct words of all ranks, drawn evenly on a logarithmic scale."""
    last = store.open()
    ranks = np.exp(np.random.default_rng(seed).uniform(0, np.log(len(last)), 4 * n)).astype(int)
    chosen = list(dict.fromkeys(ranks.tolist()))[:n]
    return [last.word_column[rank].as_py() for rank in chosen]


def requests(base: str, pid: int, words: list[str]) -> dict[str, Any]:
    """A word's page for each word, by one client that keeps its connection."""
    process, wall, used = psutil.Process(pid), [], []
    with httpx.Client(trust_env=False, timeout=120) as client:
        for word in words:
            before, began = sum(process.cpu_times()[:2]), time.perf_counter()
            client.get(f"{base}/word/{quote(word)}").raise_for_status()
            wall.append(1e3 * (time.perf_counter() - began))
            used.append(1e3 * (sum(process.cpu_times()[:2]) - before))
    mean = round(float(np.mean(used)), 1)
    return {"wall_ms": spread(wall), "processor_ms": {"mean": mean, "n": len(used)}}


async def views(base: str, paths: dict[str, list[str]]) -> dict[str, Any]:
    """First views in browsers that have seen nothing: to the first paint, and to the charts."""
    from playwright.async_api import async_playwright

    out: dict[str, Any] = {}
    async with async_playwright() as p:
        browser = await p.chromium.launch(
            executable_path=shutil.which("chromium"), args=[*FLAGS], timeout=120_000
        )
        for name, asked in paths.items():
            looks = []
            for path in asked:
                context = await browser.new_context(viewport={"width": 1280, "height": 900})
                page = await context.new_page()
                await page.goto(base + path, timeout=120_000)
                looks.append(await page.evaluate(PAINTED))
                await context.close()
            out[name] = {
                "first_paint_ms": spread([look["paint"] for look in looks]),
                "charts_drawn_ms": spread([look["drawn"] for look in looks]),
            }
        await browser.close()
    return out


def measure(root: Path, requested: int, browsers: int) -> dict[str, Any]:
    store = SnapshotStore(str(root / "snapshots"))
    figures: dict[str, Any] = {"report": report_of(str(root / "snapshots"))}
    server, base, ready = start(root)
    try:
        words = words_of(store, requested + browsers)
        figures["read_ahead_s"] = round(ready, 1)
        figures["memory_after_read_ahead_mb"] = memory(server.pid)
        figures["word_page"] = requests(base, server.pid, words[:requested])
        shown = words[requested:]
        paths = {"word": [f"/word/{quote(word)}" for word in shown], "brief": ["/"] * browsers}
        figures["browser"] = asyncio.run(views(base, paths))
        figures["memory_mb"] = memory(server.pid)
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
    return figures


def main(arguments: list[str] | None = None) -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, help="keep the store here, or use the one there")
    parser.add_argument("--snapshots", type=int, default=50)
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--browsers", type=int, default=10)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="yeoron-page-") as folder:
        root = asked.store or Path(folder)
        if not (root / "snapshots").is_dir():
            make(root / "snapshots", asked.snapshots, asked.words, asked.dim)
        figures = measure(root, asked.requests, asked.browsers)
    setting = {k: v for k, v in vars(asked).items() if k != "store"}
    result = {
        **facts("page", ["numpy", "pyarrow", "fastapi", "uvicorn", "playwright"]),
        "config": setting | {"trends": WebConfig().trends.model_dump(mode="json")},
        "figures": figures,
    }
    path = keep(result, results=RESULTS)
    print(json.dumps(figures, ensure_ascii=False, indent=1))
    print(f"Written to {path}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
