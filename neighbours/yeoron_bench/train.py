"""`yeoron train` against gensim's `corpus_file`, each as a process of its own.

    yeoron bench train english.txt.xz --side gensim-2 --side nodes-1 --side nodes-2

A side is a trainer and a number: `gensim-2` (workers), `nodes-2` (ssp over the wire),
`hogwild-2`, `bsp-2`, `asp-2`, `growing-1` (no counting pass). All have the same settings: skip-gram
with negative sampling unless another model is asked for, the learning rate falling linearly. Runs
are interleaved, and the order turns from one repeat to the next; ratios are medians over repeats of
paired runs. `core-1` is one node with its server and all its processes on one processor core: a
machine of one core, of which `nodes-2` has two.

Speed is compared with gensim's two workers, quality with its one: with `corpus_file` each worker
counts the words of its own part alone against the words of all (gensim 4.4,
word2vec_corpusfile.pyx), so that the rate of n workers falls by an n-th only. Two workers learn at
half as high a rate again on average, which in one epoch is worth more than all else here.

Whole command: of Yeoron the wall time of the two processes `train` and `export`, imports
and all; of gensim the time of counting, training and saving alone, without Python's start.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from embedding.kernel.errors import InputError, YeoronError
from yeoron_bench.corpora import sentences
from yeoron_bench.options import TrainBenchOptions
from yeoron_bench.results import facts, hardware, keep_and_print, need

_PACKAGES = ("yeoron", "numpy", "numba", "pyarrow", "torch", "distributed", "gensim", "scipy")
TRAINERS = ("gensim", "nodes", "core", "hogwild", "bsp", "asp", "growing")
SIDES = ("gensim-2", "nodes-1", "nodes-2", "hogwild-2")
REFERENCE = "gensim-2"
JUDGE = "gensim-1"
PEERS = "yeoron_bench.peers"
WARM_LINES = 2_000
_FIGURES = (
    *("tokens_trained", "vocabulary", "train_seconds", "words_per_second", "loss", "peak_memory"),
    *("bytes_pushed_per_token", "bytes_pulled_per_token"),
)
"""What is kept of what `yeoron train --json` says."""
_MODELS = ("sgns", "cbow", "fasttext")
_Run = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Setting(TrainBenchOptions):
    """What all sides have in common."""

    context: int = 5
    negative: int = 5
    min_count: int = 5
    learning_rate: float = 0.025

    def options(self) -> list[str]:
        return [f"--{name.replace('_', '-')}={value}" for name, value in asdict(self).items()]


def parse_side(side: str) -> tuple[str, int]:
    trainer, _, number = side.rpartition("-")
    if trainer not in TRAINERS or not number.isdecimal() or not int(number):
        raise InputError(
            f"side {side!r}: one of {', '.join(TRAINERS)} with a number, as in nodes-2."
        )
    return trainer, int(number)


def call(module: str, *arguments: str, cores: int | None = None) -> tuple[dict[str, Any], float]:
    """Run a module of this checkout, on so many cores; its JSON, and the process's wall seconds."""
    allowed = sorted(os.sched_getaffinity(0))
    started = time.perf_counter()
    os.sched_setaffinity(0, allowed[:cores])  # children inherit it
    try:
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=False
        )
    finally:
        os.sched_setaffinity(0, allowed)
    seconds = time.perf_counter() - started
    if done.returncode:
        raise YeoronError(f"{module} {' '.join(arguments)}: {done.stderr.strip()[-500:]}")
    text = done.stdout.strip()
    return (json.loads(text) if text.startswith("{") else {}), seconds


def run_side(side: str, corpus: Path, setting: Setting, seed: int, vectors: Path) -> _Run:
    """Train one side; its vectors are in `vectors` then, as word2vec's binary file."""
    trainer, number = parse_side(side)
    load = os.getloadavg()[0]
    common = [str(corpus), *setting.options(), f"--seed={seed}"]
    if trainer == "gensim":
        run, process = call(PEERS, *common, f"--out={vectors}", f"--workers={number}")
        return {**run, "process_seconds": process, "load_1min": load}
    more = {"hogwild": "--sync=hogwild", "bsp": "--sync=bsp", "asp": "--sync=asp"}
    options = [more[trainer]] if trainer in more else []
    options += ["--vocabulary=growing"] if trainer == "growing" else []
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        run, train = call(
            "embedding.cli",
            "train",
            *common,
            *options,
            f"--nodes={number}",
            "--json",
            "--out",
            store,
            cores=1 if trainer == "core" else None,
        )
        _, export = call(
            "embedding.cli", "export", "vectors", store, "--format=word2vec", f"--out={vectors}"
        )
    return {
        **{name: run[name] for name in _FIGURES},
        "seconds": train + export,
        "train_process_seconds": train,
        "export_process_seconds": export,
        "load_1min": load,
    }


def judge(vectors: Path, gold: Sequence[Path]) -> dict[str, float]:
    """`judged`, of word2vec's binary file."""
    from gensim.models import KeyedVectors

    return judged(KeyedVectors.load_word2vec_format(str(vectors), binary=True), gold)


