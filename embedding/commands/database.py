"""`yeoron database`: where the tables are, and moving them to PostgreSQL."""

from __future__ import annotations

import typer
from rich.table import Table

from embedding.commands.common import Json, console, print_json, print_line, settings_of
from embedding.kernel.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        no_args_is_help=True, help="Where Airflow, MLflow and the frontier keep their tables."
    )
    group.command("check")(check)
    group.command("move")(move)
    app.add_typer(group, name="database")


def check(as_json: Json = False) -> None:
    """Say where the tables are, and try each PostgreSQL database.

    Example: `yeoron database check`
    """
    from embedding.platform.databases import DATABASES, check_databases, where

    chosen = settings_of()
    check_databases(chosen)
    places = {name: where(chosen, name) for name in DATABASES}
    if as_json:
        print_json(places)
        return
    for name, place in places.items():
        print_line(f"{name:<10} {place}")


def move() -> None:
    """Move the tables from SQLite to the PostgreSQL that `[database]` names.

    The platform must be down. Every row is counted on both sides; the SQLite files are kept under
    another name.

    Example: `yeoron database move`
    """
    from embedding.platform.moving import MOVED_SUFFIX
    from embedding.platform.moving import move as move_tables
    from embedding.platform.operate import running_supervisor

    chosen = settings_of()
    if running_supervisor(chosen) is not None:
        raise ConfigError("database move: the platform is running; stop it with `yeoron down`.")
    with console.status("Moving …") as line:
        done = move_tables(chosen, lambda name: line.update(f"Moving {name} …"))
    if not done:
        console.print("Nothing to move: there is no SQLite file in the home.")
        return
    table = Table("database", "tables with rows", "rows")
    for one in done:
        filled = [n for n in one.rows.values() if n]
        table.add_row(one.name, f"{len(filled):,}", f"{sum(filled):,}")
    console.print(table)
    print_line(
        f"The files are kept with {MOVED_SUFFIX} after their names; remove them when all is well."
    )
