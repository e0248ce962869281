"""kill -9 of random processes at random moments of a training on the platform's own services.

    python -m benchmarks chaos corpus.txt --shards 2 --gold wordsim353.tsv

supervisord runs the parameter server (with its shards), Dask's scheduler and a Dask worker for each
node, as `yeoron up` does; nodes learn their shares of a corpus. Kills hit the server, shards, whole
Dask workers, readers, gradient processes and aggregators. At the end every word's count must be
that of the corpus, every push applied once by every ledger, and the quality that of the same
training without kills: for each seed there is one of each, and the mean difference is told with
its interval. With `--calm 2` there is a second without kills, which differs from the first in
timing alone: how far such two are apart is what a difference of the kills must be seen against.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil

from benchmarks.chaosjudging import judge, verdict
from benchmarks.heldout import held_out_loss
from benchmarks.kept import RESULTS
from benchmarks.supervised import new_home, supervised
from embedding.cluster import dask_client
from embedding.exchange.client import ParameterClient
from embedding.kernel.records import Window
from embedding.nodetask import submit_node
from embedding.platform.services import Service, dask_services, server_service
from embedding.platform.supervisor import Supervisor
from embedding.settings import Settings
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import SnapshotStore
from embedding.text.config import TextConfig
from embedding.training.checks import check_options
from embedding.training.request import TrainRequest
from embedding.training.running import TRAINING_POOL, node_name, placed
from embedding.training.survey import CorpusSurvey
from embedding.worker.process.forking import forked
from embedding.worker.spec import CorpusShare, NodeSpec
from yeoron_bench.results import facts, free_port, keep

HELD_OUT = 0.02
LIMIT_S = 3600.0
PATIENCE_S = 180.0
"""A server that was killed may take so long to come back on a busy machine."""


@dataclass(frozen=True)
class Setting:
    """kills in a run of `nodes` nodes; words of the corpus and how often they are read.

    seeds   of the model and of the kills, from `first_seed` on; for each a run with kills, and
    calm    one or two without
    """

    kills: int = 10
    nodes: int = 2
    words: int = 2_000_000
    epochs: int = 3
    dim: int = 100
    policy: str = "ssp"
    shards: int = 1
    topology: str = "ps"
    groups: int = 0
    seeds: int = 3
    calm: int = 1
    first_seed: int = 1

    @property
    def runs(self) -> dict[str, int]:
        """Kills in each run of a seed, in the order of the runs."""
        again = {"again": 0} if self.calm > 1 else {}
        return {"quiet": 0, "killed": self.kills, **again}

    @property
    def victims(self) -> tuple[str, ...]:
        """What is killed in turn."""
        shard = ("shard",) if self.shards > 1 else ()
        return ("server", "gradient", *shard, "worker", "reader")


def split(corpus: Path, words: int, folder: Path) -> tuple[Path, list[str], Counter[str]]:
    """The first `words` words without a part of the lines, those lines, and counts of the rest."""
    taken: list[str] = []
    held_out: list[str] = []
    counts: Counter[str] = Counter()
    dice = random.Random(0)
    read, longest = 0, TextConfig().max_length
    with corpus.open(encoding="utf-8") as file:
        for line in file:
            if dice.random() < HELD_OUT:
                held_out.append(line)
                continue
            taken.append(line)
            kept_words = [word for word in line.split() if len(word) <= longest]
            counts.update(kept_words)
            if (read := read + len(kept_words)) >= words:
                break
    path = folder / "corpus.txt"
    path.write_text("".join(taken), encoding="utf-8")
    return path, held_out, counts


def write_settings(home: Path, setting: Setting, seed: int) -> Path:
    """A settings file whose services take free ports and keep everything under `home`."""
    path = home / "yeoron.toml"
    path.write_text(
        f"""
[paths]
home = {json.dumps(str(home))}
[ports]
dask = {free_port()}
dask_dashboard = {free_port()}
[cluster]
nodes = {setting.nodes}
[server]
port = {free_port()}
http_port = {free_port()}
checkpoint_every_s = 5.0
device = "cpu"
shards = {setting.shards}
[sync]
policy = {json.dumps(setting.policy)}
[model]
dim = {setting.dim}
sample = 0.0
schedule = "linear"
seed = {seed}
[text]
tokenizer = "whitespace"
mask = false
[node]
replay_ratio = 0.0
restarts = 1000
[exchange]
connect_timeout_s = {PATIENCE_S}
""",
        encoding="utf-8",
    )
    return path


def services(settings: Settings) -> list[Service]:
    """Server, Dask's scheduler and workers."""
    return [server_service(settings), *dask_services(settings)]


