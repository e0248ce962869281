"""Pages a minute from the web to words, and how many times a Scrapy spider's that is.

    python -m benchmarks crawl petitions.jsonl.xz

A simulated web plays the corpus on this machine, all of it visible at once. `yeoron crawl` (the
crawler process of a node with its extraction process: fetch, extract, find duplicates, mask,
tokenise) and a Scrapy spider that does the same work (`scrapyside.py`) read the same articles, in
turn, each until it has so many documents. Time counts from the moment when the morpheme analyser
is loaded. Processor time is that of the side alone, from that moment on, without the web's: on a
machine with other work its ratio says more than that of the clock, which depends on free cores.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.kept import RESULTS
from yeoron_bench.results import ended, facts, free_port, keep, need

PACKAGES = ("httpx", "kiwipiepy", "lxml", "scrapy", "trafilatura", "twisted")
SIDES = ("yeoron", "scrapy")
SECTIONS = ("politics", "society", "life", "euckr")
AT_ONCE = 16
LIMIT = 1800.0
ASKED = {"pages_per_minute": 3000, "ratio_to_scrapy": 1.5}

_SOURCE = """[[source]]
name = "{section}"
kind = "sitemap"
url = "{base}/news/{section}/sitemap.xml"
timezone = "UTC"
every = 600
rate = 100000
max_items = 1000000
"""
_SETTINGS = """[crawl]
allow_private_hosts = ["{host}"]
per_host = {at_once}
user_agent = "Yeoron (bench@example.org)"
"""


def play(corpus: str, port: int) -> None:
    """The simulated web's process: until its input ends."""
    import threading

    from yeoron_simweb.config import SimwebConfig
    from yeoron_simweb.serve import serve

    def end_with_parent() -> None:
        sys.stdin.read()
        os._exit(0)

    threading.Thread(target=end_with_parent, daemon=True).start()
    config = SimwebConfig(
        corpus=Path(corpus),
        port=port,
        speed=1e12,
        autostart=True,
        crawl_delay=0,
        sitemap_items=10**6,
    )
    serve(config, lambda url: print(url, flush=True))


@contextmanager
def web(corpus: str) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.crawl", "--play", corpus, str(free_port())]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        base = process.stdout.readline().strip()
        if not base:
            raise SystemExit("bench crawl: the simulated web did not start; see above.")
        # Everything is published at the first look.
        urllib.request.urlopen(f"{base}/news/politics/sitemap.xml", timeout=120).read()
        yield base
    finally:
        process.terminate()
        process.wait(30)


def measure(side: str, base: str, documents: int, folder: Path) -> dict[str, Any]:
    """One run of one side."""
    if side == "yeoron":
        host = base.removeprefix("http://")
        sources, settings = folder / "sources.toml", folder / "settings.toml"
        sources.write_text("".join(_SOURCE.format(section=s, base=base) for s in SECTIONS))
        settings.write_text(_SETTINGS.format(host=host, at_once=AT_ONCE))
        command = ["-m", "embedding.cli", "--settings", str(settings), "crawl", str(sources)]
        command += ["--documents", str(documents), "--for", f"{LIMIT:g}", "--json"]
    else:
        command = ["-m", "benchmarks.scrapyside", base, str(documents)]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, timeout=LIMIT + 120, check=False
    )
    if done.returncode:
        raise SystemExit(f"bench crawl: {side} ended with {done.returncode}: {done.stderr[-2000:]}")
    run = json.loads(done.stdout)
    keys = ("documents", "tokens", "seconds", "documents_per_minute")
    return {
        "side": side,
        **{key: run[key] for key in keys},
        "processor_ms_per_page": round(1000 * run["processor_seconds"] / run["documents"], 3),
        **{key: run[key] for key in ("memory_mb",) if key in run},
        "wall_s": round(time.monotonic() - began, 2),
        "load_1min": round(os.getloadavg()[0], 2),
    }


def bench_crawl(
    corpus: str,
    documents: int = 3000,
    repeats: int = 3,
    *,
    sides: Sequence[str] = SIDES,
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Interleaved runs of all sides; medians, and the medians of the paired ratios."""
    if "scrapy" in sides:
        need("scrapy", "it is measured beside ours; --side yeoron does without")
    runs: list[dict[str, Any]] = []
    with web(corpus) as base, tempfile.TemporaryDirectory() as folder:
        for _ in range(repeats):
            for side in sides:
                runs.append(measure(side, base, documents, Path(folder)))
                print(json.dumps(runs[-1]), flush=True)
    rates = {side: _of(runs, side, "documents_per_minute") for side in sides}
    costs = {side: _of(runs, side, "processor_ms_per_page") for side in sides}
    report: dict[str, Any] = {
        **facts("crawl", PACKAGES),
        "setting": {"corpus": Path(corpus).name, "documents": documents, "at_once": AT_ONCE},
        "asked": ASKED,
        "pages_per_minute": {side: statistics.median(values) for side, values in rates.items()},
        "processor_ms_per_page": {
            side: statistics.median(values) for side, values in costs.items()
        },
        "runs": runs,
    }
    if set(SIDES) <= set(rates):
        report["ratio_to_scrapy"] = _paired(rates["yeoron"], rates["scrapy"])
        report["processor_ratio_to_scrapy"] = _paired(costs["scrapy"], costs["yeoron"])
    file = keep(report, results=results)
    print(
        f"{report['pages_per_minute']} pages/min, ratio {report.get('ratio_to_scrapy')}, "
        f"by processor time {report.get('processor_ratio_to_scrapy')}; {file}"
    )
    return report


def _of(runs: list[dict[str, Any]], side: str, figure: str) -> list[float]:
    return [run[figure] for run in runs if run["side"] == side]


def _paired(ours: list[float], theirs: list[float]) -> float:
    """Median of the ratios of runs that were made one after the other."""
    return round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 3)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", nargs="?", default="generated")
    parser.add_argument("port", nargs="?", type=int)
    parser.add_argument("--play", action="store_true")
    parser.add_argument("--documents", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--side", action="append", choices=SIDES, help="both unless given")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    if given.play:
        play(given.corpus, given.port)
        return 0
    return ended(
        lambda: bench_crawl(
            given.corpus,
            given.documents,
            given.repeats,
            sides=given.side or SIDES,
            results=given.results,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
