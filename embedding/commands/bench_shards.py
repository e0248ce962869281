"""`yeoron bench shards` and `columns`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedding.commands.common import measurement


def register(group: typer.Typer) -> None:
    """Add these commands."""
    group.command("shards")(shards)
    group.command("columns")(columns)


def shards(
    count: Annotated[
        list[int] | None, typer.Option("--shards", help="Processes; may be repeated. 1, 2, 4.")
    ] = None,
    rows: Annotated[
        list[int] | None, typer.Option(help="Rows in all; may be repeated. 10^4 … 10^7.")
    ] = None,
    dim: Annotated[
        int, typer.Option(help="Length of the rows; halved where they do not fit.")
    ] = 32,
    repeats: Annotated[int, typer.Option(help="Rounds in turn; the median counts.")] = 9,
) -> None:
    """Time and memory of a row as shards and rows grow.

    Example: `yeoron bench shards --shards 1 --shards 2 --rows 1000000`
    """
    bench = measurement("shards")
    sizes = rows or [10**4, 10**5, 10**6, 10**7]
    bench.bench_shards(count or [1, 2, 4], sizes, dim, repeats)


def columns(
    corpus: Annotated[Path, typer.Argument(help="Plain text, one sentence a line (.xz is read).")],
    dim: Annotated[
        list[int] | None, typer.Option(help="Length of the vectors; may be repeated.")
    ] = None,
    count: Annotated[
        list[int] | None, typer.Option("--shards", help="Processes; may be repeated. 1, 2, 4.")
    ] = None,
    words: Annotated[int, typer.Option(help="Words of the corpus to use.")] = 500_000,
    repeats: Annotated[int, typer.Option(help="Repeats in turn; the median counts.")] = 1,
    sample: Annotated[float, typer.Option(help="Subsampling threshold; 0: none.")] = 1e-4,
) -> None:
    """Shards of rows against shards of columns: bytes a token, speed and loss.

    Example: `yeoron bench columns corpus.txt --dim 100 --dim 600 --shards 2`
    """
    bench = measurement("columns")
    bench.bench_columns(
        corpus,
        dims=dim or bench.DIMS,
        shards=count or bench.SHARDS,
        words=words,
        repeats=repeats,
        sample=sample,
    )
