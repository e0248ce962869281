"""`yeoron up`, `down`, `demo`, `status`: running the platform on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from embedding.commands.common import (
    Json,
    console,
    keep_private,
    print_json,
    settings,
    settings_of,
)
from embedding.kernel.errors import UnavailableError


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(up)
    app.command()(down)
    app.command()(demo)
    app.command()(status)


def up() -> None:
    """Start every service of the platform on this machine, on loopback.

    Example: `yeoron up`, then open the addresses it prints.
    """
    from embedding.platform.operate import bring_up
    from embedding.platform.summary import addresses

    keep_private()
    chosen = settings()
    with console.status("Starting the platform …") as line:
        bring_up(chosen, progress=lambda name: line.update(f"Started {name} …"))
    for name, address in addresses(chosen).items():
        console.print(f"{name:<16} {address}", highlight=False, markup=False)


def down() -> None:
    """End every process the platform started, orphans too, and free its ports.

    Example: `yeoron down`
    """
    from embedding.platform.operate import bring_down

    with console.status("Stopping the platform …"):
        ran = bring_down(settings())
    console.print(f"Ended {ran} processes; the ports are free." if ran else "Nothing was running.")


def demo(
    corpus: Annotated[
        Path | None, typer.Option(help="Dated corpus (.jsonl, .jsonl.xz or a folder).")
    ] = None,
    seconds_per_month: Annotated[
        float | None, typer.Option(help="Wall seconds in which a month is played.")
    ] = None,
) -> None:
    """Start the platform, play a dated corpus through it, and print what moved.

    Examples: `yeoron demo` · `yeoron demo --corpus posts.jsonl`
    """
    from embedding.platform.demo import run_demo

    keep_private()
    raise typer.Exit(run_demo(settings(), corpus, seconds_per_month, console))


def status(as_json: Json = False) -> None:
    """What runs now: services, nodes, sources, lag.

    Examples: `yeoron status` · `yeoron status --json`
    """
    import httpx

    from embedding.commands.group_table import following_line, group_table
    from embedding.commands.shard_table import shard_table
    from embedding.commands.source_table import balance_line, source_table
    from embedding.commands.sync_table import sync_table
    from embedding.platform.notes import notes
    from embedding.platform.operate import running_supervisor

    chosen = settings_of()
    try:
        answer = httpx.get(chosen.server_status_url, timeout=5, trust_env=False)
        server = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise UnavailableError(
            f"no parameter server answers at {chosen.server_status_url}; start the platform with "
            "`make up`."
        ) from error
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        raise UnavailableError(
            f"the parameter server at {chosen.server_status_url} is restoring its last "
            "checkpoint; ask again in a moment."
        )
    supervisor = running_supervisor(chosen)
    states = supervisor.states() if supervisor else {}
    if as_json:
        print_json({"services": states, "server": server, "notes": notes(server)})
        return
    if states:
        table = Table("service", "state", title="Services")
        for name, state in states.items():
            table.add_row(name, state, style=None if state == "RUNNING" else "red")
        console.print(table)
    console.print(source_table(server, console.width))
    if (sync := sync_table(server)) is not None:
        console.print(sync)
    if (shards := shard_table(server)) is not None:
        console.print(shards)
    if (groups := group_table(server)) is not None:
        console.print(groups)
    if (line := following_line(server)) is not None:
        console.print(line, markup=False)
    console.print(
        f"{server['tokens']:,} tokens, {server['vocabulary']:,} words, "
        f"{server['words_per_second']:,.0f} words/s, policy {server['policy']}"
    )
    if (line := balance_line(server)) is not None:
        console.print(line)
    for sentence in notes(server):
        console.print(f"· {sentence}", markup=False)
