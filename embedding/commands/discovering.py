"""`yeoron sources discover`: find feeds, sitemaps and listings; say what they would bring."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Column, Table

from embedding.commands.common import Json, console, print_json, print_line, settings_of

if TYPE_CHECKING:
    from embedding.crawl.discover import Discovery


def discover(
    seeds: Annotated[
        list[str] | None,
        typer.Argument(help="Addresses to start from (default: discover.seeds, else your sites)."),
    ] = None,
    domain: Annotated[
        list[str] | None, typer.Option(help="Further domain that may be looked at; repeatable.")
    ] = None,
    requests: Annotated[
        int | None, typer.Option(help="Most requests (default: discover.requests).", min=1)
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--sources", help="sources.toml (default: paths.sources).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Search for sources and rank them by new tokens a request and by difference of their words.

    Nothing is added: the table explains each proposal, and the DAG discover_sources lets a person
    approve them. Only addresses, titles and times are shown; no text is kept.

    Examples: `yeoron sources discover https://news.example.kr` ·
    `yeoron sources discover https://a.kr --domain b.kr --requests 100 --json`
    """
    from embedding.discovery import discover as search

    chosen = settings_of()
    changes: dict[str, object] = {}
    if domain:
        changes["domains"] = (*chosen.discover.domains, *domain)
    if requests is not None:
        changes["requests"] = requests
    config = chosen.discover.model_copy(update=changes)
    with console.status("Searching …"):
        found = search(chosen, seeds or (), file=file, config=config)
    if as_json:
        print_json(found.to_dict())
        return
    show(found)


def show(found: Discovery) -> None:
    """The proposals as a table, and why others are none."""
    # Nobody can approve half of an address.
    source = Column("source", overflow="fold")
    table = Table(source, "kind", "tokens/request", "why", "for example", title="Proposals")
    for each in found.candidates:
        example = each.titles[0][0] if each.titles else ""
        gain = f"{each.tokens_per_request:,.0f}"
        table.add_row(f"{each.name}\n{each.url}", each.kind, gain, each.why, example[:40])
    console.print(table if found.candidates else "Nothing is proposed.")
    for url, why in sorted(found.dropped.items()):
        print_line(f"· {url}: {why}")
    refused = ", ".join(f"{n} {reason}" for reason, n in sorted(found.refused.items()))
    console.print(
        f"{found.pages} pages looked at, {found.requests} requests"
        + (f"; failed: {refused}" if refused else "")
    )