class Killer:
    """Kills processes of a platform; `killed` says which and when, by tokens learnt."""

    def __init__(self, supervisor: Supervisor, setting: Setting, seed: int) -> None:
        self.killed: list[tuple[str, int]] = []
        self._supervisor = supervisor
        self._setting = setting
        self._dice = random.Random(seed)

    def plan(self, kills: int, tokens: int) -> list[tuple[int, str]]:
        """When (tokens learnt) and what, in order."""
        kinds = self._setting.victims
        victims = [kinds[at % len(kinds)] for at in range(kills)]
        self._dice.shuffle(victims)
        moments = sorted(self._dice.uniform(0.03, 0.93) for _ in victims)
        return [(int(moment * tokens), what) for moment, what in zip(moments, victims, strict=True)]

    def kill(self, what: str, learnt: int) -> bool:
        """kill -9; False when there is none of the kind at the moment."""
        here = what in ("server", "shard")
        name = "server" if here else f"dask-worker-{self._dice.randrange(self._setting.nodes)}"
        try:
            process = psutil.Process(self._supervisor.pids()[name])
            if what in ("reader", "gradient"):
                pair = [p for p in process.children(recursive=True) if forked(p)]
                if len(pair) < 2:  # the reader has come to its end, or both are starting
                    return False
                pair.sort(key=psutil.Process.create_time)
                process = pair[("reader", "gradient").index(what)]
            elif what == "shard":
                rows = [p for p in process.children() if "shards.service" in " ".join(p.cmdline())]
                process = self._dice.choice(rows)
            process.kill()
        except (ValueError, LookupError, psutil.Error):
            return False
        self.killed.append((what, learnt))
        return True


def train(corpus: Path, setting: Setting, kills: int, seed: int) -> dict[str, Any]:
    """One training with so many kills: what the server says at the end, and its snapshot."""
    with (
        new_home("chaos") as home,
        supervised(write_settings(home, setting, seed), services) as (settings, supervisor),
        dask_client(settings) as client,
        placed(
            _request(settings, corpus, setting), settings.server_location, CorpusSurvey()
        ) as specs,
    ):
        killer = Killer(supervisor, setting, seed)
        line = settings.line().model_copy(update={"connect_timeout_s": PATIENCE_S})
        with ParameterClient(settings.server_location, node="bench", config=line) as server:
            began = time.monotonic()
            futures = [
                submit_node(client, spec, TRAINING_POOL, settings.paths.nodes)
                for spec in _specs(settings, corpus, setting, specs)
            ]
            total = setting.epochs * sum(1 for _ in _words(corpus))
            plan = killer.plan(kills, total)
            while not all(future.done() for future in futures):
                if time.monotonic() - began > LIMIT_S:
                    raise TimeoutError("the training stands still")
                learnt = _learnt(settings)
                due = bool(plan) and plan[0][0] <= learnt < total
                if due and killer.kill(plan[0][1], learnt):
                    plan.pop(0)
                time.sleep(0.1)
            for future in futures:
                future.result()
            seconds = time.monotonic() - began
            status = server.status()
            snapshot = _cut(server, status, settings)
        return {
            "killed": killer.killed,
            "not_killed": plan,
            "seconds": seconds,
            "status": status,
            "snapshot": snapshot,
        }


def _words(corpus: Path) -> Iterator[str]:
    with corpus.open(encoding="utf-8") as file:
        for line in file:
            yield from line.split()


def _learnt(settings: Settings) -> int:
    """Tokens that the server has counted, -1 while it is away: no call here waits for it."""
    address = f"http://127.0.0.1:{settings.server.http_port}/status"
    try:
        with urlopen(address, timeout=5.0) as answer:
            sources = json.load(answer)["sources"]
    except (OSError, ValueError, HTTPException):
        return -1
    return int(sources.get("corpus", {}).get("tokens", 0))


