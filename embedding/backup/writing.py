"""`yeoron backup`: a home's stores of one moment in a place that may be far away.

A place says from the first file on that what is in it is not finished, and has a manifest only when
all of it is there: a backup that was cut off passes for none, and the same call begins it again.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from embedding.backup.collecting import collect
from embedding.backup.manifest import (
    BACKUP_MANIFEST,
    STORED_FORMATS,
    UNFINISHED,
    BackupManifest,
    make_manifest,
)
from embedding.backup.repositories import BackupRepository, open_repository
from embedding.exchange.channel import ask
from embedding.kernel.errors import ConfigError, InputError, UnavailableError
from embedding.kernel.private import private_folder
from embedding.settings import Settings

_STAGE = ".backup"
_CHECKPOINT_S = 300.0


def back_up(settings: Settings, address: str) -> BackupManifest:
    """Write a backup of the home, which may run, to a folder or URL; its manifest.

    ConfigError or InputError for a place that cannot take one; nothing is changed there then.
    PlatformError or UnavailableError for what failed on the way; the same call begins again.
    """
    repository = open_repository(address)
    if not settings.paths.home.is_dir():
        raise ConfigError(f"backup: {settings.paths.home}: there is no home of a platform here.")
    _check_free(repository)
    elsewhere = settings.hosts.server
    before = _at_rest(settings) if elsewhere else None
    with _stage(settings.paths.home) as stage:
        kinds = collect(settings, stage, lambda: _checkpoint(settings))
        if elsewhere and _at_rest(settings) != before:
            raise UnavailableError(
                f"backup: the server on the host {elsewhere} learnt or began again meanwhile; "
                "try again when its nodes are at rest."
            )
        repository.write(UNFINISHED, b"This backup is not finished.\n")
        repository.clear(UNFINISHED)
        names = sorted(path.relative_to(stage) for path in stage.rglob("*") if path.is_file())
        files = {str(name): repository.put(stage / name, str(name)) for name in names}
    facts = {
        "formats": dict(STORED_FORMATS),
        "model": settings.digest(),
        "pool": settings.cluster.pool,
        "shards": settings.server.shards,
        "split": settings.server.split,
        "databases": kinds,
        "server_host": elsewhere,
    }
    manifest = make_manifest(facts, files)
    repository.write(BACKUP_MANIFEST, manifest.to_json().encode())
    repository.remove(UNFINISHED)
    return manifest


def _check_free(repository: BackupRepository) -> None:
    """A place that is empty, or holds a backup that was cut off; InputError."""
    if repository.read(BACKUP_MANIFEST) is not None:
        raise InputError(
            f"backup: {repository.address} holds a backup; an empty place is accepted."
        )
    if repository.read(UNFINISHED) is None and not repository.empty():
        raise InputError(f"backup: {repository.address} is not empty; an empty place is accepted.")


@contextmanager
def _stage(home: Path) -> Iterator[Path]:
    """A folder of the home for what is gathered; ConfigError while another backup is made."""
    stage = home / _STAGE
    with (home / f"{_STAGE}.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(f"backup: another backup of {home} is being made.") from error
        shutil.rmtree(stage, ignore_errors=True)
        private_folder(stage)
        try:
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)


def _at_rest(settings: Settings) -> tuple[object, ...] | None:
    """What the server of another host has learnt; None while it is away.

    ConfigError while nodes train: what is done in the frontier here would not be in the checkpoint
    there, or the other way round, whichever is copied first.
    """
    try:
        status = ask(settings.server_location, settings.line(operator=True), "status")
    except UnavailableError:
        return None
    training = sorted(name for name, node in status["nodes"].items() if node["state"] == "active")
    if training:
        raise ConfigError(
            f"backup: {', '.join(training)} train on the server of the host "
            f"{settings.hosts.server} (hosts.server), whose checkpoints are there: run `yeoron "
            "down` here, then `yeoron backup PLACE` here and, with another place, on that host."
        )
    return status["epoch"], status["pushes"], status["tokens"]


def _checkpoint(settings: Settings) -> None:
    """Have the server that runs write one; UnavailableError when it does not."""
    server, line = settings.server_location, settings.line(operator=True)
    try:
        ask(server, line, "checkpoint", {"wait": True}, _CHECKPOINT_S)
    except UnavailableError as error:
        raise UnavailableError(
            f"backup: the server of {settings.paths.home} wrote no checkpoint "
            f"({str(error).rstrip('.')})."
        ) from error
