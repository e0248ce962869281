"""Do the stream and a corpus file call the same words? The same texts go both ways.

    python -m benchmarks paths petitions.jsonl --from 2020-01-01 --nodes 1

The simulated web plays a dated corpus month by month, and nodes crawl it, as in the demo but
without Airflow: a server and nodes in processes of their own, each month once the last one is cut.
`yeoron train --dated` reads a file of the same texts, with the sources, authors and times that the
crawl finds. Nothing is rehearsed: words are called by counts and by the use of documents.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx

from benchmarks.kept import RESULTS
from embedding.crawl.config import CrawlConfig
from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.kernel.config import WITH_SECRETS
from embedding.kernel.ports import address_of, listen_on
from embedding.kernel.records import Window, WindowUnit
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.snapshots.store import SnapshotStore
from embedding.sources.config import load_sources
from embedding.text.config import TextConfig
from embedding.trends.report import build_report
from embedding.trends.rows import RANKINGS, TrendReport
from embedding.worker.config import NodeConfig
from embedding.worker.spec import NodeSpec
from yeoron_bench.results import ended, facts, keep_and_print
from yeoron_demo.pace import PlayLimit, PlayProgress
from yeoron_lab.ports import lasting_port
from yeoron_simweb.app import create_app
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.corpus import PlaybackCorpus
from yeoron_simweb.library import Library
from yeoron_simweb.resolve import resolve_corpus
from yeoron_simweb.serve import server as web_server
from yeoron_simweb.sources import PART_OF_SOURCE, sources_toml

SHARES = {"politics": 0.3, "society": 0.15, "life": 0.15, "euckr": 0.1, "board": 0, "comments": 0.3}
"""Of the texts, by part of the simulated web; its board would need a browser."""
MIN_COUNT = 4
MONTH_SECONDS = 30.0
"""Least wall seconds of a month. Quicker, a busy crawler's clock is days behind the web's, and
texts that seem to come from the future have no date."""
QUIET = {"replay_ratio": 0.0, "rehearsal_passes": 0.0}
LOOKS_S = 0.5
Called = dict[str, dict[str, set[str]]]
"""Words that are called, by window and ranking."""


def write_file(corpus: PlaybackCorpus, path: Path) -> None:
    """The texts as a dated file, with the source and time that the crawl gives each."""
    names = {part: name for name, part in PART_OF_SOURCE.items()}
    with path.open("w", encoding="utf-8") as file:
        for item in Library.build(corpus.documents, SHARES).items:
            source = names[item.part]
            line = {
                "date": item.iso,
                "source": source,
                "text": f"{item.title}\n{item.text}" if item.titled else item.text,
                "author": item.author,
            }
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def in_common(first: Called, other: Called) -> dict[str, tuple[int, int]]:
    """Words that both call and that either calls, by ranking, and in `any` whatever the ranking."""
    counts = {}
    for name in (*RANKINGS, "any"):
        both = either = 0
        for label in {*first, *other}:
            each, rest = (
                set().union(*side.get(label, {}).values())
                if name == "any"
                else side.get(label, {}).get(name, set())
                for side in (first, other)
            )
            both, either = both + len(each & rest), either + len(each | rest)
        counts[name] = both, either
    return counts


def called(store: SnapshotStore) -> Called:
    """What the reports of a store call."""
    reports = [build_report(store, ref.id) for ref in store.list()]
    return {report.snapshot.label: _words(report) for report in reports}


def _words(report: TrendReport) -> dict[str, set[str]]:
    return {name: {row.word for row in report.significant(name)} for name in RANKINGS}


def _serve(config: str, dim: int) -> None:
    from embedding.server.service import ParameterServer

    chosen = ServerConfig.model_validate_json(config)
    ParameterServer(chosen, SyncConfig(policy="ssp"), dim=dim).serve_forever()


def _read(spec: str) -> None:
    from embedding.worker.process.node import run_node

    run_node(NodeSpec.model_validate_json(spec), lambda: False)


@contextmanager
def playing(config: SimwebConfig, corpus: PlaybackCorpus) -> Iterator[str]:
    """The simulated web in a thread; its address."""
    with listen_on("127.0.0.1", 0) as listener:
        web = web_server(create_app(config, corpus))
        sockets = {"sockets": [listener]}
        thread = threading.Thread(target=web.run, kwargs=sockets, daemon=True)
        thread.start()
        while not web.started:
            time.sleep(0.05)
        yield f"http://{address_of(listener)}"
        web.should_exit = True
        thread.join()


def crawl(config: SimwebConfig, corpus: PlaybackCorpus, folder: Path, nodes: int) -> SnapshotStore:
    """Read the corpus as a stream; a snapshot of each month."""
    model, line = ModelConfig(), ExchangeConfig(connect_timeout_s=120)
    windows = sorted(
        {Window.holding(each.when, WindowUnit.MONTH) for each in corpus.documents},
        key=lambda window: window.start,
    )
    server = ServerConfig(
        port=lasting_port(),
        state_dir=folder / "checkpoints",
        snapshots=str(folder / "snapshots"),
        min_count=MIN_COUNT,
        config_digest=model.digest(),
        window=WindowUnit.MONTH,
        cut="watermark",
        source_idle_s=4.0,
        convergence_seconds=86_400,
    )
    context = get_context("spawn")
    with playing(config, corpus) as base:
        (folder / "sources.toml").write_text(sources_toml(base, rendered=False), encoding="utf-8")
        processes = [context.Process(target=_serve, args=(server.model_dump_json(), model.dim))]
        location, names = f"grpc://127.0.0.1:{server.port}", tuple(f"n{at}" for at in range(nodes))
        for name in names:
            spec = NodeSpec(
                name=name,
                peers=names,
                server=location,
                sources=tuple(load_sources(folder / "sources.toml")),
                crawl=CrawlConfig(
                    frontier=f"sqlite:///{folder / 'frontier' / 'yeoron.db'}",
                    allow_private_hosts=(base.removeprefix("http://"),),
                    replay_clock_url=f"{base}/clock.json",
                    extract_processes=0,
                    rate=200.0,
                    per_host=4,
                ),
                text=TextConfig(tokenizer="kiwi"),
                model=model,
                node=NodeConfig(**QUIET),
                min_count=MIN_COUNT,
                exchange=line,
            )
            given = spec.model_dump_json(context=WITH_SECRETS)
            processes.append(context.Process(target=_read, args=(given,)))
        for process in processes:
            process.start()
        try:
            with ParameterClient(location, node="looker", config=line) as client:
                _play(base, client, windows, nodes)
        finally:
            for process in reversed(processes):
                process.terminate()
                process.join(60)
    return SnapshotStore(str(folder / "snapshots"))


def _play(base: str, client: ParameterClient, windows: Sequence[Window], nodes: int) -> None:
    """Play each month once the one before is cut, until all are."""
    while not _ready(client.status(), nodes):
        time.sleep(LOOKS_S)
    limit = PlayLimit(windows)
    with httpx.Client(timeout=60, trust_env=False) as web:
        begun = False
        while True:
            stats = web.get(f"{base}/control/stats").json()
            seen = PlayProgress.of(stats, client.status())
            if len(seen.cut) == len(windows):
                return
            until = limit.until(seen)
            asked = {"unlearnt": seen.unlearnt, **({"until": until} if until < math.inf else {})}
            web.post(f"{base}/control/pace", params=asked)
            if not begun:
                web.post(f"{base}/control/start")
            begun = True
            time.sleep(LOOKS_S)


def _ready(status: Mapping[str, Any], nodes: int) -> bool:
    reports = [node["report"] or {} for node in status["nodes"].values()]
    warm = [
        report
        for report in reports
        if "event_now" in report and report.get("prepared") and report.get("warm")
    ]
    return len(warm) >= nodes


def train(path: Path, out: Path) -> SnapshotStore:
    """Read the file by `yeoron train`; a snapshot of each month."""
    settings = {f"YEORON_NODE__{name.upper()}": str(value) for name, value in QUIET.items()}
    options = ["--tokenizer", "kiwi", "--dated", "--window", "month", "--min-count", str(MIN_COUNT)]
    command = [sys.executable, "-m", "embedding.cli", "train", str(path), *options]
    subprocess.run([*command, "--out", str(out)], check=True, env={**os.environ, **settings})
    return SnapshotStore(str(out))


def bench_paths(
    corpus: Path, first: date | None, nodes: int, folder: Path, results: Path = RESULTS
) -> None:
    """Run both and write what they call in common."""
    folder.mkdir(parents=True)
    config = SimwebConfig(
        corpus=corpus,
        first_day=first,
        shares=SHARES,
        seconds_per_month=MONTH_SECONDS,
        max_backlog=100,
        crawl_delay=0,
    )
    texts = resolve_corpus(config)
    write_file(texts, folder / "texts.jsonl")
    report = facts("paths", ("kiwipiepy", "numpy", "torch"))
    stream = called(crawl(config, texts, folder, nodes))
    file = called(train(folder / "texts.jsonl", folder / "file"))
    shared = in_common(stream, file)
    rows = [
        f"| {name} | {both} | {either} | {both / either if either else 1:.3f} |"
        for name, (both, either) in shared.items()
    ]
    table = "\n".join(
        ["| ranking | called by both | by either | share |", "|---|---|---|---|", *rows]
    )
    apart = {
        label: {
            name: {"stream": sorted(left - other), "file": sorted(other - left)}
            for name in RANKINGS
            for left, other in [(stream[label][name], file[label][name])]
            if left != other
        }
        for label in sorted({*stream} & {*file})
    }
    report |= {
        "command": f"python -m benchmarks paths {corpus.name} --nodes {nodes}",
        "nodes": nodes,
        "documents": len(texts.documents),
        "in_common": {name: list(counts) for name, counts in shared.items()},
        "apart": apart,
    }
    keep_and_print(report, table, results=results)


def main(arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog="benchmarks paths", description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--from", dest="first", type=date.fromisoformat)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=RESULTS / f"paths-{int(time.time())}")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    return ended(
        lambda: bench_paths(given.corpus, given.first, given.nodes, given.folder, given.results)
    )
