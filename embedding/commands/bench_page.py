"""`yeoron bench page`: how quick the trends page is on a large store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedding.commands.common import measurement


def register(group: typer.Typer) -> None:
    """Add these commands."""
    group.command("page")(page)


def page(
    store: Annotated[
        Path | None, typer.Option(help="Keep the store here, or use the one that is there.")
    ] = None,
    snapshots: Annotated[int, typer.Option(help="Windows of the store.")] = 50,
    words: Annotated[int, typer.Option(help="Words of each snapshot.")] = 100_000,
    dim: Annotated[int, typer.Option(help="Length of a vector.")] = 100,
    requests: Annotated[int, typer.Option(help="Word pages to ask for, each of another word.")] = (
        200
    ),
    browsers: Annotated[int, typer.Option(help="First views in a browser.")] = 10,
) -> None:
    """A word's page, its first view in a browser, one report, and memory, on a large store.

    The store of the default size takes 4 GB of disk. Example: `yeoron bench page --store /tmp/big`
    """
    arguments = [f"--snapshots={snapshots}", f"--words={words}", f"--dim={dim}"]
    arguments += [f"--requests={requests}", f"--browsers={browsers}"]
    arguments += [] if store is None else [f"--store={store}"]
    raise typer.Exit(measurement("page").main(arguments))
