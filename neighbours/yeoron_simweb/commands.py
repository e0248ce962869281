"""`yeoron simweb`: play dated texts as a small web, or write the invented ones to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from embedding.commands.common import log_to_stderr, print_json, print_line
from embedding.commands.option_groups import by_section, given_options, settings_command
from embedding.kernel.config import validate
from yeoron_simweb.config import SimwebConfig

_SAME = (
    *("corpus", "seconds_per_month", "speed", "max_backlog", "autostart", "seed"),
    *("documents_per_day", "port", "host", "crawl_delay", "fault_rate"),
)
SIMWEB_OPTIONS = {
    **{name: name for name in _SAME},
    "from_": "first_day",
    "to": "last_day",
    "habit": "habits",
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(cls=settings_command("yeoron_simweb.config:SimwebConfig", SIMWEB_OPTIONS))(simweb)


def simweb(
    context: typer.Context,
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
    from yeoron_simweb.corpus import write_corpus
    from yeoron_simweb.generated import truth as planted
    from yeoron_simweb.resolve import resolve_corpus
    from yeoron_simweb.serve import serve as play

    log_to_stderr("simweb")
    settings = by_section(given_options(context), SIMWEB_OPTIONS).get("", {})
    config = validate(SimwebConfig, settings, "yeoron simweb")
    if truth:
        print_json(planted(config))
        return
    if write is not None:
        written = write_corpus(resolve_corpus(config), write)
        print_line(f"{written:,} documents: {write}")
        return
    play(config, ready=lambda url: print_line(f"simweb plays at {url}"))
