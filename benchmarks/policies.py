"""Every way of synchronising where one node is slow: tokens a second against bsp, and the loss at
equal tokens against one node.

    python -m benchmarks policies english.txt.xz --words 2000000

Four nodes over real wires; a block of `block` tokens takes `block_s` seconds and at the slow node
ten times as long (or, with --turns, a block of any node is slow now and then). All learn the same
tokens: a common dealer hands out the text, block by block. Losses are of held-out text. A fast
node's `block_s` is longer than its work, so that the figures are those of the policies and not of
the cores. A node that is slower for good bounds bsp and ssp alike, unless blocks follow the speeds.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.kept import RESULTS
from benchmarks.unlike import Text, Wait, speeds, train
from embedding.kernel.errors import ConfigError
from embedding.models.config import LearningRateSchedule, ModelConfig
from yeoron_bench.corpora import cut, encode, sentences
from yeoron_bench.results import ended, facts, hardware, keep_and_print

PACKAGES = ("yeoron", "numpy", "numba", "pyarrow", "torch")
HELD_OUT = 100_000
ONE = "one node"
ASKED_SPEED = 2.5
ASKED_LOSS = 1.02
QUICK = ("ssp", "backup", "asp", "auto")
VARIANTS: dict[str, dict[str, Any]] = {
    "bsp": {"policy": "bsp"},
    "ssp": {"policy": "ssp"},
    "backup": {"policy": "backup"},
    "asp": {"policy": "asp"},
    "auto": {"policy": "auto"},
    "easgd": {"policy": "easgd"},
    "averaging": {"policy": "averaging"},
    "ssp-replay": {"policy": "ssp", "replay": 3.0},
    "sandblaster": {
        "policy": "sandblaster",
        "lbfgs_every": 8,
        "lbfgs_batch_tokens": 20_000,
        "lbfgs_iterations": 5,
    },
    "bsp-mean": {"policy": "bsp", "combine": "mean"},
    "averaging-mean": {"policy": "averaging", "combine": "mean"},
    "asp-4": {"policy": "asp", "n_push": 4, "n_fetch": 4},
    "bsp-balanced": {"policy": "bsp", "balance": True},
    "ssp-balanced": {"policy": "ssp", "balance": True},
}
"""Blocks are of one size but for the balanced ones, where they follow the speeds of the nodes.

With blocks of 5,000 tokens sandblaster goes through three old tokens for each fresh one in its
rounds (6 evaluations of 20,000 tokens each 8 blocks), as ssp-replay does by SGD.
"""


def read(corpus: Path, words: int, block: int, held_out: int = HELD_OUT) -> Text:
    """The first sentences are held out, those that follow are learnt."""
    lines = list(sentences(corpus, words + held_out))
    known = encode(lines)
    first = next((at for at, end in enumerate(known.sentences) if end >= held_out), len(lines))
    rest = lines[first:]
    if not rest:
        raise ConfigError(f"{corpus}: fewer than {held_out:,} words; a longer corpus is needed.")
    ends = known.sentences[first:] - known.sentences[first]
    blocks = [rest[start:end] for start, end in cut(ends, block)]
    return Text(known.words, known.counts, blocks, block, lines[:first])


@dataclass(frozen=True)
class Cluster:
    """The nodes of a run.

    nodes    how many
    block    tokens of a block
    block_s  seconds that a block takes at a fast node
    slower   times as many at a slow one
    turns    0: the last node is slow; above 0: the chance of any block to be a slow one
    """

    nodes: int = 4
    block: int = 5_000
    block_s: float = 0.1
    slower: float = 10.0
    turns: float = 0.0

    def waits(self) -> list[Wait]:
        """How long a block takes at each node, drawn anew for each run."""
        return speeds(self.nodes, self.block_s, self.slower, self.turns)


def bench_policies(
    corpus: Path,
    cluster: Cluster = Cluster(),
    *,
    variants: Sequence[str] = tuple(VARIANTS),
    words: int = 2_000_000,
    model: ModelConfig | None = None,
    held_out: int = HELD_OUT,
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Train once with each variant and once with one node; write dated files, print a table."""
    for variant in variants:
        if variant not in VARIANTS:
            raise ConfigError(f"--policy {variant}: one of {', '.join(VARIANTS)} is accepted.")
    model = model or ModelConfig(sample=0.0, schedule=LearningRateSchedule.LINEAR)
    text = read(corpus, words, cluster.block, held_out)
    machine = hardware()
    warm = replace(text, blocks=text.blocks[:2])
    train(warm, model, VARIANTS["bsp"], [lambda: 0.0])
    runs = {ONE: asdict(train(text, model, {"policy": "bsp"}, [lambda: 0.0]))}
    print(f"{ONE}: held-out loss {runs[ONE]['loss']:.4f}", file=sys.stderr)
    for variant in variants:
        sync = {"balance": False, **VARIANTS[variant]}
        run = runs[variant] = asdict(train(text, model, sync, cluster.waits()))
        print(
            f"{variant}: {run['tokens_per_second']:,.0f} tokens/s, held-out loss {run['loss']:.4f}",
            file=sys.stderr,
        )
    report = {
        **facts("policies", PACKAGES, machine),
        "config": {
            **asdict(cluster),
            "model": model.model_dump(mode="json"),
            "variants": {name: VARIANTS[name] for name in variants},
        },
        "corpus": {"file": corpus.name, "tokens": text.tokens, "vocabulary": len(text.words)},
        "summary": summary(runs),
        "runs": runs,
    }
    write(report, results)
    return report


def summary(runs: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Speed against bsp, loss against one node, and whether what was asked is met."""
    base, alone = runs.get("bsp"), runs[ONE]
    ratios = {}
    for variant, run in runs.items():
        speed = run["tokens_per_second"] / base["tokens_per_second"] if base else None
        loss = run["loss"] / alone["loss"]
        ratios[variant] = {
            "speed_to_bsp": None if variant == ONE else speed,
            "loss_to_one_node": loss,
            "diverges": not math.isfinite(run["loss"]) or run["longest_row"] > 1e3,
            "dropped": run["dropped_tokens"] / max(run["tokens"], 1),
            "quick_enough": speed is not None and speed >= ASKED_SPEED
            if variant in QUICK
            else None,
            "good_enough": loss <= ASKED_LOSS,
        }
    return ratios


def write(report: dict[str, Any], results: Path) -> None:
    kind = "turns" if report["config"]["turns"] else "slow"
    keep_and_print(report, results=results, part=kind)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="plain text, one sentence a line (.xz is read)")
    parser.add_argument("--policy", action="append", help=f"one of {', '.join(VARIANTS)}")
    parser.add_argument("--words", type=int, default=2_000_000)
    parser.add_argument("--block", type=int, default=5_000)
    parser.add_argument("--block-s", type=float, default=0.1)
    parser.add_argument("--slower", type=float, default=10.0)
    parser.add_argument("--turns", type=float, default=0.0)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    return ended(
        lambda: bench_policies(
            given.corpus,
            Cluster(
                block=given.block,
                block_s=given.block_s,
                slower=given.slower,
                turns=given.turns,
            ),
            variants=given.policy or tuple(VARIANTS),
            words=given.words,
            results=given.results,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
