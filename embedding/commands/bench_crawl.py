"""`yeoron bench crawl`, `freshness-lag`, `render` and `freshness`."""

from __future__ import annotations

from typing import Annotated

import typer

from embedding.commands.common import duration, measurement


def register(group: typer.Typer) -> None:
    """Add these commands."""
    group.command("crawl")(crawl)
    group.command("freshness-lag")(freshness_lag)
    group.command("render")(render)
    group.command("freshness")(freshness)
    group.command("allocation")(allocation)


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
    sources: Annotated[int, typer.Option(help="Sources of each run.", min=10)] = 60,
) -> None:
    """Freshness of the poll scheduler against known rates and uniform polling, simulated.

    Example: `yeoron bench freshness --seeds 5`
    """
    bench = measurement("freshness")
    bench.bench_freshness(bench.Setting(seeds=seeds, sources=sources))


def crawl(
    corpus: Annotated[
        str, typer.Argument(help="Dated JSONL that the simulated web plays, or `generated`.")
    ] = "generated",
    documents: Annotated[int, typer.Option(help="Documents of each run.", min=10)] = 3000,
    repeats: Annotated[int, typer.Option(help="Interleaved repeats; the median counts.")] = 3,
    side: Annotated[
        list[str] | None, typer.Option(help="yeoron or scrapy; both when not given.")
    ] = None,
) -> None:
    """Pages a minute from fetching to words on a simulated web, against a Scrapy spider.

    Example: `yeoron bench crawl petitions.jsonl.xz --documents 3000`
    """
    from embedding.kernel.errors import ConfigError

    bench = measurement("crawl")
    wrong = sorted(set(side or ()) - set(bench.SIDES))
    if wrong:
        raise ConfigError(f"--side {wrong[0]}: {' and '.join(bench.SIDES)} are accepted.")
    bench.bench_crawl(corpus, documents, repeats, sides=tuple(side or bench.SIDES))


def freshness_lag(
    case: Annotated[
        list[str] | None, typer.Option(help="polled or polite; both when not given.")
    ] = None,
    seconds: Annotated[
        float, typer.Option("--for", help="Time of each case.", parser=duration, metavar="TIME")
    ] = 180.0,
) -> None:
    """From publication to the server: the lag of a feed's articles through a real node.

    Example: `yeoron bench freshness-lag --case polled --for 2m`
    """
    from embedding.kernel.errors import ConfigError

    bench = measurement("freshnesslag")
    wrong = sorted(set(case or ()) - set(bench.CASES))
    if wrong:
        raise ConfigError(f"--case {wrong[0]}: {' and '.join(bench.CASES)} are accepted.")
    bench.bench_freshness_lag(tuple(case or bench.CASES), seconds)


def allocation(
    sources: Annotated[int, typer.Option(help="Sources of unlike rates.", min=2)] = 60,
    hours: Annotated[float, typer.Option(help="Hours that are simulated.")] = 24.0,
) -> None:
    """How alike the nodes' token rates are: leases against dealing sources out (simulated time).

    Example: `yeoron bench allocation`
    """
    bench = measurement("allocation")
    bench.bench_allocation(bench.Setting(sources=sources, hours=hours))
