"""What compression costs in quality, seed by seed: nodes in turn, in one process, off the network.

    python -m benchmarks compressing english.txt --words 4000000 --side 1:0 --side 2 --seeds 5 \
        --gold wordsim353.tsv --gold simlex999.txt

In each round every node brings what it has of its rows up to date (as a pull of changes does),
trains a block of its own and pushes it (as `threshold` does, with its residual); then all pushes
are added up, in shares (ADR 6). `none` sends everything, in float32. The same seed has the same
blocks, noise and first rows, so that differences between sides are paired. Bytes are those of the
packed rows alone, as the real compressor writes them; ids of pulls, counts and what is sent at the
end are left out (`python -m benchmarks bytes` has those). The file of results is written again
after each seed: one that is stopped keeps the pairs that it has.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.combining import Nodes
from benchmarks.kept import RESULTS
from embedding.kernel.errors import InputError, YeoronError
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.models.config import LearningRateSchedule, ModelConfig
from yeoron_bench.corpora import Corpus, cut, encode, sentences
from yeoron_bench.results import facts, keep
from yeoron_bench.train import judge
from yeoron_lab.steps.threshold import Threshold

PACKAGES = ("yeoron", "numpy", "numba", "gensim")
LEAST, CURVATURE = 0.005, 0.03
Pair = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Side:
    """A way of writing what is pushed and pulled.

    push, pull  relative steps; directions  principal directions sent along
    """

    push: float
    pull: float
    directions: int

    @classmethod
    def of(cls, text: str) -> Side | None:
        """From `RELATIVE[/PULL][:DIRECTIONS]`; `none` sends everything."""
        if text == "none":
            return None
        steps, _, directions = text.partition(":")
        push, _, pull = steps.partition("/")
        try:
            return cls(float(push), float(pull or push), int(directions or 16))
        except ValueError as error:
            raise InputError(f"side {text}: RELATIVE[/PULL][:DIRECTIONS] is accepted.") from error

    def thresholds(self) -> dict[str, Threshold]:
        """The compressors of pushes and of pulls."""
        return {
            "push": Threshold(LEAST, self.push, self.directions),
            "pull": Threshold(LEAST, self.pull, self.directions),
        }


class Compressed(Nodes):
    """Nodes that push and pull as a side says; None: whatever there is."""

    def __init__(self, corpus: Corpus, config: ModelConfig, nodes: int, side: Side | None) -> None:
        super().__init__(corpus, config, nodes, CURVATURE)
        self.bytes = {"push": 0, "pull": 0}
        self._thresholds = None if side is None else side.thresholds()
        tables = (self.vectors, self.contexts)
        self._tables = tables
        self._has = [[table.copy() for table in tables] for _ in range(nodes)]
        self._left = [[np.zeros_like(table) for table in tables] for _ in range(nodes)]

    def learn_all(self, block: int) -> None:
        runs = cut(self.corpus.sentences, block)
        for first in range(0, len(runs), self.nodes):
            rate = self.config.rate(first / len(runs))
            sent = [
                self._turn(node, run, rate)
                for node, run in enumerate(runs[first : first + self.nodes])
            ]
            for each in sent:
                for table, (ids, values) in zip(self._tables, each, strict=True):
                    table[ids] += values
        for left in self._left:
            for table, rest in zip(self._tables, left, strict=True):
                table += rest

    def _turn(
        self, node: int, run: tuple[int, int], rate: float
    ) -> list[tuple[IntArray, FloatArray]]:
        block, words, others = self._block(*run)
        asked = (words, others)
        base = [self._pulled(node, at, ids) for at, ids in enumerate(asked)]
        local = [rows.copy() for rows in base]
        loss = self._trainer.train(block, *local, learning_rate=rate, seed=run[0])
        self.losses.append((loss.loss_sum, loss.pairs))
        sent = []
        shares = self._shares(block, loss, rate * CURVATURE, others)
        for at, (ids, part) in enumerate(zip(asked, shares, strict=True)):
            delta = local[at] - base[at]
            delta *= part[:, None]
            delta += self._left[node][at][ids]
            values = self._packed("push", ids, delta)
            self._left[node][at][ids] = delta
            self._has[node][at][ids] += values
            sent.append((ids, values))
        return sent

    def _pulled(self, node: int, at: int, ids: IntArray) -> FloatArray:
        has = self._has[node][at]
        has[ids] += self._packed("pull", ids, self._tables[at][ids] - has[ids])
        left: FloatArray = has[ids] + self._left[node][at][ids]
        return left

    def _packed(self, what: str, ids: IntArray, values: FloatArray) -> FloatArray:
        """What is sent of `values`, which keep the rest."""
        whole = values.copy()
        if self._thresholds is None:
            self.bytes[what] += values.nbytes
            values[:] = 0
            return whole
        order = np.argsort(ids)
        rest = values[order]
        self.bytes[what] += self._thresholds[what].pack(Table.IN, ids[order], rest).data.nbytes
        values[order] = rest
        return whole - values


def measure(
    corpus: Corpus, nodes: int, block: int, side: str, config: ModelConfig, gold: Sequence[Path]
) -> dict[str, Any]:
    trained = Compressed(corpus, config, nodes, Side.of(side))
    trained.learn_all(block)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vectors.bin"
        write(file, corpus.words, trained.vectors)
        quality = judge(file, gold)
    sums = np.asarray(trained.losses)
    late = sums[-max(1, len(sums) // 10) :]
    return {
        "side": side,
        "seed": config.seed,
        "loss_of_the_last_tenth": float(late[:, 0].sum() / late[:, 1].sum()),
        **{f"{way}_bytes_per_token": n / corpus.known for way, n in trained.bytes.items()},
        **quality,
    }


def write(file: Path, words: Sequence[str], rows: FloatArray) -> None:
    """word2vec's binary format."""
    with file.open("wb") as out:
        out.write(f"{len(words)} {rows.shape[1]}\n".encode())
        for word, row in zip(words, rows, strict=True):
            out.write(word.encode() + b" " + row.tobytes() + b"\n")


