"""What each topology costs and learns: speed, bytes by way, loss after the same tokens.

    python -m benchmarks topology english.txt.xz --words 2000000 --nodes 2 --nodes 4

Sides: `ps`, `allreduce`, `hybrid`, `host` (one group: all nodes push as one), `groups` (two
groups, asynchronous to each other) and `servers` (two server groups with a replica each, which
exchange once a second; `servers-slow`: every four seconds), each with every number of nodes, and
`ps-1` as the reference.
Each is one `yeoron train` as a process of its own with the same settings; runs are interleaved and
medians are given. All nodes share this machine's cores, so speed says what a topology costs here,
not what it gains on a network; bytes are the same on any network. Processor time is that of all
processes of a side, which other load disturbs less than the clock.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.kept import RESULTS
from embedding.kernel.errors import InputError
from yeoron_bench.results import ended, facts, keep_and_print
from yeoron_bench.train import Setting, call, judge, prepared, warm_up

PACKAGES = ("yeoron", "numpy", "numba", "pyarrow", "torch", "distributed")
KINDS = {
    "ps": ("--topology=ps", "--sync=ssp"),
    "allreduce": ("--topology=allreduce", "--sync=bsp"),
    "hybrid": ("--topology=hybrid", "--sync=bsp"),
    "host": ("--topology=ps", "--aggregators=1", "--sync=ssp"),
    "groups": ("--topology=ps", "--aggregators=2", "--sync=asp"),
    "servers": ("--server-groups=2", "--exchange-every=1", "--sync=ssp"),
    "servers-slow": ("--server-groups=2", "--exchange-every=4", "--sync=ssp"),
}
REFERENCE = "ps-1"
Run = dict[str, Any]


def sides(kinds: Sequence[str], nodes: Sequence[int]) -> list[str]:
    """`ps-1` and each kind with each number of nodes that it makes sense with."""
    for kind in kinds:
        if kind not in KINDS:
            raise InputError(f"side {kind!r}: one of {', '.join(KINDS)} is accepted.")
    sides_of = [
        f"{kind}-{n}" for n in nodes for kind in kinds if n > (2 if kind == "groups" else 1)
    ]
    return [REFERENCE, *(side for side in sides_of if side != REFERENCE)]


def cpu_seconds() -> float:
    """Processor time of all processes that this one has waited for, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_side(side: str, corpus: Path, setting: Setting, seed: int, gold: Sequence[Path]) -> Run:
    kind, _, nodes = side.rpartition("-")
    load, cpu = os.getloadavg()[0], cpu_seconds()
    with tempfile.TemporaryDirectory() as folder:
        store, vectors = str(Path(folder) / "store"), Path(folder) / "vectors"
        options = [*setting.options(), *KINDS[kind], f"--nodes={nodes}", f"--seed={seed}"]
        command = ("train", str(corpus), *options, "--json", "--out", store)
        trained, seconds = call("embedding.cli", *command)
        cpu = cpu_seconds() - cpu
        quality = {}
        if gold:
            out = ("--format=word2vec", f"--out={vectors}")
            call("embedding.cli", "export", "vectors", store, *out)
            quality = judge(vectors, gold)
    tokens = trained["tokens_trained"]
    transports = trained["transports"]
    waited = [
        float(node["topology"].get("waited_s", 0.0))
        for node in trained["nodes"].values()
        if "topology" in node
    ]
    return {
        **{name: trained[name] for name in ("tokens_trained", "vocabulary", "loss")},
        **{name: trained[name] for name in ("words_per_second", "train_seconds", "peak_memory")},
        "process_seconds": seconds,
        "cpu_seconds": cpu,
        "tokens_per_cpu_second": tokens / cpu,
        "bytes_per_token": {name: n / tokens for name, n in transports["bytes"].items()},
        "rows_per_token": {name: n / tokens for name, n in transports["rows"].items()},
        "density": transports["density"],
        "dense_rows": transports["dense_rows"],
        "waited_s": max(waited, default=0.0),
        "quality": quality,
        "load_1min": load,
    }


def summary(runs: dict[str, list[Run]]) -> dict[str, Run]:
    """Medians by side, and the loss against that of one node."""

    def middle(side: str, name: str) -> float:
        return float(statistics.median(run[name] for run in runs[side]))

    figures = {}
    for side, several in runs.items():
        names = ("words_per_second", "tokens_per_cpu_second", "cpu_seconds", "loss", "waited_s")
        figures[side] = {
            **{name: middle(side, name) for name in names},
            "loss_to_one_node": middle(side, "loss") / middle(REFERENCE, "loss"),
            "bytes_per_token": several[-1]["bytes_per_token"],
            "dense_rows": several[-1]["dense_rows"],
            "quality": several[-1]["quality"].get("mean"),
        }
    return figures


def bench_topology(
    corpus: Path,
    *,
    nodes: Sequence[int] = (2, 4),
    kinds: Sequence[str] = tuple(KINDS),
    words: int | None = 2_000_000,
    repeats: int = 1,
    dim: int = 100,
    gold: Sequence[Path] = (),
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Measure; write a dated JSON file and a table beside it, and print the table."""
    chosen = sides(kinds, nodes)
    setting = Setting(dim=dim)
    report: dict[str, Any] = {
        **facts("topology", PACKAGES),
        "corpus": {"file": corpus.name, "words": words},
        "config": asdict(setting),
        "repeats": repeats,
    }
    runs: dict[str, list[Run]] = {side: [] for side in chosen}
    with prepared(corpus, words, gold) as plain:
        warm_up(plain, setting)
        for repeat in range(repeats):
            for side in chosen[repeat % len(chosen) :] + chosen[: repeat % len(chosen)]:
                runs[side].append(run_side(side, plain, setting, repeat + 1, gold))
                last = runs[side][-1]
                print(f"{side:<12} {last['words_per_second']:>10,.0f} words/s", flush=True)
    report |= {"summary": summary(runs), "runs": runs}
    keep_and_print(report, results=results)
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="plain text, one sentence a line (.xz is read)")
    parser.add_argument("--nodes", type=int, action="append", help="2 and 4 unless given")
    parser.add_argument("--side", action="append", choices=list(KINDS), help="all unless given")
    parser.add_argument("--words", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--gold", type=Path, action="append", default=[])
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    return ended(
        lambda: bench_topology(
            given.corpus,
            nodes=given.nodes or (2, 4),
            kinds=given.side or tuple(KINDS),
            words=given.words,
            repeats=given.repeats,
            dim=given.dim,
            gold=given.gold,
            results=given.results,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
