"""`yeoron bench`: measurements that write a dated result file."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add these commands."""
    group = typer.Typer(
        help="Measure; each writes a dated file under benchmarks/results.", no_args_is_help=True
    )
    app.add_typer(group, name="bench")
    group.command("stream")(stream)
    group.command("kernel")(kernel)


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
    from embedding.errors import ConfigError

    sys.path.insert(0, str(Path.cwd()))
    try:
        bench_kernel = import_module("benchmarks.kernel").bench_kernel
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{error.name}: not found; run from a checkout of Yeoron with the extra `bench`."
        ) from error
    bench_kernel(corpus, (1, 2), words, repeats, epochs=epochs, gold=gold)