def paired(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """By side and figure: mean, and mean and standard error of the difference to `none`."""
    by_kind: dict[str, Any] = {}
    figures = [name for name in runs[0] if name not in ("side", "seed")]
    none = {run["seed"]: run for run in runs if run["side"] == "none"}
    for side in dict.fromkeys(run["side"] for run in runs):
        own = [run for run in runs if run["side"] == side]
        by_kind[side] = {}
        for name in figures:
            apart = [run[name] - none[run["seed"]][name] for run in own]
            error = statistics.stdev(apart) / len(apart) ** 0.5 if len(apart) > 1 else None
            mean = statistics.fmean(run[name] for run in own)
            by_kind[side][name] = [mean, statistics.fmean(apart), error]
    return by_kind


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="plain text, one sentence a line (.xz is read)")
    parser.add_argument("--words", type=int, default=4_000_000)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--block", type=int, default=25_000)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--noise-share", type=float, default=ModelConfig().noise_share)
    parser.add_argument("--side", action="append", dest="sides", help=Side.of.__doc__)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--gold", type=Path, action="append", required=True)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    try:
        corpus = encode(list(sentences(given.corpus, given.words)))
    except YeoronError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    report: dict[str, Any] = {
        **facts("compressing", PACKAGES),
        "corpus": {
            "file": given.corpus.name,
            "tokens": corpus.known,
            "vocabulary": len(corpus.words),
        },
        "setting": {
            **{name: vars(given)[name] for name in ("nodes", "block", "dim", "noise_share")},
            "least": LEAST,
        },
        "mean_difference_error": {},
        "runs": [],
    }
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        config = ModelConfig(
            sample=0.0, schedule=LearningRateSchedule.LINEAR, seed=seed, dim=given.dim
        ).model_copy(update={"noise_share": given.noise_share})
        for side in ("none", *(given.sides or ["1"])):
            figures = measure(corpus, given.nodes, given.block, side, config, given.gold)
            report["runs"].append(figures)
            print(json.dumps(figures), flush=True)
        report["mean_difference_error"] = paired(report["runs"])
        keep(report, results=given.results)
    print(json.dumps(report["mean_difference_error"], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
