"""`yeoron bench`: measurements that write a dated result file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedding.commands import (
    bench_crawl,
    bench_lsc,
    bench_page,
    bench_recovery,
    bench_shards,
    bench_smalltext,
    bench_text,
    bench_trends,
)
from embedding.commands.common import measurement as _measurement


def register(app: typer.Typer) -> None:
    """Add these commands."""
    group = typer.Typer(
        help="Measure; each writes a dated file under benchmarks/results.", no_args_is_help=True
    )
    app.add_typer(group, name="bench")
    group.command("stream")(stream)
    group.command("kernel")(kernel)
    group.command("train")(train)
    group.command("replay")(replay)
    group.command("vocabulary")(vocabulary)
    group.command("newword")(newword)
    group.command("incremental")(incremental)
    group.command("wire")(wire)
    group.command("bytes")(bytes_)
    group.command("gpu")(gpu)
    group.command("topology")(topology)
    group.command("policies")(policies)
    bench_recovery.register(group)
    bench_text.register(group)
    bench_shards.register(group)
    bench_smalltext.register(group)
    bench_crawl.register(group)
    bench_trends.register(group)
    bench_lsc.register(group)
    bench_page.register(group)


def stream() -> None:
    """Words/s, lag and memory of the platform's last demo run, as a dated result file.

    Example: `make demo && yeoron bench stream`
    """
    from embedding.commands.common import console, settings
    from embedding.platform.results import record_demo

    path = record_demo(settings().paths.home / "demo" / "summary.json")
    console.print(f"Written to {path}.", highlight=False)


def kernel(
    corpus: Annotated[Path, typer.Argument(help="Plain text, one sentence a line (.xz is read).")],
    words: Annotated[int, typer.Option(help="Words of the corpus to use.")] = 3_000_000,
    repeats: Annotated[int, typer.Option(help="Interleaved repeats; the median counts.")] = 3,
    epochs: Annotated[int, typer.Option(help="Epochs of each training.")] = 1,
    gold: Annotated[
        Path | None, typer.Option(help="Folder of gold sets, to compare quality as well.")
    ] = None,
) -> None:
    """The skip-gram kernel against gensim, in turn, with one and two threads.

    Example: `yeoron bench kernel corpus.txt --words 3000000`
    """
    bench_kernel = _measurement("kernel").bench_kernel
    bench_kernel(corpus, (1, 2), words, repeats, epochs=epochs, gold=gold)


def train(
    corpus: Annotated[Path, typer.Argument(help="Plain text, one sentence a line (.xz is read).")],
    side: Annotated[
        list[str] | None,
        typer.Option(
            help="gensim-N (workers), nodes-N, hogwild-N, bsp-N, asp-N or growing-N; may be "
            "repeated. When not given: gensim-2, nodes-1, nodes-2, hogwild-2."
        ),
    ] = None,
    words: Annotated[int | None, typer.Option(help="Words of the corpus to use.")] = None,
    repeats: Annotated[int, typer.Option(help="Interleaved repeats; the median counts.")] = 3,
    epochs: Annotated[int, typer.Option(help="Epochs of each training.")] = 1,
    sample: Annotated[float, typer.Option(help="Subsampling threshold, 0 for none.")] = 0.0,
    dim: Annotated[int, typer.Option(help="Length of the vectors.")] = 100,
    model: Annotated[str, typer.Option(help="sgns, cbow or fasttext.")] = "sgns",
    gold: Annotated[
        list[Path] | None,
        typer.Option(help="Word pairs or analogies to judge the vectors by; may be repeated."),
    ] = None,
) -> None:
    """`yeoron train` against gensim, in turn, from a file to saved vectors.

    Examples: `yeoron bench train corpus.txt` ·
    `yeoron bench train corpus.txt --side gensim-2 --side growing-1 --gold wordsim353.tsv`
    """
    bench = _measurement("train")
    setting = bench.Setting(model=model, dim=dim, sample=sample, epochs=epochs)
    sides = tuple(side or bench.SIDES)
    bench.bench_train(corpus, sides, setting, words=words, repeats=repeats, gold=gold or ())


def replay(
    corpus: Annotated[
        Path, typer.Argument(help="Dated JSONL, or text with a sentence a line (.xz is read).")
    ],
    words: Annotated[int, typer.Option(help="Words of the corpus to use.")] = 500_000,
    seeds: Annotated[int, typer.Option(help="Runs of each memory.")] = 5,
    ratio: Annotated[float, typer.Option(help="Replayed tokens for each fresh one.")] = 3.0,
    memory: Annotated[int, typer.Option(help="Tokens that the replay memory holds.")] = 200_000,
) -> None:
    """What replay priorities buy: tokens until the held-out loss of uniform replay is reached.

    Example: `yeoron bench replay petitions.jsonl.xz --seeds 5`
    """
    bench_replay = _measurement("replay").bench_replay
    bench_replay(corpus, words, seeds, ratio=ratio, memory=memory)


def vocabulary(
    words: Annotated[int, typer.Option(help="Words to hold.", min=1_000)] = 200_000,
    dim: Annotated[int, typer.Option(help="Length of the vectors.", min=1)] = 100,
) -> None:
    """What a word costs: bytes on server and node, time of a look-up, memory of a long stream.

    Example: `yeoron bench vocabulary --words 200000`
    """
    _measurement("vocabulary").bench_vocabulary(words, dim)


def newword(
    corpus: Annotated[
        Path, typer.Argument(help="Dated JSONL, or text with a sentence a line (.xz is read).")
    ],
    words: Annotated[int, typer.Option(help="Words of the corpus to use.")] = 2_500_000,
    chosen: Annotated[int, typer.Option(help="Words to rename.", min=1)] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the choice and of the model.")] = 1,
) -> None:
    """How soon a new word gets its meaning: known words renamed at some moment of a stream.

    Example: `yeoron bench newword petitions.jsonl.xz`
    """
    _measurement("newword").bench_newword(corpus, words, chosen, seed=seed)


def incremental(
    corpus: Annotated[Path, typer.Argument(help="Dated JSONL (.xz is read).")],
    words: Annotated[int, typer.Option(help="Words of the corpus to use.")] = 3_000_000,
    unit: Annotated[str, typer.Option(help="month, quarter or year.")] = "month",
    sample: Annotated[float, typer.Option(help="Subsampling threshold, 0 for none.")] = 0.0,
    passes: Annotated[
        str, typer.Option(help="both, or one: without replay and without gensim's 4 epochs.")
    ] = "both",
) -> None:
    """Period by period against gensim's updated vocabulary: likelihood of the next period.

    Example: `yeoron bench incremental reviews.jsonl.xz --unit quarter`
    """
    from embedding.kernel.errors import ConfigError

    units = ("month", "quarter", "year")
    if unit not in units:
        raise ConfigError(f"--unit {unit}: {', '.join(units)} are accepted.")
    if passes not in ("one", "both"):
        raise ConfigError(f"--passes {passes}: one and both are accepted.")
    bench = _measurement("incremental").bench_incremental
    bench(corpus, words, unit, sample=sample, passes=passes)


def policies(
    corpus: Annotated[Path, typer.Argument(help="Plain text, one sentence a line (.xz is read).")],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="bsp, ssp, backup, asp, auto, easgd, averaging, sandblaster, ssp-replay (as many "
            "old tokens as sandblaster, by SGD), bsp-mean, asp-4 (n_push and n_fetch 4), "
            "bsp-balanced or ssp-balanced (the block sizes follow the speeds); may be repeated. "
            "When not given: all."
        ),
    ] = None,
    words: Annotated[int, typer.Option(help="Words of the corpus to learn.")] = 2_000_000,
    block: Annotated[int, typer.Option(help="Tokens of a block.", min=100)] = 5_000,
    block_s: Annotated[float, typer.Option(help="Seconds a block takes at a fast node.")] = 0.1,
    slower: Annotated[float, typer.Option(help="Times as long at the slow node.", min=1)] = 10.0,
    turns: Annotated[
        float,
        typer.Option(
            help="Chance of any node's block to be a slow one; 0: one node is slow.", max=1
        ),
    ] = 0.0,
) -> None:
    """Four nodes, one ten times slower: tokens/s of every policy, and its loss at equal tokens.

    Examples: `yeoron bench policies english.txt.xz` ·
    `yeoron bench policies english.txt.xz --policy bsp --policy ssp --turns 0.1`
    """
    bench = _measurement("policies")
    bench.bench_policies(
        corpus,
        ways=tuple(policy or bench.WAYS),
        words=words,
        block=block,
        block_s=block_s,
        slower=slower,
        turns=turns,
    )


def topology(
    corpus: Annotated[Path, typer.Argument(help="Plain text, one sentence a line (.xz is read).")],
    nodes: Annotated[
        list[int] | None, typer.Option(help="Numbers of nodes, 2 and 4 unless given.", min=1)
    ] = None,
    side: Annotated[
        list[str] | None,
        typer.Option(
            help="ps, allreduce, hybrid, host, groups, servers or servers-slow; all unless given."
        ),
    ] = None,
    words: Annotated[int, typer.Option(help="Words of the corpus to use.")] = 2_000_000,
    repeats: Annotated[int, typer.Option(help="Interleaved repeats; the median counts.")] = 1,
    dim: Annotated[int, typer.Option(help="Length of the vectors.")] = 100,
    gold: Annotated[
        list[Path] | None,
        typer.Option(help="Word pairs or analogies to judge the vectors by; may be repeated."),
    ] = None,
) -> None:
    """Server, all-reduce, hybrid, host aggregation, server groups: speed, bytes by way, loss.

    Example: `yeoron bench topology corpus.txt --nodes 2 --side ps --side allreduce`
    """
    bench = _measurement("topology")
    bench.bench_topology(
        corpus,
        nodes=tuple(nodes or (2, 4)),
        kinds=tuple(side or bench.KINDS),
        words=words,
        repeats=repeats,
        dim=dim,
        gold=gold or (),
    )


def gpu(
    rows: Annotated[int, typer.Option(help="Rows of a resident batch.", min=1)] = 1_000_000,
    dim: Annotated[int, typer.Option(help="Length of the vectors.", min=1)] = 100,
    repeats: Annotated[int, typer.Option(help="Repeats; the median counts.", min=1)] = 20,
) -> None:
    """Rows/s with the tables on a GPU: resident and over the wire, and which limit binds.

    Example: `yeoron bench gpu --dim 128`
    """
    _measurement("gpu").bench_gpu(rows, dim, repeats)


def wire(
    side: Annotated[
        list[str] | None,
        typer.Option(help="float32, float16, threshold, onebit or topk; may be repeated."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Batches each way; medians count.", min=1)] = 200,
    rows: Annotated[int, typer.Option(help="Rows of a batch.", min=1, max=100_000)] = 8_192,
    dim: Annotated[int, typer.Option(help="Length of a row.", min=1)] = 128,
    threads: Annotated[int, typer.Option(help="Threads of the server.", min=1)] = 1,
) -> None:
    """Rows a second each way over loopback, one shard, and how near a plain socket is.

    Example: `yeoron bench wire --side float32 --side float16`
    """
    bench = _measurement("wire")
    sides = tuple(side or bench.SIDES)
    bench.bench_wire(sides=sides, rows=rows, dim=dim, rounds=rounds, threads=threads)


def bytes_(
    corpus: Annotated[Path, typer.Argument(help="Plain text, one sentence a line (.xz is read).")],
    side: Annotated[
        list[str] | None,
        typer.Option(
            help="none, fp16, threshold=STEP, onebit or topk=SHARE, with +cache to keep rows at "
            "the nodes; may be repeated."
        ),
    ] = None,
    nodes: Annotated[list[int] | None, typer.Option(help="May be repeated; 2 and 4.")] = None,
    block: Annotated[
        int | None, typer.Option(help="Tokens of a block (a clock); as `yeoron train` has it.")
    ] = None,
    words: Annotated[int | None, typer.Option(help="Words of the corpus to use.")] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each side.", min=1)] = 1,
    gold: Annotated[
        list[Path] | None, typer.Option(help="Word pairs to judge by; may be repeated.")
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="Also behind a link of so many bits a second (100e6), by tc; as root."),
    ] = None,
) -> None:
    """Bytes a trained token with each compression, against dense all-reduce, and the quality.

    Example: `yeoron bench bytes corpus.txt --gold wordsim353.tsv --rate 100e6`
    """
    bench = _measurement("bytes")
    bench.bench_bytes(
        corpus,
        sides=side or bench.SIDES,
        nodes=nodes or (2, 4),
        block=block,
        words=words,
        seeds=seeds,
        gold=gold or (),
        rate=rate,
    )
