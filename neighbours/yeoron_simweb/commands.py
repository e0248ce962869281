"""`yeoron simweb`: play dated texts as a small web, or write the invented ones to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from embedding.commands.common import log_to_stderr, print_json, print_line
from embedding.commands.option_groups import SettingOption, grouped
from embedding.kernel.config import validate
from yeoron_simweb.config import HABITS, SimwebConfig


def _setting(kind: Any, name: str, about: str, flag: str = "") -> SettingOption:
    """An option that is the setting `name` of the simulated web."""
    usual = SimwebConfig.model_fields[name].default
    more = "" if usual in (None, False, 0, ()) else f" Default: {usual}."
    return SettingOption(kind, name, about + more, flag)


_OPTIONS = {
    "corpus": _setting(Path, "corpus", "Dated corpus (file or folder), or `generated`."),
    "first_day": _setting(str, "first_day", "First day, YYYY-MM-DD.", "--from"),
    "last_day": _setting(str, "last_day", "Last day, YYYY-MM-DD.", "--to"),
    "seconds_per_month": _setting(
        float, "seconds_per_month", "Seconds in which a month is played."
    ),
    "speed": _setting(
        float, "speed", "Seconds of the corpus for each second; in place of --seconds-per-month."
    ),
    "max_backlog": _setting(
        int, "max_backlog", "The clock waits while this many documents are not fetched (0: never)."
    ),
    "autostart": _setting(bool, "autostart", "Start the clock at once."),
    "seed": _setting(int, "seed", "Seed of the generated corpus."),
    "documents_per_day": _setting(
        int, "documents_per_day", "Documents of each day of the generated corpus."
    ),
    "port": _setting(int, "port", "Port; 0 takes a free one."),
    "host": _setting(str, "host", "Address to listen on."),
    "crawl_delay": _setting(float, "crawl_delay", "Crawl-delay in robots.txt, in seconds."),
    "fault_rate": _setting(float, "fault_rate", "Share of articles whose first request fails."),
    "habit": _setting(
        list[str],
        "habits",
        f"A habit of real sites; may be repeated: {', '.join(HABITS)}; or all.",
    ),
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(grouped(simweb, _OPTIONS))


def simweb(
    given: dict[str, Any],
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
    settings = {_OPTIONS[name].field: value for name, value in given.items()}
    config = validate(SimwebConfig, settings, "yeoron simweb")
    if truth:
        print_json(planted(config))
        return
    if write is not None:
        written = write_corpus(resolve_corpus(config), write)
        print_line(f"{written:,} documents: {write}")
        return
    play(config, ready=lambda url: print_line(f"simweb plays at {url}"))
