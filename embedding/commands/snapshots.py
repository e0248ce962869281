"""`yeoron snapshot list|show|verify|amend|neighbours`; `evaluate` has a file of its own."""

from __future__ import annotations

from typing import Annotated

import typer

from embedding.commands.common import (
    Json,
    console,
    errors,
    print_json,
    print_line,
    settings_of,
)
from embedding.commands.evaluating import evaluate
from embedding.commands.live import ServerOption
from embedding.commands.store_options import (
    ID_HELP,
    Id,
    SnapshotStoreOption,
    open_snapshot,
    open_store,
)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    group = typer.Typer(
        help="Snapshots: what was learnt by the end of each window.", no_args_is_help=True
    )
    group.command("list")(list_snapshots)
    group.command("show")(show)
    group.command("verify")(verify)
    group.command("amend")(amend)
    group.command("withdraw")(withdraw)
    group.command("reinstate")(reinstate)
    group.command("neighbours")(neighbours)
    group.command("evaluate")(evaluate)
    app.add_typer(group, name="snapshot")


def list_snapshots(snapshots: SnapshotStoreOption = None, as_json: Json = False) -> None:
    """List snapshots by window, with what each lacks; broken ones are named with what is wrong.

    Example: `yeoron snapshot list --snapshots store`
    """
    store = open_store(snapshots)
    refs = store.list()
    broken, gone = store.broken(), store.withdrawn()
    if as_json:
        summary = {
            name: {"at": one.at.isoformat(), "reason": one.reason} for name, one in gone.items()
        }
        listed = [ref.to_dict() for ref in refs]
        print_json({"snapshots": listed, "broken": broken, "withdrawn": summary})
        return
    from rich.table import Table

    from embedding.kernel.records import Window

    if not (refs or broken or gone):
        print_line(
            f"{store.uri} holds no snapshot yet; `yeoron train … --out FOLDER` or a running "
            "platform writes some."
        )
        return
    table = Table("snapshot", "window", "words", "lacks", "parent")
    for ref in refs:
        window = Window(ref.window_start, ref.window_end)
        missing = store.manifest(ref.id).lacking if ref.lacks else ()
        lacks = ", ".join(one.part for one in missing) or "–"
        table.add_row(ref.id, window.label, f"{ref.words:,}", lacks, ref.parent or "–")
    console.print(table)
    for sentence in (sentence for ref in refs for sentence in ref.lacks):
        print_line(sentence, "yellow")
    for name, why in broken.items():
        print_line(f"broken: {name}: {why}", "red")
    for name, one in gone.items():
        print_line(f"withdrawn: {name}, {one.at:%Y-%m-%d}: {one.reason}", "dim")


def show(id: Id = "latest", snapshots: SnapshotStoreOption = None) -> None:  # noqa: A002 - the argument's name
    """Print the manifest of a snapshot as JSON: window, sources, digests, quality.

    Example: `yeoron snapshot show latest`
    """
    snapshot = open_snapshot(id, snapshots)
    print_json(snapshot.manifest.model_dump(mode="json"))
    for sentence in snapshot.ref.lacks:
        print_line(sentence, "yellow", to=errors)


def verify(id: Id = "latest", snapshots: SnapshotStoreOption = None) -> None:  # noqa: A002
    """Check every file of a snapshot against its manifest.

    Example: `yeoron snapshot verify 2020-02-a1b2c3d4`
    """
    snapshot = open_snapshot(id, snapshots)
    snapshot.verify()
    console.print(f"{snapshot.id}: every file matches its manifest.")


def amend(
    id: Id = "latest",  # noqa: A002
    server: ServerOption = None,
    snapshots: SnapshotStoreOption = None,
) -> None:
    """Have the server read again what a snapshot lacks, and publish its window once more.

    Example: `yeoron snapshot amend 2021-04`
    """
    from embedding.commands.amending import amended

    with console.status("The server reads the window again …"):
        outcome = amended(open_snapshot(id, snapshots), settings_of(snapshots), server)
    for sentence in outcome:
        print_line(sentence)


def withdraw(
    id: Annotated[str, typer.Argument(help="Snapshot id.")],  # noqa: A002
    reason: Annotated[str, typer.Option("--reason", help="Why, for whoever asks later.")],
    snapshots: SnapshotStoreOption = None,
) -> None:
    """Take one snapshot out of the series. Its files stay. To learn it again: `yeoron rollback`.

    Example: `yeoron snapshot withdraw 2020-02-a1b2c3d4 --reason "a source was spammed"`
    """
    open_store(snapshots).withdraw([id], reason)
    print_line(f"{id}: withdrawn.")


def reinstate(
    id: Annotated[str, typer.Argument(help="Snapshot id.")],  # noqa: A002
    snapshots: SnapshotStoreOption = None,
) -> None:
    """Put a withdrawn snapshot back into the series.

    Example: `yeoron snapshot reinstate 2020-02-a1b2c3d4`
    """
    open_store(snapshots).reinstate([id])
    print_line(f"{id}: in the series again.")


def neighbours(
    word: Annotated[str, typer.Argument(help="A word of the snapshot.")],
    id: Annotated[str, typer.Option("--id", help=ID_HELP)] = "latest",  # noqa: A002
    n: Annotated[int, typer.Option("-n", help="How many.")] = 10,
    snapshots: SnapshotStoreOption = None,
    as_json: Json = False,
) -> None:
    """Show the nearest words of a word. Rare words count as less near, as their vectors are unsure.

    Example: `yeoron snapshot neighbours 마스크 -n 20`
    """
    snapshot = open_snapshot(id, snapshots)
    found = snapshot.neighbours(word, n)
    if why := snapshot.unreadable:
        print_line(f"snapshot {snapshot.id}: {why}", to=errors)
        found = []
    if as_json:
        print_json([{"word": other, "nearness": near} for other, near in found])
        return
    for other, near in found:
        print_line(f"{near:.3f}  {other}")
