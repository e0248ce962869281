"""`yeoron demo`: the platform with the simulated web, from nothing to what changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedding.commands.common import console, keep_private, settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(demo)


def demo(
    corpus: Annotated[
        Path | None,
        typer.Option(help="Your own dated texts: what `yeoron train` or `yeoron import` reads."),
    ] = None,
    seconds_per_month: Annotated[
        float | None,
        typer.Option(help="Least seconds of a month: it plays no faster than it is learnt."),
    ] = None,
) -> None:
    """Start the platform, play dated texts through it, and print what changed.

    Examples: `yeoron demo` · `yeoron demo --corpus posts.jsonl` · `yeoron demo --corpus posts.xlsx`
    """
    from embedding.commands.importing import imported, is_corpus
    from yeoron_demo.demo import run_demo

    keep_private()
    if corpus is not None and not is_corpus(corpus):
        file = settings().paths.home / "demo-corpus.jsonl"
        file.unlink(missing_ok=True)
        corpus = imported(corpus, file)
    raise typer.Exit(run_demo(settings(), corpus, seconds_per_month, console))
