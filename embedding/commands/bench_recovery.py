"""`yeoron bench chaos`, `checkpoint` and `balance`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedding.commands.common import measurement


def register(group: typer.Typer) -> None:
    """Add these commands."""
    group.command("chaos")(chaos)
    group.command("checkpoint")(checkpoint)
    group.command("balance")(balance)


def chaos(
    corpus: Annotated[Path, typer.Argument(help="Plain text, one sentence a line.")],
    kills: Annotated[int, typer.Option(help="Processes killed in the run.", min=0)] = 10,
    nodes: Annotated[int, typer.Option(help="Nodes that train.", min=1)] = 2,
    words: Annotated[int, typer.Option(help="Words of the corpus to use.")] = 2_000_000,
    epochs: Annotated[int, typer.Option(help="Times the corpus is read.", min=1)] = 3,
    policy: Annotated[str, typer.Option(help="How nodes are kept in step.")] = "ssp",
    shards: Annotated[int, typer.Option(help="Processes that hold the rows.", min=1)] = 1,
    topology: Annotated[str, typer.Option(help="ps, allreduce or hybrid.")] = "ps",
    groups: Annotated[int, typer.Option(help="Groups whose nodes push as one.", min=0)] = 0,
    seeds: Annotated[int, typer.Option(help="Each a run with kills and one without.")] = 3,
    calm: Annotated[
        int, typer.Option(help="Runs without kills a seed; 2 shows the noise.", min=1, max=2)
    ] = 1,
    gold: Annotated[
        list[Path] | None, typer.Option(help="Word pairs to judge by; may be repeated.")
    ] = None,
) -> None:
    """kill -9 of servers, shards, workers, readers and gradient processes: is all learnt once?

    Example: `yeoron bench chaos corpus.txt --shards 2 --gold wordsim353.tsv`
    """
    bench = measurement("chaos")
    setting = bench.Setting(
        kills=kills,
        nodes=nodes,
        words=words,
        epochs=epochs,
        policy=policy,
        shards=shards,
        topology=topology,
        groups=groups,
        seeds=seeds,
        calm=calm,
    )
    bench.bench_chaos(corpus, setting, gold or ())


def checkpoint(
    words: Annotated[int, typer.Option(help="Words with a row.", min=10_000)] = 500_000,
    dim: Annotated[int, typer.Option(help="Length of the vectors.", min=1)] = 128,
    candidates: Annotated[int, typer.Option(help="Words without a row.", min=0)] = 1_000_000,
    checkpoints: Annotated[int, typer.Option(help="Checkpoints written.", min=1)] = 3,
) -> None:
    """How long a checkpoint holds training up, as the server and as a trainer sees it.

    Example: `yeoron bench checkpoint`
    """
    measurement("checkpoint").bench_checkpoint(words, dim, candidates, checkpoints)


def balance(
    corpus: Annotated[Path, typer.Argument(help="Plain text, one sentence a line.")],
    policy: Annotated[str, typer.Option(help="A policy under which nodes wait.")] = "bsp",
    seconds: Annotated[float, typer.Option(help="Seconds measured of each run.")] = 20.0,
) -> None:
    """Four nodes, one ten times slower: tokens a second with and without balance.

    Example: `yeoron bench balance corpus.txt`
    """
    bench = measurement("balance")
    bench.bench_balance(corpus, bench.Setting(policy=policy, seconds=seconds))