def judged(vectors: Any, gold: Sequence[Path]) -> dict[str, float]:
    """gensim's own evaluation of its KeyedVectors: ρ of pairs, share of analogies solved, and
    their mean; nothing without a gold file.
    """
    scores = {}
    for file in gold:
        if file.read_text(encoding="utf-8-sig").lstrip().startswith(":"):
            scores[file.stem] = float(vectors.evaluate_word_analogies(str(file))[0])
        else:
            scores[file.stem] = float(vectors.evaluate_word_pairs(str(file))[1][0])
    return {**scores, "mean": statistics.fmean(scores.values())} if scores else {}


@contextmanager
def prepared(corpus: Path, words: int | None, gold: Sequence[Path] = ()) -> Iterator[Path]:
    """The corpus as a plain file, which gensim needs; a plain one is read where it lies.

    gold  what vectors are to be judged by: said now if it is not there, and not after a training
    """
    for file in gold:
        if not file.is_file():
            raise InputError(f"{file}: no such gold file; word pairs or analogies are expected.")
    if words is None and corpus.suffix != ".xz":
        if not corpus.is_file():
            raise InputError(f"{corpus}: no such corpus; one sentence a line is expected.")
        yield corpus
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.txt"
        with path.open("w", encoding="utf-8") as plain:
            for line in sentences(corpus, words or sys.maxsize):
                plain.write(" ".join(line) + "\n")
        yield path


def warm_up(corpus: Path, setting: Setting) -> None:
    """Compile the kernels (once a machine and version) before a clock runs."""
    with tempfile.TemporaryDirectory() as folder:
        few = Path(folder) / "few.txt"
        with corpus.open(encoding="utf-8") as lines:
            few.write_text("".join(line for _, line in zip(range(WARM_LINES), lines, strict=False)))
        for sync in ("ssp", "hogwild"):
            call("embedding.cli", "train", str(few), *setting.options(), f"--sync={sync}", "--json")


def compare(
    corpus: Path, sides: Sequence[str], setting: Setting, repeats: int, gold: Sequence[Path]
) -> dict[str, list[_Run]]:
    runs: dict[str, list[_Run]] = {side: [] for side in sides}
    with tempfile.TemporaryDirectory() as folder:
        vectors = Path(folder) / "vectors.bin"
        for repeat in range(repeats):
            for side in sides if repeat % 2 == 0 else reversed(sides):
                run = run_side(side, corpus, setting, 1 + repeat, vectors)
                run["quality"] = judge(vectors, gold)
                runs[side].append(run)
                print(
                    f"{side}: {run['words_per_second']:,.0f} words/s, {run['seconds']:.1f} s in "
                    f"all, {run['quality'] or 'not judged'}",
                    file=sys.stderr,
                )
    return runs


def summary(runs: dict[str, list[_Run]]) -> dict[str, dict[str, float]]:
    """Medians of each side, and the medians of its paired ratios to the reference."""
    reference = runs.get(REFERENCE)
    by_side = {}
    for side, own in runs.items():
        figures = {
            "words_per_second": statistics.median(run["words_per_second"] for run in own),
            "seconds": statistics.median(run["seconds"] for run in own),
        }
        quality = [run["quality"]["mean"] for run in own if run["quality"]]
        if quality:
            figures["quality"] = statistics.fmean(quality)
        bases = (REFERENCE, "nodes-1", "core-1")
        for other, name in ((runs.get(base), base) for base in bases):
            if other is None or other is own:
                continue
            pairs = list(zip(own, other, strict=True))
            figures[f"speed_to_{name}"] = statistics.median(
                a["words_per_second"] / b["words_per_second"] for a, b in pairs
            )
            figures[f"whole_to_{name}"] = statistics.median(
                b["seconds"] / a["seconds"] for a, b in pairs
            )
        judge_runs = runs.get(JUDGE) or reference
        if quality and judge_runs and judge_runs is not own:
            theirs = statistics.fmean(run["quality"]["mean"] for run in judge_runs)
            figures["quality_ratio"] = figures["quality"] / theirs
        by_side[side] = figures
    return by_side


def bench_train(
    corpus: Path,
    sides: Sequence[str],
    setting: Setting,
    *,
    words: int | None,
    repeats: int,
    gold: Sequence[Path],
    results: Path,
) -> dict[str, Any]:
    """Compare, print a table, write a dated JSON and Markdown file; returns what was written.

    words  of the corpus to use; None takes all
    gold   files of word pairs or analogies; none: speed only
    """
    trainers = {parse_side(side)[0] for side in sides}
    if "gensim" in trainers and setting.model not in _MODELS:
        raise InputError(f"model {setting.model!r}: gensim has {', '.join(_MODELS)}.")
    if "gensim" in trainers or gold:
        need("gensim", "it is a side or judges by gold sets; --side nodes-1 alone does without")
    before = hardware()
    with prepared(corpus, words, gold) as plain:
        warm_up(plain, setting)
        runs = compare(plain, sides, setting, repeats, gold)
    report = {
        **facts("train", _PACKAGES, before),
        "config": asdict(setting),
        "corpus": {"file": corpus.name, "words": words},
        "repeats": repeats,
        "gold": [file.name for file in gold],
        "summary": summary(runs),
        "runs": runs,
    }
    keep_and_print(report, results=results)
    return report
