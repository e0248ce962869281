"""`yeoron bench render` and `freshness`."""

from __future__ import annotations

from typing import Annotated

import typer

from embedding.commands.common import measurement


def register(group: typer.Typer) -> None:
    """Add these commands."""
    group.command("render")(render)
    group.command("freshness")(freshness)


def render(
    pages: Annotated[int, typer.Option(help="Pages rendered.", min=1)] = 400,
    contexts: Annotated[int, typer.Option(help="Pages open at once.", min=1)] = 2,
    recycle_pages: Annotated[
        int, typer.Option(help="Pages after which the browser is started anew.", min=1)
    ] = 100,
    answers: Annotated[
        bool, typer.Option("--answers", help="Read posts from the page's own JSON.")
    ] = False,
) -> None:
    """Rendered pages a minute, pages lost, and the browser's memory over the run.

    Example: `yeoron bench render --pages 2000`
    """
    bench = measurement("render")
    bench.bench_render(bench.Setting(pages, contexts, recycle_pages, answers))


def freshness(
    seeds: Annotated[int, typer.Option(help="Runs of each case.", min=2)] = 5,
    sources: Annotated[int, typer.Option(help="Sources of each run.", min=10)] = 100,
) -> None:
    """Freshness of the poll scheduler against known rates and uniform polling, simulated.

    Example: `yeoron bench freshness --seeds 5`
    """
    bench = measurement("freshness")
    bench.bench_freshness(bench.Setting(seeds=seeds, sources=sources))
