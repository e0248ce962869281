"""`yeoron backup`, `restore`, `forget`, `retain`, `rollback`, `database`: what a platform keeps."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from embedding.commands.common import (
    Json,
    console,
    keep_private,
    print_json,
    print_line,
    settings,
    settings_of,
)
from embedding.kernel.errors import ConfigError

if TYPE_CHECKING:
    from embedding.backup.manifest import BackupManifest
    from embedding.rollback import Plan
    from embedding.server.config import ServerConfig


_Address = Annotated[
    str, typer.Argument(metavar="PLACE", help="A folder, or a URL such as s3://bucket/name.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (backup, restore, forget, retain, rollback):
        app.command()(command)
    group = typer.Typer(
        no_args_is_help=True, help="Where Airflow, MLflow and the frontier keep their tables."
    )
    group.command("check")(check)
    group.command("move")(move)
    app.add_typer(group, name="database")


def backup(place: _Address, as_json: Json = False) -> None:
    """Copy all that the platform keeps to an empty place. The platform may run.

    Where the server has a host of its own, run it on both hosts while no node trains.

    Examples: `yeoron backup /mnt/backups/monday` · `yeoron backup s3://yeoron-backups/monday`
    """
    from embedding.backup.collecting import back_up
    from embedding.platform.hosts import on_its_host

    keep_private()
    began = time.monotonic()
    chosen = on_its_host(settings_of())
    with console.status("Copying …"):
        manifest = back_up(chosen, place)
    _show("backup", manifest, place, time.monotonic() - began, as_json=as_json)
    if manifest.server_host and not as_json:
        print_line(
            f"The server's checkpoints are no part of it: run `yeoron backup` on the host "
            f"{manifest.server_host} too, before nodes train again."
        )
    elsewhere = chosen.server.snapshots
    if elsewhere is not None and not as_json and elsewhere != str(chosen.paths.snapshots):
        print_line(f"Snapshots lie in {elsewhere} (server.snapshots) and are no part of it.")


def restore(place: _Address, as_json: Json = False) -> None:
    """Fill an empty home from a backup. Every file is checked before it is put in place.

    Example: `yeoron restore /mnt/backups/monday`, then `yeoron up`
    """
    from embedding.backup.restoring import restore as fill
    from embedding.platform.operate import running_supervisor

    keep_private()
    began = time.monotonic()
    chosen = settings()
    if running_supervisor(chosen) is not None:
        raise ConfigError("restore: the platform is running; stop it first with `yeoron down`.")
    manifest = fill(chosen, place, tell=(lambda _: None) if as_json else print_line)
    _show("restore", manifest, str(chosen.paths.home), time.monotonic() - began, as_json=as_json)


def _show(
    verb: str, manifest: BackupManifest, where: str, seconds: float, *, as_json: bool
) -> None:
    snapshots = {n for n in manifest.store("snapshots") if n.endswith("/manifest.json")}
    facts: dict[str, Any] = {
        "place": where,
        "made_at": manifest.made_at.isoformat(),
        "files": len(manifest.files),
        "bytes": manifest.bytes,
        "snapshots": len(snapshots),
        "versions": manifest.versions,
        "seconds": round(seconds, 2),
    }
    if as_json:
        print_json(facts)
        return
    done = "Copied" if verb == "backup" else "Restored"
    print_line(
        f"{done} {facts['files']:,} files ({facts['bytes'] / 1e6:,.1f} MB, {facts['snapshots']} "
        f"snapshots) to {where} in {seconds:.1f} s."
    )


DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


def forget(
    source: Annotated[
        str | None, typer.Option("--source", help="Name of a source; it is blocked as well.")
    ] = None,
    address: Annotated[
        str | None, typer.Option("--address", help="Address of a page, with its comments.")
    ] = None,
    word: Annotated[
        str | None, typer.Option("--word", help="A word, such as a name; it gets no row again.")
    ] = None,
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
) -> None:
    """Erase a source, an address or a word from every store. The platform must be down.

    Examples:

    `yeoron forget --word 홍길동 --dry-run`

    `yeoron forget --address https://board.example/p/1`

    `yeoron forget --source board --yes`
    """
    from embedding.forgetting import ErasureRequest
    from embedding.forgetting import forget as erase
    from embedding.platform.operate import running_supervisor

    request, chosen = ErasureRequest(source, address, word), settings_of()
    if not dry_run and running_supervisor(chosen) is not None:
        raise ConfigError("forget: the platform is running; stop it first with `yeoron down`.")
    if not dry_run and not yes:
        for sentence in erase(chosen, request, dry=True) if not as_json else ():
            print_line(sentence)
        typer.confirm("This cannot be undone. Go on?", abort=True)
    _print_sentences(erase(chosen, request, dry=dry_run), as_json=as_json)


def retain(dry_run: DryRun = False, as_json: Json = False) -> None:
    """Remove what is older than the settings under `retention` say. Run it once a day.

    Example: `yeoron retain --dry-run`
    """
    from embedding.forgetting import retain as expire

    _print_sentences(expire(settings_of(), dry=dry_run), as_json=as_json)


def _print_sentences(sentences: list[str], *, as_json: bool) -> None:
    if as_json:
        print_json(sentences)
        return
    for sentence in sentences:
        print_line(sentence)


def rollback(
    to: Annotated[
        str | None, typer.Option("--to", help="Snapshot to go back to, or `nothing`.")
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--source", help="Source to block; the windows are learnt again without it."),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="First window to forget, as in 2020-02.")
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", help="Why; it is kept with the withdrawn snapshots.")
    ] = "",
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    restart: Annotated[
        bool, typer.Option("--restart/--no-restart", help="Start the nodes again afterwards.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Go back to before a bad window: withdraw its snapshots and learn the windows again.

    Examples:

    `yeoron rollback --to 2020-01-a1b2c3d4`

    `yeoron rollback --source board --reason "flooded by spam"`

    `yeoron rollback --source board --since 2020-02 --dry-run`
    """
    from embedding.rollback import plan_rollback, roll_back

    chosen = settings_of()
    plan = plan_rollback(chosen, to=to, source=source, since=since, reason=reason)
    if not as_json:
        _print_plan(plan, chosen.server)
    if dry_run:
        if as_json:
            print_json(asdict(plan))
        return
    if not yes and not as_json:
        typer.confirm("Go on?", abort=True)
    done = roll_back(
        chosen, plan, restart=restart, tell=(lambda _: None) if as_json else print_line
    )
    if as_json:
        print_json(asdict(done))


