"""`yeoron rollback`: back to before a bad window, or on without a poisoned source."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from embedding.commands.common import Json, print_json, print_line, settings_of, silent

if TYPE_CHECKING:
    from embedding.rollback import Plan
    from embedding.server.config import ServerConfig


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("rollback")(rollback)


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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
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
        _show(plan, chosen.server)
    if dry_run:
        if as_json:
            print_json(asdict(plan))
        return
    if not yes and not as_json:
        typer.confirm("Go on?", abort=True)
    done = roll_back(chosen, plan, restart=restart, tell=silent if as_json else print_line)
    if as_json:
        print_json(asdict(done))


def _show(plan: Plan, server: ServerConfig) -> None:
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
