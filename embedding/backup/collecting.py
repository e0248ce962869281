"""What belongs together in a home that runs, gathered in a folder of its own as links and copies.

The order is what makes it consistent. Whatever names something else is copied before that: reports
and databases before snapshots. The frontier is copied while the checkpoint that was taken is the
newest one: a document is done when its push is in a checkpoint, so all that is done there is in
this one, and of what is not done the checkpoint knows which it holds. A home made again is as after
a kill of every process at that moment (`docs/concepts/recovery.md`).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from embedding.backup.databases import database_addresses, dump, dumped_name
from embedding.backup.manifest import (
    BACKUP_MANIFEST,
    CONFIGURATION,
    STORED_FORMATS,
    UNFINISHED,
    BackupManifest,
    make_manifest,
)
from embedding.backup.repositories import BackupRepository, open_repository
from embedding.exchange.peer import ask
from embedding.exchange.placement import layout, placement
from embedding.kernel.errors import ConfigError, InputError, UnavailableError
from embedding.kernel.private import private_folder
from embedding.server.recovery.checkpoint import NOTES, kept_out, numbers
from embedding.settings import Settings, given_settings
from embedding.snapshots.format import ID
from embedding.snapshots.format import MANIFEST as SNAPSHOT_MANIFEST
from embedding.snapshots.store import NOTE

_TRIES = 10
_PLAIN = ("rejected-sources.json", "web-token", "web-tokens.sqlite", "accounts.sqlite", "team.json")
_AIRFLOW = ("secrets.json", "passwords.json")
"""The key that Airflow's database is encrypted with, and the login."""


def row_folders(settings: Settings) -> list[Path]:
    """Where other processes than the server keep checkpoints of rows."""
    kind = placement(settings.server)
    return [] if kind is None else kind.folders(settings.server, settings.state_folder)


def collect(settings: Settings, into: Path, checkpoint: Callable[[], None]) -> dict[str, str]:
    """Gather a home's stores in `into`, named as in the home; kinds of the databases by part.

    checkpoint  has the running server write one of what is there now, and waits for it

    Without checkpoints where the server runs on a host of its own: nodes must be at rest then.

    UnavailableError when the server does not answer, or no moment was quiet enough.
    """
    paths = settings.paths
    _link_all(paths.trends, into / "trends")
    addresses = database_addresses(settings)
    kinds: dict[str, str] = {}

    def copy_database(part: str) -> None:
        name = dumped_name(part, addresses[part])
        if dump(addresses[part], into / name):
            kinds[part] = "postgresql" if name.endswith(".dump") else "sqlite"

    copy_database("mlflow")
    copy_database("airflow")
    if settings.hosts.server:
        copy_database("frontier")
    else:
        _together(settings, into, checkpoint, lambda: copy_database("frontier"))
    _snapshots(paths.snapshots, into / "snapshots")
    _link_all(paths.evidence, into / "evidence")
    _link_all(paths.mlflow / "artifacts", into / "mlflow" / "artifacts")
    for name in _AIRFLOW:
        _copy(paths.airflow / name, into / "airflow" / name)
    for name in _PLAIN:
        _copy(paths.home / name, into / name)
    file = given_settings().file
    if file is not None:
        _copy(file, into / CONFIGURATION / "settings.toml")
    _copy(paths.sources, into / CONFIGURATION / "sources.toml")
    return kinds


def _together(
    settings: Settings, into: Path, checkpoint: Callable[[], None], frontier: Callable[[], None]
) -> None:
    """Checkpoint and frontier of one moment."""
    state = settings.state_folder
    for _ in range(_TRIES):
        with kept_out(state) as alone:
            if not alone:
                checkpoint()
            before = numbers(state)[-1:]
            shutil.rmtree(into / "checkpoints", ignore_errors=True)
            try:
                _state(state, into / "checkpoints")
                for folder in row_folders(settings):
                    _state(folder, into / "checkpoints" / folder.name)
            except FileNotFoundError:
                continue  # removed for a newer one in the meantime
            frontier()
            if numbers(state)[-1:] == before:
                return
        time.sleep(0.1)
    raise UnavailableError(
        f"backup: the server wrote {_TRIES} checkpoints while its frontier was copied; try again, "
        "or with a larger server.checkpoint_every_s."
    )


def _state(folder: Path, into: Path) -> None:
    """The newest checkpoint, the words admitted after it, and what outlives checkpoints."""
    for name in NOTES:
        _copy(folder / name, into / name)
    for number in numbers(folder)[-1:]:
        name = f"checkpoint-{number:08d}"
        _link_tree(folder / name, into / name)
        for journal in sorted(folder.glob("journal-*.jsonl")):
            if journal.stem >= f"journal-{number:08d}":
                _copy(journal, into / journal.name)


def _snapshots(store: Path, into: Path) -> None:
    if not store.is_dir():
        return
    for folder in sorted(store.iterdir()):
        if ID.fullmatch(folder.name) and (folder / SNAPSHOT_MANIFEST).is_file():
            try:
                _link_tree(folder, into / folder.name)
            except FileNotFoundError:
                shutil.rmtree(into / folder.name)  # `yeoron retain` has removed it
    _copy(store / NOTE, into / NOTE)


def _link_all(folder: Path, into: Path) -> None:
    """Files that are there, and those that took the place of some which went meanwhile."""
    again = folder.is_dir()
    while again:
        again = False
        for path in sorted(folder.rglob("*")):
            inside = path.relative_to(folder)
            hidden = any(part.startswith(".") for part in inside.parts)
            if hidden or not path.is_file() or (into / inside).exists():
                continue
            try:
                _link(path, into / inside)
            except FileNotFoundError:
                again = True


def _link_tree(folder: Path, into: Path) -> None:
    """All files of a folder that never changes; FileNotFoundError when it goes meanwhile."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            _link(path, into / path.relative_to(folder))


def _link(path: Path, target: Path) -> None:
    """Another name of a file that never changes; a copy where it lies on another disk."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        os.link(path, target)
    except OSError:
        shutil.copy2(path, target)


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileNotFoundError):
        shutil.copyfile(path, target)
        target.chmod(0o600)


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
        **layout(settings.server),
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
