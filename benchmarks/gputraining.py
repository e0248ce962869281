"""Training on a GPU: the kernel on resident text, whole commands, dated text, evaluations, all
against the CPU.

    python -m benchmarks gputraining english.txt --reviews reviews.jsonl --gold men.tsv

`--in-flight` measures without a GPU how many windows may be learnt from the same rows: batches of
windows are computed on rows as they were and their steps are summed, which is the worst that a GPU
can do, for fewer and more words and for several rates.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpuevaluation import evaluations
from benchmarks.kept import RESULTS
from embedding.kernel.devices import on_gpu
from embedding.kernel.errors import ConfigError
from embedding.kernel.records import FloatArray
from embedding.models.config import ModelConfig
from embedding.worker.learning.training import in_place
from yeoron_bench.corpora import Corpus, cut, encode, sentences
from yeoron_bench.gpukernel import BLOCK_TOKENS, kernel_rows, kernels
from yeoron_bench.kernel import Kernel
from yeoron_bench.results import ended, facts, hardware, keep_and_print
from yeoron_bench.train import PEERS, Setting, call
from yeoron_lab.examples import examples
from yeoron_lab.slices import ColumnSlice, slopes_of

NO_GPU = (
    "There is no GPU here: on a machine that has one, this script measures all rows that wait for "
    "it; --in-flight needs none."
)
BEARABLE = 3e-5
"""`yeoron_lab.hogwild.gpu.BEARABLE`, which needs Triton to be read."""
LEAST, RATES, SHARES = (5, 50, 500), (0.025, 0.1), (0.25, 1.0, 4.0, 16.0, 64.0)
"""Occurrences that a word needs, learning rates, and parts of the windows that the rule allows."""


def sides() -> dict[str, list[str]]:
    """Ways to train that are compared: options of the command."""
    cores, on_gpu = hardware()["cores"], ["--device=cuda", "--sync=hogwild"]
    return {
        "cpu, hogwild": ["--sync=hogwild", f"--nodes={max(1, cores // 2)}"],
        "cpu, one node": [],
        "gpu, one node": on_gpu,
        "gpu, larger blocks": [*on_gpu, f"--block-tokens={BLOCK_TOKENS}"],
        "gpu, four nodes": [*on_gpu, "--nodes=4"],
    }


def commands(
    corpus: Path, options: Sequence[str], repeats: int, alternatives: Mapping[str, Sequence[str]]
) -> dict[str, list[Any]]:
    """Seconds and loss of whole commands, in turn, alike but for the options of each way."""
    runs: dict[str, list[Any]] = {way: [] for way in alternatives}
    for turn in range(repeats + 1):
        for way, own in alternatives.items():
            with tempfile.TemporaryDirectory() as folder:
                out = ["--json", "--out", str(Path(folder) / "store")]
                said, seconds = call("embedding.cli", "train", str(corpus), *options, *own, *out)
            if turn:  # the first compiles
                names = ("words_per_second", "loss", "tokens_trained", "replayed_tokens")
                runs[way].append({"seconds": seconds, **{name: said[name] for name in names}})
    return runs


def by_gensim(corpus: Path, epochs: int) -> dict[str, list[Any]]:
    """The same passes by gensim with a worker for each core; nothing where it is not installed."""
    if find_spec("gensim") is None:
        return {}
    workers, given = hardware()["cores"], Setting(epochs=epochs, sample=1e-4).options()
    with tempfile.TemporaryDirectory() as folder:
        given += ["--seed=1", f"--workers={workers}", f"--out={Path(folder) / 'vectors'}"]
        said, seconds = call(PEERS, str(corpus), *given)
    rate = said["words_per_second"]
    return {f"gensim, {workers} workers": [{"seconds": seconds, "words_per_second": rate}]}


def stale_loss(corpus: Corpus, rate: float, flight: int) -> float:
    """Mean loss of a pair over the last fifth, so many windows at a time stepping from the same
    rows."""
    config = ModelConfig(dim=32)
    host = Kernel(corpus, config, 1)
    losses: list[FloatArray] = []
    for first, last in cut(corpus.sentences, 20_000):
        made = examples(config, host.block(first, last, first), first)
        rows = ColumnSlice(made, host.vectors, host.contexts)
        pairs = round(flight * (config.window + 1))
        for at in range(0, len(made.inputs), pairs):
            slopes, lost = slopes_of(rows.scores(at, at + pairs), made.outputs[at : at + pairs])
            rows.learn(at, slopes, rate)
            losses.append(lost)
    every = np.concatenate(losses)
    return float(every[-len(every) // 5 :].mean())


def in_flight(path: Path, words: int) -> list[dict[str, Any]]:
    """For vocabularies, rates and windows in flight: the loss, to that of one window at a time."""
    lines = list(sentences(path, words))
    rows = []
    for least in LEAST:
        corpus = encode(lines, least)
        for rate in RATES:
            alone = stale_loss(corpus, rate, 1)
            for share in SHARES:
                flight = round(share * BEARABLE * len(corpus.words) / rate**2)
                if flight < 1:
                    continue
                loss = stale_loss(corpus, rate, flight)
                run = {"words": len(corpus.words), "rate": rate, "share": share, "flight": flight}
                rows.append({**run, "loss": loss, "to_one": loss / alone})
                print(rows[-1], file=sys.stderr)
    return rows


def bench_in_flight(path: Path, words: int, *, results: Path = RESULTS) -> dict[str, Any]:
    """Measure the rule of `windows_in_flight` on the CPU, write a dated result and print it."""
    rows = in_flight(path, words)
    report = {
        **facts("gputraining", ("numpy", "numba")),
        "corpus": {"file": path.name, "words": words},
        "config": {"dim": 32, "window": 5, "negative": 5, "sample": 1e-4, "bearable": BEARABLE},
        "in_flight": rows,
    }
    keep_and_print(report, results=results, part="in-flight")
    return report


def bench_gpu_training(
    path: Path,
    reviews: Path | None,
    gold: Sequence[Path],
    seeds: Sequence[int],
    *,
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Measure every row that needs a GPU, write a dated result and print it; ConfigError without
    one."""
    try:
        on_gpu("cuda")
    except ConfigError as error:
        raise ConfigError(NO_GPU) from error
    import torch

    from embedding.server.rows.torchdevice import gpu
    from yeoron_bench.gpu import copies

    corpus = encode(list(sentences(path, sys.maxsize)))
    machine = hardware() | {"gpu": torch.cuda.get_device_name()}
    report: dict[str, Any] = {
        **facts("gputraining", ("numpy", "numba", "torch", "triton"), machine),
        "corpus": {"file": path.name, "words": corpus.known, "vocabulary": len(corpus.words)},
        "seeds": list(seeds),
        **copies(gpu(), len(seeds) + 2),
        "kernels": {
            model: kernels(corpus, model, gold, seeds, gpu(), in_place().trainer)
            for model in ("sgns", "cbow")
        },
        "evaluations": evaluations(gpu()),
        "epochs": {**commands(path, ["--epochs=20"], 1, sides()), **by_gensim(path, 20)},
    }
    if reviews is not None:
        options = ["--dated", "--window=month", "--tokenizer=whitespace"]
        report["dated"] = commands(reviews, options, 2, sides())
    report["kernels, medians"] = kernel_rows(report["kernels"], report)
    for title in ("epochs", "dated"):
        if title in report:
            report[f"whole commands, {title}"] = medians(report[title])
    keep_and_print(report, results=results)
    return report


def medians(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Of whole commands, by way."""
    return {
        way: {
            name: statistics.median(run[name] for run in own)
            for name in ("seconds", "words_per_second", "loss")
            if name in own[0]
        }
        for way, own in runs.items()
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="plain text, one sentence a line")
    parser.add_argument("--reviews", type=Path, help="JSONL with date and text")
    parser.add_argument("--gold", type=Path, action="append", default=[])
    parser.add_argument("--seed", type=int, action="append")
    parser.add_argument("--in-flight", type=int, metavar="WORDS", help="measure this, on the CPU")
    given = parser.parse_args(arguments)
    if given.in_flight:
        return ended(lambda: bench_in_flight(given.corpus, given.in_flight))
    seeds = given.seed or (1, 2, 3)
    return ended(lambda: bench_gpu_training(given.corpus, given.reviews, given.gold, seeds))
