"""What a backup says of itself: backup.json, written last, so that one that is cut off has none."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from embedding import __version__
from embedding.crawl.tables import FRONTIER_VERSION
from embedding.kernel.config import explain
from embedding.kernel.errors import InputError
from embedding.server.recovery.checkpoint import SHARD_FORMAT
from embedding.server.recovery.restoring import READABLE
from embedding.snapshots.evidence import EVIDENCE_FORMAT
from embedding.snapshots.files import FileEntry
from embedding.snapshots.format import SNAPSHOT_FORMAT
from embedding.trends.rows import REPORT_FORMAT

BACKUP_MANIFEST = "backup.json"
UNFINISHED = "backup.unfinished"
"""Is there from the first file on until the manifest is written."""
_KIND = "yeoron backup"
_FORMAT = 1
_PACKAGES = ("apache-airflow", "distributed", "mlflow", "numpy", "pyarrow", "torch")

StoreName = Literal[
    "checkpoints", "frontier", "snapshots", "evidence", "trends", "mlflow", "airflow"
]
"""Folders of a home that a backup holds."""
STORES: tuple[str, ...] = get_args(StoreName)
DUMPS = "databases"
"""Folder of a backup with what PostgreSQL's databases hold."""
CONFIGURATION = "configuration"
"""Folder with the settings file and the sources file."""
_TOP = (*STORES, DUMPS, CONFIGURATION)

_PART = r"[^/.\\\x00-\x1f][^/\\\x00-\x1f]*"
StoredName = Annotated[
    str,
    Field(pattern=rf"^(?:(?:{'|'.join(_TOP)})(?:/{_PART})+|[a-z][a-z0-9.-]*)$", max_length=1000),
]
"""A file of a backup, as it is called in the home. A backup may come from a store that others write
to, and what it names is written into a folder here."""


class BackupManifest(BaseModel):
    """The content of backup.json."""

    model_config = ConfigDict(frozen=True)

    kind: str = _KIND
    format: int = _FORMAT
    """Version of this layout."""
    made_at: datetime
    """When, UTC."""
    versions: dict[str, str]
    """Of Yeoron, Python, and the packages that wrote what is here."""
    formats: dict[str, int]
    """Version of the layout of each store."""
    model: str
    """Digest of the model's settings."""
    pool: str
    """Name of the pool of nodes."""
    shards: int
    """On how many shards the rows lie."""
    split: str
    """What of the tables a shard holds: rows or columns."""
    databases: dict[str, str]
    """Kind of each database that is here: sqlite or postgresql."""
    server_host: str = ""
    """Host whose backup of its own holds the server's checkpoints; empty: they are in this one."""
    files: dict[StoredName, FileEntry]
    """Every other file."""
    digest: str = ""
    """SHA-256 (hex) over the canonical JSON of all the other fields."""

    def sealed(self) -> BackupManifest:
        """With the digest of what it says."""
        # Without the host where it is none: backups made before there was one have their digest.
        left_out = {"digest"} if self.server_host else {"digest", "server_host"}
        content = self.model_dump(mode="json", exclude=left_out)
        text = json.dumps(content, ensure_ascii=False, sort_keys=True)
        return self.model_copy(update={"digest": hashlib.sha256(text.encode()).hexdigest()})

    def to_json(self) -> str:
        content = self.model_dump(mode="json")
        return json.dumps(content, ensure_ascii=False, sort_keys=True, indent=1) + "\n"

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files.values())

    def store(self, name: str) -> dict[str, FileEntry]:
        return {key: file for key, file in self.files.items() if key.startswith(f"{name}/")}


def make_manifest(facts: Mapping[str, Any], files: Mapping[str, FileEntry]) -> BackupManifest:
    """The manifest of a backup whose files have been written."""
    versions = {"yeoron": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    draft = BackupManifest(made_at=datetime.now(UTC), versions=versions, files=dict(files), **facts)
    return draft.sealed()


def parse_backup(data: bytes, where: str) -> BackupManifest:
    """Read backup.json; InputError that says what is wrong with it."""
    try:
        content = json.loads(data)
    except ValueError as error:
        raise InputError(f"{where}: {BACKUP_MANIFEST} is not valid JSON: it is damaged.") from error
    if not isinstance(content, dict) or content.get("kind") != _KIND:
        raise InputError(f"{where}: {BACKUP_MANIFEST} is of another program; no backup is here.")
    stored = content.get("format")
    if not isinstance(stored, int) or stored > _FORMAT:
        by = dict(content.get("versions") or {}).get("yeoron", "a newer version")
        raise InputError(
            f"{where}: the backup has format {stored} and was made by Yeoron {by}; this version "
            f"reads up to format {_FORMAT}."
        )
    try:
        manifest = BackupManifest.model_validate(content)
    except ValidationError as error:
        raise InputError(explain(error, f"{where}: {BACKUP_MANIFEST}", BackupManifest)) from error
    if manifest.sealed().digest != manifest.digest:
        raise InputError(f"{where}: {BACKUP_MANIFEST} was changed after it was written.")
    return manifest


STORED_FORMATS: Mapping[str, int] = {
    "checkpoint": max(READABLE),
    "shard checkpoint": SHARD_FORMAT,
    "snapshot": SNAPSHOT_FORMAT,
    "frontier": FRONTIER_VERSION,
    "evidence": EVIDENCE_FORMAT,
    "report": REPORT_FORMAT,
}
"""The newest format of each store that this version writes and reads."""


def check_formats(formats: Mapping[str, int], where: str) -> None:
    """InputError where a store is of a newer version than this one."""
    for name, stored in formats.items():
        newest = STORED_FORMATS.get(name, 0)
        if stored > newest:
            raise InputError(
                f"{where}: its {name} has format {stored}, which a newer version of Yeoron wrote; "
                f"this version reads up to {newest}."
            )
