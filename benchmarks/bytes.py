"""Bytes a trained token: the parameter server with each compression against dense all-reduce.

    python -m benchmarks bytes english.txt.xz --gold wordsim353.tsv --rate 100e6

What nodes and server send each other is metered by the server, both directions, ids, counts and
headers included; each byte counts once. Dense all-reduce of the same model is computed, not run: a
ring sends 2 (n-1)/n times the tables from each of n nodes a step, and a step is one block of each
node (Patarasuk and Yuan 2009), so each node sends that for its block's tokens, and what one sends
another one gets.

With --rate the trainings are run again in a network namespace whose loopback is throttled (tc), so
that all nodes and the server share a link of so many bits a second.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.kept import RESULTS
from benchmarks.link import throttled
from embedding.kernel.errors import InputError, YeoronError
from yeoron_bench.results import ended, facts, hardware, keep_and_print
from yeoron_bench.train import Setting, judge, prepared

PACKAGES = ("yeoron", "numpy", "numba", "pyarrow", "torch", "gensim")
REFERENCE = "fp16"
SIDES: tuple[str, ...] = (
    "fp16",
    "none",
    "fp16+changes",
    "threshold+changes",
    "threshold=0.005:1.5+changes",
    "threshold=0.005:2+changes",
    "onebit+changes",
    "fp16+cache",
)
KEPT = (
    "tokens_trained",
    "vocabulary",
    "words_per_second",
    "loss",
    "bytes_per_entry",
    "bytes_pushed_per_token",
    "bytes_pulled_per_token",
    "bytes_by_part",
)
CACHE_MB = 256
THROTTLED_WORDS = 1_500_000
LEAST_SHOWN = 0.02
OPTIONS = {"threshold": "--threshold", "topk": "--top-share"}
PULLS = {"": [], "cache": [f"--cache-mb={CACHE_MB}"], "changes": ["--pulls=changes"]}


def options_of(side: str) -> list[str]:
    """The options of `yeoron train` for a side such as `threshold+changes` or `fp16+cache`.

    A number after the kind is its own: `topk=0.05`; `threshold=0.01:1.5` has the least step and the
    relative one.
    """
    way, _, pulls = side.partition("+")
    kind, _, value = way.partition("=")
    value, _, relative = value.partition(":")
    if pulls not in PULLS:
        raise InputError(f"side {side}: + is followed by {' or '.join(filter(None, PULLS))}.")
    options = [f"--compression={kind}", *PULLS[pulls]]
    if relative:
        options.append(f"--relative-threshold={relative}")
    if value:
        if kind not in OPTIONS:
            raise InputError(f"side {side}: only {' and '.join(OPTIONS)} take a number.")
        options.append(f"{OPTIONS[kind]}={value}")
    return options


def train(
    corpus: Path,
    side: str,
    nodes: int,
    setting: Setting,
    seed: int,
    block: int,
    before: Sequence[str] = (),
) -> dict[str, Any]:
    """One training as a process of its own; its figures, and its vectors judged."""
    with tempfile.TemporaryDirectory() as folder:
        store, vectors = f"{folder}/store", Path(folder) / "vectors.bin"
        module = [sys.executable, "-m", "embedding.cli"]
        chosen = [*options_of(side), f"--nodes={nodes}", f"--seed={seed}", *setting.options()]
        chosen.append(f"--block-tokens={block}")
        done = run([*before, *module, "train", str(corpus), *chosen, "--json", "--out", store])
        export = ["export", "vectors", store, "--format=word2vec", f"--out={vectors}"]
        run([*module, *export])
        answer = json.loads(done)
        figures = {name: answer[name] for name in KEPT}
        return {**figures, "vectors": vectors.read_bytes()}


def run(command: list[str], timeout: float | None = None) -> str:
    """What a command says; YeoronError with the end of its errors when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode:
        raise YeoronError(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
    return done.stdout


def dense(vocabulary: int, dim: int, nodes: int, block: float) -> float:
    """Bytes a token that a ring all-reduce of both tables (float32) would send."""
    # One node has nobody to reduce with.
    return 2 * (nodes - 1) / nodes * 2 * vocabulary * dim * 4 / block


def block_tokens(nodes: int, asked: int | None = None) -> int:
    """The block of one node in `yeoron train`."""
    from embedding.training.request import TrainRequest

    given = {"corpus": Path("-"), "nodes": nodes, "block_tokens": asked}
    request = TrainRequest.model_validate(given)
    return request.node_config.block_tokens


def measured(
    corpus: Path,
    side: str,
    nodes: int,
    setting: Setting,
    seed: int,
    block: int,
    gold: Sequence[Path],
) -> dict[str, Any]:
    figures = train(corpus, side, nodes, setting, seed, block)
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(figures.pop("vectors"))
        file.flush()
        quality = judge(Path(file.name), gold)
    sent = figures["bytes_pushed_per_token"] + figures["bytes_pulled_per_token"]
    ring = dense(figures["vocabulary"], setting.dim, nodes, block)
    print(f"{nodes} nodes, {side}, seed {seed}: {sent:.1f} B/token, {quality}", file=sys.stderr)
    return {
        **figures,
        "side": side,
        "nodes": nodes,
        "seed": seed,
        "quality": quality,
        "bytes_per_token": sent,
        "dense_bytes_per_token": ring,
    }


def summary(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over seeds by nodes and side, and what they are of all-reduce and of fp16."""
    medians = []
    for nodes in dict.fromkeys(run["nodes"] for run in runs):
        of = [run for run in runs if run["nodes"] == nodes]
        for side in dict.fromkeys(run["side"] for run in of):
            own = [run for run in of if run["side"] == side]
            names = ("bytes_pushed_per_token", "bytes_pulled_per_token", "bytes_per_token")
            row: dict[str, float | None] = {
                name: statistics.fmean(run[name] for run in own) for name in names
            }
            dense = statistics.fmean(run["dense_bytes_per_token"] for run in own)
            sent = statistics.fmean(run["bytes_per_token"] for run in own)
            row |= {"dense": dense, "dense / bytes": dense / sent}
            row["loss"] = statistics.fmean(run["loss"] for run in own)
            judged = [run["quality"]["mean"] for run in own if run["quality"]]
            row["quality"] = statistics.fmean(judged) if judged else None
            row["spread"] = statistics.stdev(judged) if len(judged) > 1 else None
            medians.append({"nodes": nodes, "side": side, **row})
    return medians


@dataclass(frozen=True)
class Plan:
    """What is trained.

    sides  how rows are written
    nodes  numbers of nodes; block: tokens of a node's block, None: as `yeoron train` has it
    words  of the corpus, None: all
    seeds  trainings of each
    """

    sides: Sequence[str] = SIDES
    nodes: Sequence[int] = (2, 4)
    block: int | None = None
    words: int | None = None
    seeds: int = 1


def bench_bytes(
    corpus: Path,
    plan: Plan,
    *,
    gold: Sequence[Path] = (),
    rate: float | None = None,
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Measure; write a dated result file."""
    setting, load = Setting(), hardware()
    blocks = {n: block_tokens(n, plan.block) for n in (*plan.nodes, 2)}
    with prepared(corpus, plan.words, gold) as plain:
        runs = [
            measured(plain, side, n, setting, 1 + seed, blocks[n], gold)
            for seed in range(plan.seeds)
            for n in plan.nodes
            for side in plan.sides
        ]
    speeds = []
    if rate is not None:
        with prepared(corpus, THROTTLED_WORDS) as plain, ExitStack() as stack:
            before = stack.enter_context(throttled(int(rate)))
            for side in plan.sides:
                run_ = train(plain, side, 2, setting, 1, blocks[2], before)
                del run_["vectors"]
                speeds.append({"side": side, **run_})
    report = {
        **facts("bytes", PACKAGES, load),
        "corpus": {"file": corpus.name, "words": plan.words, "throttled_words": THROTTLED_WORDS},
        "setting": vars(setting),
        "blocks": {str(n): blocks[n] for n in plan.nodes},
        "rate": rate,
        "summary": summary(runs),
        **{f"bytes a token with {n} nodes, first seed": account(runs, n) for n in plan.nodes},
        "throttled": speeds,
        "runs": runs,
    }
    keep_and_print(report, results=results)
    return report


def account(runs: Sequence[dict[str, Any]], nodes: int) -> dict[str, dict[str, float]]:
    """Where each byte goes: bytes a token by kind of message, direction and part, for each side."""
    first: dict[str, dict[str, Any]] = {}
    for run in runs:
        if run["nodes"] == nodes:
            first.setdefault(run["side"], run)
    parts = {part for run in first.values() for part in run["bytes_by_part"]}
    sizes = {
        part: {
            side: run["bytes_by_part"].get(part, 0) / run["tokens_trained"]
            for side, run in first.items()
        }
        for part in parts
    }
    shown = {part: max(row.values()) for part, row in sizes.items()}
    return {p: sizes[p] for p in sorted(shown, key=lambda p: -shown[p]) if shown[p] >= LEAST_SHOWN}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="plain text, one sentence a line (.xz is read)")
    parser.add_argument("--side", action="append", dest="sides")
    parser.add_argument("--nodes", type=int, action="append")
    parser.add_argument("--block", type=int)
    parser.add_argument("--words", type=int)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--gold", type=Path, action="append", default=[])
    parser.add_argument("--rate", type=float)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    return ended(
        lambda: bench_bytes(
            given.corpus,
            Plan(
                sides=given.sides or SIDES,
                nodes=given.nodes or (2, 4),
                block=given.block,
                words=given.words,
                seeds=given.seeds,
            ),
            gold=given.gold,
            rate=given.rate,
            results=given.results,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
