"""`yeoron snapshot list|show|verify|neighbours|export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from embedding.commands.common import Json, console, print_json, settings

if TYPE_CHECKING:
    from embedding.snapshots.store import SnapshotStore

Store = Annotated[Path | None, typer.Option("--snapshots", help="Snapshot store (a folder).")]
Id = Annotated[str, typer.Argument(help="Snapshot id, or latest.")]


def register(app: typer.Typer) -> None:
    """Add these commands."""
    group = typer.Typer(help="Versioned embedding snapshots.", no_args_is_help=True)
    group.command("list")(list_snapshots)
    group.command("show")(show)
    group.command("verify")(verify)
    group.command("neighbours")(neighbours)
    group.command("export")(export_snapshot)
    app.add_typer(group, name="snapshot")


def _store(folder: Path | None) -> SnapshotStore:
    from embedding.snapshots.store import SnapshotStore

    return SnapshotStore(str(folder or settings().paths.snapshots))


def list_snapshots(snapshots: Store = None, as_json: Json = False) -> None:
    """List snapshots by window; broken ones are named with what is wrong.

    Example: `yeoron snapshot list --snapshots store`
    """
    store = _store(snapshots)
    refs = store.list()
    broken = store.broken()
    if as_json:
        print_json({"snapshots": [ref.to_dict() for ref in refs], "broken": broken})
        return
    table = Table("snapshot", "window", "words", "parent")
    for ref in refs:
        window = f"{ref.window_start:%Y-%m-%d %H:%M} – {ref.window_end:%Y-%m-%d %H:%M}"
        table.add_row(ref.id, window, f"{ref.words:,}", ref.parent or "–")
    console.print(table)
    for name, why in broken.items():
        console.print(f"broken: {name}: {why}", style="red", markup=False)


def show(id: Id = "latest", snapshots: Store = None) -> None:  # noqa: A002 - the argument's name
    """Print a snapshot's manifest as JSON: window, sources, digests, quality.

    Example: `yeoron snapshot show latest`
    """
    print_json(vars(_store(snapshots).open(id).manifest))


def verify(id: Id = "latest", snapshots: Store = None) -> None:  # noqa: A002
    """Check every file of a snapshot against its manifest.

    Example: `yeoron snapshot verify 2020-02-a1b2c3d4`
    """
    snapshot = _store(snapshots).open(id)
    snapshot.verify()
    console.print(f"{snapshot.id}: every file matches its manifest.")


def neighbours(
    word: Annotated[str, typer.Argument(help="A word of the snapshot.")],
    id: Annotated[str, typer.Option("--id", help="Snapshot id, or latest.")] = "latest",  # noqa: A002
    n: Annotated[int, typer.Option("-n", help="How many.")] = 10,
    snapshots: Store = None,
    as_json: Json = False,
) -> None:
    """Nearest words by cosine.

    Example: `yeoron snapshot neighbours 마스크 -n 20`
    """
    snapshot = _store(snapshots).open(id)
    found = snapshot.neighbours(word, n)
    if as_json:
        print_json([{"word": other, "cosine": cosine} for other, cosine in found])
        return
    for other, cosine in found:
        console.print(f"{cosine:.3f}  {other}", highlight=False, markup=False)


def export_snapshot(
    out: Annotated[Path, typer.Option("--out", help="File to write.")],
    id: Id = "latest",  # noqa: A002
    format: Annotated[  # noqa: A002
        str, typer.Option("--format", help="word2vec, word2vec-text or keyedvectors.")
    ] = "word2vec",
    snapshots: Store = None,
) -> None:
    """Write the word vectors in a form that gensim opens.

    Example: `yeoron snapshot export latest --format word2vec --out vectors.bin`
    """
    from embedding.snapshots.export import export

    count = export(_store(snapshots).open(id), format, out)
    console.print(f"{count:,} vectors written to {out}.", highlight=False)
