"""Which snapshot a command is about: the options that say so, and how it is opened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from embedding.commands.common import settings_of
from embedding.kernel.errors import ConfigError

if TYPE_CHECKING:
    from embedding.settings import Settings
    from embedding.snapshots.snapshot import Snapshot
    from embedding.snapshots.store import SnapshotStore
    from embedding.web.config import WebConfig

SnapshotStoreOption = Annotated[
    Path | None,
    typer.Option("--snapshots", help="Folder of the snapshots (default: the platform's)."),
]
EvidenceOption = Annotated[
    Path | None,
    typer.Option("--evidence", help="Folder with addresses of documents; only with --snapshots."),
]
ID_HELP = (
    "A window (2020-01), the id of a snapshot, latest, or a folder: of one snapshot, or of a store "
    "for its latest."
)
Id = Annotated[str, typer.Argument(help=ID_HELP)]


def page_of(chosen: Settings, folder: Path | None, evidence: Path | None) -> WebConfig:
    """What the page reads, of the store in `folder` where one is named."""
    if folder is None:
        if evidence is not None:
            raise ConfigError(f"--evidence {evidence}: it is accepted with --snapshots alone.")
        return chosen.page
    # Addresses of the settings belong to the snapshots of the settings.
    return chosen.page.model_copy(update={"snapshots": str(folder), "evidence": evidence})


def open_store(folder: Path | None) -> SnapshotStore:
    """The store in `folder`, or the platform's."""
    from embedding.snapshots.store import SnapshotStore

    return SnapshotStore(str(folder or settings_of().snapshot_store))


def open_snapshot(what: str, folder: Path | None) -> Snapshot:
    """A snapshot by id or window in the store `folder`, or by its own folder or its store's."""
    from embedding.snapshots.format import MANIFEST
    from embedding.snapshots.snapshot import Snapshot
    from embedding.snapshots.store import SnapshotStore

    path = Path(what)
    # An id never has a separator, so that a folder named like an id is reached as ./NAME.
    if folder is None and path.is_dir() and what != "latest":
        return Snapshot(path) if (path / MANIFEST).exists() else SnapshotStore(what).open()
    store = open_store(folder)
    return store.open(store.named(what))
