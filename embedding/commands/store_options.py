"""Which snapshot a command is about: the options that say so, and how it is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedding.commands.common import settings_of

if TYPE_CHECKING:
    from embedding.snapshots.snapshot import Snapshot
    from embedding.snapshots.store import SnapshotStore

SnapshotStoreOption = Annotated[
    Path | None, typer.Option("--snapshots", help="Snapshot store (a folder).")
]
ID_HELP = "Snapshot id, latest, or a folder: a snapshot's, or a store's for its latest."
Id = Annotated[str, typer.Argument(help=ID_HELP)]


def open_store(folder: Path | None) -> SnapshotStore:
    """The store in `folder`, or the platform's."""
    from embedding.snapshots.store import SnapshotStore

    return SnapshotStore(str(folder or settings_of().snapshot_store))


def open_snapshot(what: str, folder: Path | None) -> Snapshot:
    """A snapshot by id in the store `folder`, or by its own folder or that of its store."""
    from embedding.snapshots.format import MANIFEST
    from embedding.snapshots.snapshot import Snapshot
    from embedding.snapshots.store import SnapshotStore

    path = Path(what)
    # An id never has a separator, so that a folder named like an id is reached as ./NAME.
    if folder is None and path.is_dir() and what != "latest":
        return Snapshot(path) if (path / MANIFEST).exists() else SnapshotStore(what).open()
    return open_store(folder).open(what)
