"""What replay priorities buy: tokens until the held-out loss is that of uniform replay at its end.

A stream in time order is learnt block by block in one pass, as a node learns it, without the
network: each tick trains a fresh block and `ratio` times as many replayed tokens. The memories
differ in nothing else: same blocks, same number of tokens, same seeds. Before a block is learnt
some of its pairs are scored (prequential loss); after it, a fixed sample of pairs from documents
that are never learnt, spread over the whole stream (held-out loss). Noise, subsampling and the
crawling side's priorities follow the counts of the past only; the vocabulary is fixed.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.dated import BLOCK, MIN_COUNT, Stream, read
from benchmarks.kept import RESULTS
from benchmarks.replaying import Run, run
from embedding.kernel.config import validate
from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray
from embedding.models.config import ModelConfig
from embedding.stream.config import StreamConfig
from embedding.stream.ring import of_sentences
from yeoron_bench.results import ended, facts, keep
from yeoron_lab.prioritised.initial import InitialPriorities

PACKAGES = ("numpy", "numba", "scipy")


@dataclass(frozen=True)
class Arm:
    """A memory: what it ranks by, whether the crawling side ranks first, a learning rate's factor.

    A faster learning rate with uniform replay is the control: what a knob buys that costs nothing.
    """

    kind: str
    crawler: bool = True
    rate: float = 1.0


UNIFORM = "uniform"
ARMS = {
    UNIFORM: Arm("uniform"),
    "uniform, rate x 1.1": Arm("uniform", rate=1.1),
    "loss": Arm("loss"),
    "loss, first the largest": Arm("loss", crawler=False),
    "gradient": Arm("gradient"),
    "gradient, first the largest": Arm("gradient", crawler=False),
}
HEAD = f"{'memory':29}{'tokens to the loss of uniform':>30}{'held-out, nats':>26}"
HEAD += f"{'prequential':>13}{'CPU s':>8}"


def bench_replay(
    corpus: Path,
    words: int = 500_000,
    seeds: int = 5,
    *,
    ratio: float = 3.0,
    memory: int = 200_000,
    config: ModelConfig | None = None,
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Compare the memories, print a table, write a dated JSON file; returns what was written.

    words   how many of the corpus are used, evenly over its dates
    ratio   replayed tokens for each fresh one
    memory  tokens that the replay memory holds
    """
    if seeds < 1 or words < 1 or not 0 < ratio <= 100:
        raise InputError(
            f"{seeds} seeds, {words} words, ratio {ratio}: at least one seed, one word and a ratio "
            "above 0 (at most 100) are needed to compare memories."
        )
    config = config or ModelConfig()
    settings = validate(StreamConfig, {"replay_tokens": memory}, "bench replay")
    stream = read(corpus, words, config)
    runs = _runs(stream, config, settings, seeds, ratio)
    report = {
        **facts("replay", PACKAGES),
        "config": {
            "model": config.model_dump(mode="json"),
            "stream": settings.model_dump(mode="json"),
            "ratio": ratio,
            "block": BLOCK,
            "seeds": seeds,
        },
        "corpus": {
            "file": corpus.name,
            "fresh_tokens": stream.tokens,
            "vocabulary": len(stream.counts),
            "sentences": stream.sentences,
        },
        "arms": {arm: summary(arm_runs, runs[UNIFORM]) for arm, arm_runs in runs.items()},
    }
    keep(report, results=results, part=corpus.name.split(".")[0])
    print(table(report))
    return report


def _runs(
    stream: Stream, config: ModelConfig, settings: StreamConfig, seeds: int, ratio: float
) -> dict[str, list[Run]]:
    """Every arm with every seed, the arms in turn."""
    measured_by: dict[str, list[FloatArray] | None] = {"uniform": None}
    for measure in ("loss", "gradient"):
        crawler = InitialPriorities(measure, sample=config.sample, min_count=MIN_COUNT)
        measured_by[measure] = [
            of_sentences(crawler.priorities(block), block.documents) for block in stream.blocks
        ]
    runs: dict[str, list[Run]] = {arm: [] for arm in ARMS}
    for seed in range(seeds + 1):
        for name, arm in ARMS.items():
            result = run(
                stream if seed else stream.first(2),  # compile before the clock runs
                measured_by[arm.kind] if arm.crawler else None,
                config.model_copy(update={"learning_rate": arm.rate * config.learning_rate}),
                settings.model_copy(update={"replay": arm.kind}),
                ratio=ratio,
                seed=seed,
            )
            if seed:
                runs[name].append(result)
                print(f"seed {seed}, {name}: {result.curve()[-1]:.4f} nats", file=sys.stderr)
    return runs


