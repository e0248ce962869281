"""Held-out loss of `yeoron train` with shared tables, to that of one node at equal tokens.

Whole commands, nodes alike. The first sentences are held out and scored by the snapshot's tables.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.bytes import run
from benchmarks.kept import RESULTS
from benchmarks.policies import HELD_OUT, read
from benchmarks.unlike import Text, held_out_loss
from embedding.kernel.records import FloatArray
from embedding.models.config import ModelConfig
from embedding.snapshots.store import SnapshotStore
from yeoron_bench.results import ended, facts, keep_and_print

SIDES = ((1, "ssp"), (1, "hogwild"), (2, "hogwild"), (4, "hogwild"), (4, "ssp"), (4, "asp"))
"""Nodes and policy; the first is what the others are held against."""
MIN_COUNT = 5


def trained(corpus: Path, store: Path, model: ModelConfig, nodes: int, sync: str) -> dict[str, Any]:
    """What one command says in JSON."""
    options = {
        "--out": store,
        "--dim": model.dim,
        "--seed": model.seed,
        "--sample": model.sample,
        "--min-count": MIN_COUNT,
        "--nodes": nodes,
        "--sync": sync,
    }
    given = [str(part) for option in options.items() for part in option]
    command = [sys.executable, "-m", "embedding.cli", "train", str(corpus), *given, "--json"]
    said: dict[str, Any] = json.loads(run(command, timeout=1800))
    return said


def rows(text: Text, store: Path, dim: int) -> tuple[FloatArray, FloatArray]:
    """Both tables in the order of the text's words; zeros for a word without a row."""
    snapshot = SnapshotStore(str(store)).open("latest")
    rows = snapshot.rows(text.words)
    tables = (np.asarray(snapshot.vectors), np.asarray(snapshot.contexts))
    filled = [np.zeros((len(rows), dim), np.float32) for _ in tables]
    for out, table in zip(filled, tables, strict=True):
        out[rows >= 0] = table[rows[rows >= 0]]
    return filled[0], filled[1]


def bench_hogwild(
    corpus: Path,
    words: int,
    seeds: Sequence[int],
    *,
    sides: Sequence[tuple[int, str]] = SIDES,
    dim: int = 100,
    held_out: int = HELD_OUT,
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Measure in turn, write a dated JSON and Markdown file and print it; returns the report."""
    text = read(corpus, words, 5_000, held_out)
    runs: dict[str, list[dict[str, float]]] = {f"{sync}, {nodes}": [] for nodes, sync in sides}
    with tempfile.TemporaryDirectory() as folder:
        learnt = Path(folder) / "learnt.txt"
        lines = (" ".join(sentence) for block in text.blocks for sentence in block)
        learnt.write_text("\n".join(lines) + "\n")
        for seed in seeds:
            model = ModelConfig(dim=dim, sample=0.0, seed=seed)
            for nodes, sync in sides:
                store = Path(folder) / f"{seed}-{nodes}-{sync}"
                said = trained(learnt, store, model, nodes, sync)
                loss = held_out_loss(text, model, *rows(text, store, model.dim))
                run = runs[f"{sync}, {nodes}"]
                run.append({"loss": loss, "tokens": said["tokens_trained"]})
                print(f"seed {seed} {sync}, {nodes} nodes: {loss:.4f}", file=sys.stderr)
    report = {
        **facts("hogwild", ("numpy", "numba", "pyarrow")),
        "corpus": {"file": corpus.name, "tokens": text.tokens, "vocabulary": len(text.words)},
        "config": {**model.model_dump(mode="json"), "seeds": list(seeds), "min_count": MIN_COUNT},
        "summary": dict(summary(runs)),
        "runs": runs,
    }
    keep_and_print(report, results=results, part=corpus.name.split(".")[0])
    return report


def summary(
    runs: Mapping[str, Sequence[Mapping[str, float]]],
) -> Iterator[tuple[str, dict[str, float]]]:
    """Held-out loss by way, and what it is of that of one node of the same seed."""
    losses = {way: [run["loss"] for run in own] for way, own in runs.items()}
    alone = next(iter(losses.values()))
    for way, own in losses.items():
        ratios = [a / b for a, b in zip(own, alone, strict=True)]
        yield way, {"loss": mean(own), "to one node": mean(ratios), "worst seed": max(ratios)}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="plain text, one sentence a line (.xz is read)")
    parser.add_argument("--words", type=int, default=2_400_000)
    parser.add_argument("--seed", type=int, action="append")
    given = parser.parse_args(arguments)
    return ended(lambda: bench_hogwild(given.corpus, given.words, given.seed or (1, 2, 3)))


if __name__ == "__main__":
    sys.exit(main())
