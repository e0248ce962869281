"""`yeoron simweb`: play dated texts as a small web, or write the invented ones to a file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from embedding.commands.common import log_to_stderr, print_json, print_line
from embedding.commands.option_groups import grouped
from embedding.kernel.config import validate


@dataclass(frozen=True, kw_only=True)
class PlayedOptions:
    """Which corpus the simulated web plays, and how fast; named as in SimwebConfig."""

    corpus: Annotated[
        Path | None, typer.Option(help="Dated corpus (file or folder), or `generated`.")
    ] = None
    first_day: Annotated[str | None, typer.Option("--from", help="First day, YYYY-MM-DD.")] = None
    last_day: Annotated[str | None, typer.Option("--to", help="Last day, YYYY-MM-DD.")] = None
    seconds_per_month: Annotated[
        float, typer.Option(help="Seconds in which a month is played.")
    ] = 20.0
    speed: Annotated[
        float | None,
        typer.Option(
            help="Seconds of the corpus for each second; in place of --seconds-per-month."
        ),
    ] = None
    max_backlog: Annotated[
        int,
        typer.Option(
            help="The clock waits while this many documents are not fetched (0: it never waits)."
        ),
    ] = 0
    autostart: Annotated[bool, typer.Option(help="Start the clock at once.")] = False
    seed: Annotated[int, typer.Option(help="Seed of the generated corpus.")] = 0
    documents_per_day: Annotated[
        int, typer.Option(help="Documents of each day of the generated corpus.")
    ] = 18


@dataclass(frozen=True, kw_only=True)
class SimulatedOptions:
    """How the simulated web answers; named as in SimwebConfig."""

    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 8899
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1"
    crawl_delay: Annotated[float, typer.Option(help="Crawl-delay in robots.txt, in seconds.")] = (
        0.05
    )
    fault_rate: Annotated[
        float, typer.Option(help="Share of articles whose first request fails.")
    ] = 0.0
    habit: Annotated[
        list[str] | None,
        typer.Option(
            help="A habit of real sites; may be repeated: old-board, false-charset, pictures, "
            "empty-page, relative-times, one-canonical, frames, refresh; or all."
        ),
    ] = None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(grouped(simweb))


def simweb(
    played: PlayedOptions,
    web: SimulatedOptions,
    truth: Annotated[
        bool, typer.Option("--truth", help="Print the planted events and end.")
    ] = False,
    write: Annotated[
        Path | None, typer.Option(help="Write the corpus to this file for `yeoron train`, and end.")
    ] = None,
) -> None:
    """Play dated texts as a small web with news, a board, comments, robots.txt and faults.

    Without --corpus the texts are invented, with some changes planted in them (--truth). With
    --habit sites behave as old boards, blogs and templates do; `/control/articles` lists which
    texts there are, when each was written, and how exactly a reader could know that.

    Examples: `yeoron simweb --autostart` · `yeoron simweb --corpus posts.jsonl --speed 86400` ·
    `yeoron simweb --autostart --habit old-board --habit frames` · `yeoron simweb --truth` ·
    `yeoron simweb --corpus generated --write posts.jsonl`
    """
    from yeoron_simweb.config import SimwebConfig
    from yeoron_simweb.corpus import write_corpus
    from yeoron_simweb.generated import truth as planted
    from yeoron_simweb.resolve import resolve_corpus
    from yeoron_simweb.serve import serve as play

    log_to_stderr("simweb")
    given = {**asdict(played), **asdict(web)}
    given["habits"] = tuple(given.pop("habit") or ())
    config = validate(SimwebConfig, given, "yeoron simweb")
    if truth:
        print_json(planted(config))
        return
    if write is not None:
        written = write_corpus(resolve_corpus(config), write)
        print_line(f"{written:,} documents: {write}")
        return
    play(config, ready=lambda url: print_line(f"simweb plays at {url}"))