def summary(runs: Sequence[Run], uniform: Sequence[Run]) -> dict[str, Any]:
    """Figures of one memory, a list with an entry for each seed."""
    until = [
        arm_run.until(float(base.curve()[-1])) for arm_run, base in zip(runs, uniform, strict=True)
    ]
    return {
        "tokens_to_reach_uniform": until,
        "share_of_tokens": [
            None if n is None else n / base.tokens[-1]
            for n, base in zip(until, uniform, strict=True)
        ],
        "held_out": [float(arm_run.curve()[-1]) for arm_run in runs],
        "prequential": [statistics.fmean(arm_run.prequential) for arm_run in runs],
        "kept_words": [arm_run.kept for arm_run in runs],
        "cpu_seconds": [arm_run.cpu for arm_run in runs],
        "mean_weight_of_a_token": [statistics.fmean(arm_run.weight) for arm_run in runs],
        "rank_correlation": {
            name: statistics.fmean(ranks)
            for name in ("first", "again")
            if (ranks := [rank for arm_run in runs for rank in getattr(arm_run, name)])
        },
        "curves": [
            {
                "tokens": arm_run.tokens[:: max(1, len(arm_run.tokens) // 50)],
                "held_out": [round(float(x), 5) for x in arm_run.curve()][
                    :: max(1, len(arm_run.tokens) // 50)
                ],
            }
            for arm_run in runs
        ],
    }


def table(report: dict[str, Any]) -> str:
    """The result in plain text: medians over the seeds, least and most in brackets."""
    corpus, settings = report["corpus"], report["config"]
    lines = [
        (
            f"{corpus['file']}: {corpus['fresh_tokens']:,} fresh tokens, {corpus['vocabulary']:,} "
            f"words, {settings['ratio']:g} replayed tokens for each, "
            f"{settings['seeds']} seeds; medians (least to most)."
        ),
        "",
        HEAD,
    ]
    for arm, figures in report["arms"].items():
        losses = figures["held_out"]
        lines.append(
            f"{arm:29}{_reach(figures['share_of_tokens']):>30}"
            f"{_spread(losses, '.4f'):>26}"
            f"{statistics.median(figures['prequential']):>13.4f}"
            f"{statistics.median(figures['cpu_seconds']):>8.1f}"
        )
    lines += ["", *verdict(report["arms"])]
    for name in ("loss", "gradient"):
        rank = report["arms"][name]["rank_correlation"]
        lines.append(
            f"Rank correlation with a sentence's {name}{' a token' if name == 'gradient' else ''}: "
            f"{rank['first']:.2f} of the crawling side's priority (first time), "
            f"{rank['again']:.2f} of its own figure when it was fresh (replayed)."
        )
    return "\n".join(lines)


def _reach(shares: Sequence[float | None]) -> str:
    """Median share of uniform's tokens (least to most); `never` where its loss was not reached."""
    values = sorted(math.inf if share is None else share for share in shares)
    low, middle, high = (
        "never" if math.isinf(value) else f"{value:.1%}"
        for value in (values[0], values[len(values) // 2], values[-1])
    )
    return f"{middle} ({low} to {high})"


def _spread(values: Sequence[float], form: str) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def verdict(arms: dict[str, Any]) -> list[str]:
    """A sentence a memory: better or worse with every seed, or no more than seeds differ."""
    base = arms[UNIFORM]["held_out"]
    lines = []
    for arm, figures in arms.items():
        if arm == UNIFORM:
            continue
        gaps = [ours - theirs for ours, theirs in zip(figures["held_out"], base, strict=True)]
        gap = f"{statistics.median(gaps):+.4f} nats at the end"
        if max(gaps) < 0:
            lines.append(f"{arm}: better than uniform with every seed ({gap}).")
        elif min(gaps) > 0:
            lines.append(f"{arm}: worse than uniform with every seed ({gap}).")
        else:
            lines.append(f"{arm}: no difference from uniform that every seed shows ({gap}).")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="dated JSONL, or text with a sentence a line")
    parser.add_argument("--words", type=int, default=500_000, help="words of the corpus to use")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ratio", type=float, default=3.0, help="replayed tokens a fresh token")
    parser.add_argument("--memory", type=int, default=200_000, help="tokens in the replay memory")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    return ended(
        lambda: bench_replay(
            given.corpus,
            given.words,
            given.seeds,
            ratio=given.ratio,
            memory=given.memory,
            results=given.results,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