def _request(settings: Settings, corpus: Path, setting: Setting) -> TrainRequest:
    """What the nodes' places are made from."""
    topology = {"kind": setting.topology, "aggregators": setting.groups}
    asked = {"corpus": corpus, "nodes": setting.nodes, "topology": topology}
    request = TrainRequest.model_validate({**asked, "shards": setting.shards})
    request = request.model_copy(update={"sync": settings.sync, "exchange": settings.line()})
    check_options(request)
    return request


def _specs(
    settings: Settings, corpus: Path, setting: Setting, specs: Sequence[NodeSpec]
) -> list[NodeSpec]:
    plain = [
        NodeSpec(
            name=node_name(i),
            server=settings.server_location,
            corpus=CorpusShare(
                path=str(corpus), index=i, count=setting.nodes, epochs=setting.epochs
            ),
            text=settings.text,
            stream=settings.stream,
            model=settings.model,
            node=settings.node,
            exchange=settings.line(),
        )
        for i in range(setting.nodes)
    ]
    names = ("topology", "ring", "group", "aggregator")
    placed = []
    for spec, place in zip(plain, specs, strict=True):
        update = {name: getattr(place, name) for name in names}
        if place.topology.traits.replicas:
            update["exchange"] = spec.exchange.model_copy(
                update={"rows": place.exchange.rows, "compression": place.exchange.compression}
            )
        placed.append(spec.model_copy(update=update))
    return placed


def _cut(server: ParameterClient, status: dict[str, Any], settings: Settings) -> Snapshot:
    windows = status["windows"].values()
    bounds = [
        (datetime.fromisoformat(w["start"]), datetime.fromisoformat(w["end"])) for w in windows
    ]
    start, end = min(start for start, _ in bounds), max(end for _, end in bounds)
    ref = server.cut(Window(start.astimezone(UTC), end.astimezone(UTC)))
    opened = SnapshotStore(str(settings.paths.snapshots)).open(ref.id)
    _ = (opened.vectors, opened.contexts, opened.by_source)  # mapped while the folder is there
    return opened


def bench_chaos(
    corpus: Path, setting: Setting, gold: Sequence[Path] = (), *, results: Path = RESULTS
) -> dict[str, Any]:
    """For each seed trainings without kills and one with; the result is written after each."""
    began = time.monotonic()
    way = setting.topology if not setting.groups else f"groups{setting.groups}"
    part = f"{way}-{setting.policy}-s{setting.shards}"
    report = facts("chaos", ("numpy", "torch", "pyarrow", "distributed"))
    with tempfile.TemporaryDirectory() as folder:
        path, held_out, counts = split(corpus, setting.words, Path(folder))
        groups = []
        for seed in range(setting.first_seed, setting.first_seed + setting.seeds):
            snapshots, group = {}, {}
            for how, kills in setting.runs.items():
                trained = train(path, setting, kills, seed)
                snapshots[how] = trained["snapshot"]
                group[how] = judge(trained, counts, setting.epochs, list(gold))
            shared = set.intersection(*(set(shot.words) for shot in snapshots.values()))
            for how, snapshot in snapshots.items():
                group[how]["held_out_loss"] = held_out_loss(snapshot, held_out, shared)
                print(json.dumps({"seed": seed, how: group[how]}), flush=True)
            groups.append(group)
            report |= outcome(setting, began, groups)
            keep(report, results=results, part=part)
    print(json.dumps({"setting": report["setting"], "verdict": report["verdict"]}, indent=1))
    return report


def outcome(setting: Setting, began: float, groups: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The result of the seeds that there are."""
    return {
        "setting": asdict(setting),
        "minutes": round((time.monotonic() - began) / 60, 1),
        "verdict": verdict(groups),
        "runs": groups,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--gold", type=Path, action="append", default=[])
    for name, value in asdict(Setting()).items():
        option = "--" + name.replace("_", "-")
        parser.add_argument(option, type=type(value), default=value)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = vars(parser.parse_args(arguments))
    corpus, gold, results = given.pop("corpus"), given.pop("gold"), given.pop("results")
    with suppress(KeyboardInterrupt):
        bench_chaos(corpus, Setting(**given), gold, results=results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