def _print_plan(plan: Plan, server: ServerConfig) -> None:
    since = plan.since.astimezone(server.calendar.zone)
    base = plan.base or "the very beginning"
    print_line(
        f"Back to {base}: text from {since:%Y-%m-%d %H:%M} ({server.timezone}) on will be learnt "
        "again."
    )
    if plan.source is not None:
        print_line(
            f"Source {plan.source} will be blocked; `yeoron sources unblock {plan.source}` ends "
            "that."
        )
    for name in plan.withdrawn:
        print_line(f"  will be withdrawn: {name}")
    if not plan.withdrawn:
        print_line("  no snapshot will be withdrawn")


def check(as_json: Json = False) -> None:
    """Say where the tables are, and try each PostgreSQL database.

    Example: `yeoron database check`
    """
    from embedding.platform.databases import DATABASES, check_databases, where

    chosen = settings_of()
    check_databases(chosen)
    addresses = {name: where(chosen, name) for name in DATABASES}
    if as_json:
        print_json(addresses)
        return
    for name, address in addresses.items():
        print_line(f"{name:<10} {address}")


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
    for name, rows in done.items():
        filled = [n for n in rows.values() if n]
        table.add_row(name, f"{len(filled):,}", f"{sum(filled):,}")
    console.print(table)
    print_line(
        f"The files are kept with {MOVED_SUFFIX} after their names; remove them when all is well."
    )
