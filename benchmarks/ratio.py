"""Bytes of rows a token against dense all-reduce, over vocabularies, clocks and nodes.

    python -m benchmarks ratio english.txt reviews.txt --min-count 5 1 --block 2500 25000 100000

Both at the same clock: as many tokens between two synchronisations, the same staleness. Dense
all-reduce sends 2 (n-1)/n times both tables (float32) a clock, so that it grows with the vocabulary
and falls with the clock; a parameter server sends the rows that a block touches. The nodes are
those of `benchmarks.compressing`: in one process, with the real compressors of pushes and pulls and
the ids of pulls as they travel. Counts, headers, new words and what is sent at the end are left out
(`python -m benchmarks bytes` has them). The vocabulary is that of the
whole corpus; `--words` are trained.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bytes import dense
from benchmarks.compressing import Compressed, Side
from benchmarks.kept import RESULTS
from embedding.exchange import numbers
from embedding.kernel.errors import YeoronError
from embedding.kernel.records import FloatArray, IntArray
from embedding.models.config import LearningRateSchedule, ModelConfig
from yeoron_bench.corpora import Corpus, encode, sentences
from yeoron_bench.results import facts, keep

PACKAGES = ("yeoron", "numpy", "numba", "pyarrow")
COLUMNS = ("corpus", "words with a row", "nodes", "tokens a clock", "rows a token", "all-reduce")
HALF = 2


class Counted(Compressed):
    """Nodes that also count the ids of their pulls, and rows."""

    rows = 0

    def _pulled(self, node: int, at: int, ids: IntArray) -> FloatArray:
        plain = numbers.written(np.sort(ids))
        short = numbers.squeezed(plain)
        self.bytes["pull"] += (plain if short is None else short).nbytes
        self.rows += len(ids)
        return super()._pulled(node, at, ids)


def corpus_of(file: Path, words: int, least: int) -> Corpus:
    """The first `words` of a corpus, in rows of the whole corpus's words from `least` times on."""
    whole = encode(list(sentences(file, sys.maxsize)), least)
    last = int(np.searchsorted(whole.sentences, words))
    ends = whole.sentences[: last + 1]
    return Corpus(whole.words, whole.counts, whole.tokens[: ends[-1]], ends)


def measure(corpus: Corpus, nodes: int, block: int, side: str, dim: int) -> dict[str, Any]:
    """Bytes of rows a token, both directions."""
    config = ModelConfig(sample=0.0, schedule=LearningRateSchedule.LINEAR, dim=dim)
    trained = Counted(corpus, config, nodes, Side.of(side))
    trained.learn_all(block)
    tokens = max(corpus.known, 1)
    sent = sum(trained.bytes.values()) / tokens
    return {
        "side": side,
        "nodes": nodes,
        "block": block,
        "vocabulary": len(corpus.words),
        "tokens": corpus.known,
        "rows_per_token": trained.rows / tokens,
        "bytes_per_token": sent,
        "fp16_bytes_per_token": trained.rows / tokens * 2 * (HALF * dim + 1),
        "dense_bytes_per_token": dense(len(corpus.words), dim, nodes, block * known(corpus)),
    }


def known(corpus: Corpus) -> float:
    """The share of a block's tokens that have a row."""
    return corpus.known / max(len(corpus.tokens), 1)


def table(runs: Sequence[dict[str, Any]], sides: Sequence[str]) -> str:
    """Bytes a token and how many times fewer than all-reduce, by corpus, nodes and clock."""
    lines = [f"| {' | '.join((*COLUMNS, 'fp16', *sides))} |", "|---" * (7 + len(sides)) + "|"]
    for first in runs:
        if first["side"] != sides[0]:
            continue
        place = ("corpus", "min_count", "nodes", "block")
        same = [run for run in runs if all(run[name] == first[name] for name in place)]
        ring = first["dense_bytes_per_token"]
        sent = [first["fp16_bytes_per_token"], *(run["bytes_per_token"] for run in same)]
        cells = (
            first["corpus"],
            f"{first['vocabulary']:,}",
            str(first["nodes"]),
            f"{first['block']:,}",
            f"{first['rows_per_token']:.2f}",
            f"{ring:,.0f}",
            *(f"{each:.1f} (1/{ring / each:.0f})" for each in sent),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpora", type=Path, nargs="+", help="plain text, one sentence a line")
    parser.add_argument("--min-count", type=int, nargs="+", default=[5])
    parser.add_argument("--block", type=int, nargs="+", default=[2_500, 25_000, 100_000])
    parser.add_argument("--nodes", type=int, nargs="+", default=[2])
    parser.add_argument("--side", action="append", dest="sides", help=Side.of.__doc__)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    sides, runs = given.sides or ["1", "2"], []
    try:
        for file in given.corpora:
            for least in given.min_count:
                corpus = corpus_of(file, given.words, least)
                for nodes in given.nodes:
                    for block in given.block:
                        for side in sides:
                            found = measure(corpus, nodes, block, side, given.dim)
                            runs.append({"corpus": file.stem, "min_count": least, **found})
                            print(json.dumps(runs[-1]), file=sys.stderr, flush=True)
    except YeoronError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    report = {
        **facts("ratio", PACKAGES),
        "setting": {"dim": given.dim, "words": given.words, "sides": sides},
        "runs": runs,
    }
    about = f"# Bytes of rows a token against dense all-reduce, {report['when'][:10]}\n\n"
    about += f"Dimension {given.dim}, {given.words:,} words trained; sides: relative steps.\n\n"
    keep(report, about + table(runs, sides), results=given.results)
    print(table(runs, sides))
    return 0


if __name__ == "__main__":
    sys.exit(main())
