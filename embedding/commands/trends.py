"""`yeoron trends moved|born|risen|word`: what changed between windows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedding.commands.common import Json, console, settings

if TYPE_CHECKING:
    from embedding.trends.rows import TrendReport

Store = Annotated[Path | None, typer.Option("--snapshots", help="Snapshot store (a folder).")]
Id = Annotated[str, typer.Option("--id", help="Snapshot id, or latest.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV, for spreadsheets.")]
Limit = Annotated[int, typer.Option("-n", "--limit", min=1, help="Rows.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    group = typer.Typer(help="What changed between windows.", no_args_is_help=True)
    group.command("moved")(moved)
    group.command("born")(born)
    group.command("risen")(risen)
    group.command("word")(word)
    app.add_typer(group, name="trends")


def moved(
    snapshots: Store = None,
    id: Id = "latest",  # noqa: A002 - the option's name
    limit: Limit = 20,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Words whose meaning moved, surest first.

    Examples: `yeoron trends moved` · `yeoron trends moved --snapshots store --csv`
    """
    _print(_report(snapshots, id), "moved", limit, as_json, as_csv)


def born(
    snapshots: Store = None,
    id: Id = "latest",  # noqa: A002
    limit: Limit = 20,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Words seen for the first time.

    Example: `yeoron trends born --id 2020-02-a1b2c3d4`
    """
    _print(_report(snapshots, id), "born", limit, as_json, as_csv)


def risen(
    snapshots: Store = None,
    id: Id = "latest",  # noqa: A002
    limit: Limit = 20,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Words that became more frequent.

    Example: `yeoron trends risen --json`
    """
    _print(_report(snapshots, id), "risen", limit, as_json, as_csv)


def word(
    word: Annotated[str, typer.Argument(help="The word.")],
    snapshots: Store = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """One word over all windows: frequency by source, shift, neighbours.

    Example: `yeoron trends word 코로나`
    """
    from embedding.snapshots.store import SnapshotStore
    from embedding.trends.history import word_history
    from embedding.trends.table import word_csv, word_json, word_table

    chosen = settings()
    store = SnapshotStore(str(snapshots or chosen.paths.snapshots))
    history = word_history(store, word, chosen.trends)
    if as_json or as_csv:
        sys.stdout.write(word_json(history) if as_json else word_csv(history))
    else:
        console.print(word_table(history))


def _report(snapshots: Path | None, id: str) -> TrendReport:  # noqa: A002
    from embedding.snapshots.store import SnapshotStore
    from embedding.trends.report import build_report

    chosen = settings()
    store = SnapshotStore(str(snapshots or chosen.paths.snapshots))
    with console.status("Comparing windows …"):
        return build_report(store, id, chosen.trends)


def _print(report: TrendReport, name: str, limit: int, as_json: bool, as_csv: bool) -> None:
    from embedding.trends.table import ranking_csv, ranking_json, ranking_table

    if as_json or as_csv:
        text = ranking_json if as_json else ranking_csv
        sys.stdout.write(text(report, name, limit))
    else:
        console.print(ranking_table(report, name, limit))
