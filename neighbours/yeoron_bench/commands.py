"""`yeoron bench`: measurements of a user's own machine and corpora, each with a result file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from embedding.commands.common import Json, print_line, settings
from embedding.commands.option_groups import grouped
from embedding.kernel.errors import ConfigError
from yeoron_bench.options import Dim, DriftOptions, Epochs, LscSetting, TrainBenchOptions

_HERE = Path()
_TOKENIZERS = ("kiwi", "mecab")

_Corpus = Annotated[Path, typer.Argument(help="Plain text, one sentence a line (.xz is read).")]
Results = Annotated[Path, typer.Option(help="Folder of the result files.")]
Repeats = Annotated[int, typer.Option(help="Interleaved repeats; the median counts.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    group = typer.Typer(
        help="Measure this machine and your corpora; each writes a dated result file here.",
        no_args_is_help=True,
    )
    app.add_typer(group, name="bench")
    for command in (train, kernel, text, wire, gpu, lsc, drift, stream):
        group.command()(grouped(command))


def stream(results: Results = _HERE) -> None:
    """Words/s, lag and memory of the platform's last demo run, as a dated result file.

    Example: `make demo && yeoron bench stream`
    """
    from yeoron_bench.stream import record_demo

    path = record_demo(settings().paths.home / "demo" / "summary.json", results)
    print_line(f"Written to {path}.")


def kernel(
    corpus: _Corpus,
    words: Annotated[int, typer.Option(help="Words of the corpus to use.")] = 3_000_000,
    repeats: Repeats = 3,
    epochs: Epochs = 1,
    gold: Annotated[
        Path | None, typer.Option(help="Folder of gold sets, to compare quality as well.")
    ] = None,
    results: Results = _HERE,
) -> None:
    """The skip-gram kernel against gensim, in turn, with one and two threads.

    Example: `yeoron bench kernel corpus.txt --words 3000000`
    """
    from yeoron_bench.kernel import bench_kernel

    bench_kernel(corpus, (1, 2), words, repeats, epochs=epochs, gold=gold, results=results)


def train(
    corpus: _Corpus,
    training: TrainBenchOptions,
    side: Annotated[
        list[str] | None,
        typer.Option(
            help="gensim-N (workers), nodes-N, hogwild-N, bsp-N, asp-N or growing-N; may be "
            "repeated. When not given: gensim-2, nodes-1, nodes-2, hogwild-2."
        ),
    ] = None,
    words: Annotated[int | None, typer.Option(help="Words of the corpus to use.")] = None,
    repeats: Repeats = 3,
    gold: Annotated[
        list[Path] | None,
        typer.Option(help="Word pairs or analogies to judge the vectors by; may be repeated."),
    ] = None,
    results: Results = _HERE,
) -> None:
    """`yeoron train` against gensim, in turn, from a file to saved vectors.

    Examples: `yeoron bench train corpus.txt` ·
    `yeoron bench train corpus.txt --side gensim-2 --side growing-1 --gold wordsim353.tsv`
    """
    from yeoron_bench.train import SIDES, Setting, bench_train

    setting = Setting(**asdict(training))
    sides = tuple(side or SIDES)
    bench_train(
        corpus, sides, setting, words=words, repeats=repeats, gold=gold or (), results=results
    )


def text(
    corpus: Annotated[
        list[Path], typer.Argument(help="JSONL, or text with one document a line (.xz is read).")
    ],
    documents: Annotated[
        int | None, typer.Option(help="Documents of each corpus; all unless given.", min=8)
    ] = None,
    every: Annotated[
        int, typer.Option(help="Plain Kiwi reads each so many-th document.", min=1)
    ] = 8,
    new_words: Annotated[int, typer.Option(help="Most new words to find.", min=0)] = 0,
    tokenizer: Annotated[
        str, typer.Option(help="Measured against plain Kiwi: kiwi (behind its cache) or mecab.")
    ] = "kiwi",
    results: Results = _HERE,
) -> None:
    """Text preparation against plain Kiwi: morphemes/s of one core and identical words.

    Example: `yeoron bench text petitions.jsonl.xz reviews.jsonl.xz --every 8`
    """
    from yeoron_bench.text import bench_text

    if tokenizer not in _TOKENIZERS:
        raise ConfigError(f"--tokenizer {tokenizer}: {', '.join(_TOKENIZERS)} are accepted.")
    bench_text(
        corpus,
        documents=documents,
        every=every,
        new_words=new_words,
        tokenizer=tokenizer,
        results=results,
    )


def wire(
    side: Annotated[
        list[str] | None,
        typer.Option(help="float32, float16, threshold, onebit or topk; may be repeated."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Batches each way; medians count.", min=1)] = 200,
    rows: Annotated[int, typer.Option(help="Rows of a batch.", min=1, max=100_000)] = 8_192,
    dim: Dim = 128,
    threads: Annotated[int, typer.Option(help="Threads of the server.", min=1)] = 1,
    results: Results = _HERE,
) -> None:
    """Rows a second each way over loopback, one shard, and how near a plain socket is.

    Example: `yeoron bench wire --side float32 --side float16`
    """
    from yeoron_bench.wire import WIRE_SIDES, bench_wire

    sides = tuple(side or WIRE_SIDES)
    bench_wire(sides=sides, rows=rows, dim=dim, rounds=rounds, threads=threads, results=results)


def gpu(
    rows: Annotated[int, typer.Option(help="Rows of a resident batch.", min=1)] = 1_000_000,
    dim: Dim = 100,
    repeats: Annotated[int, typer.Option(help="Repeats; the median counts.", min=1)] = 20,
    text: Annotated[
        Path | None, typer.Option(help="Plain text that the training kernel learns there, too.")
    ] = None,
    gold: Annotated[
        list[Path] | None, typer.Option(help="A gold set that judges its vectors; repeatable.")
    ] = None,
    results: Results = _HERE,
) -> None:
    """Rows/s with the tables on a GPU, which limit binds, and the training kernel's words/s.

    Examples:

    `yeoron bench gpu --dim 128`

    `yeoron bench gpu --text english.txt --gold men.tsv`
    """
    from yeoron_bench.gpu import bench_gpu

    bench_gpu(rows, dim, repeats, results=results, text=text, gold=gold or ())


def lsc(setting: LscSetting, as_json: Json = False, results: Results = _HERE) -> None:
    """Lexical semantic change: rank correlation and accuracy of every estimator, beside gensim.

    Examples:

    `yeoron bench lsc semeval2020_ulscd_ger`

    `yeoron bench lsc semeval2020_ulscd_swe --tokens 150000 --seeds 5`
    """
    from yeoron_bench.lsc import bench_lsc

    bench_lsc(setting, as_json=as_json, results=results)


def drift(options: DriftOptions, results: Results = _HERE) -> None:
    """Planted changes of meaning: who finds them, how surely, how soon.

    Examples:

    `yeoron bench drift reviews.jsonl --tokenizer kiwi --seeds 3`

    `yeoron bench drift reviews.jsonl --thin sentences --no-peers`
    """
    from yeoron_bench.drift import bench_drift
    from yeoron_bench.driftjudging import DriftSetting

    bench_drift(DriftSetting(**vars(options)), results=results)
