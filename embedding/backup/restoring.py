"""`yeoron restore`: a home made from a backup, whole or not at all.

Everything is fetched into a folder inside the home and looked at there. Only then it is put into
its place, by renames. Killed before that, the home is as empty as it was; killed between two
renames, the same call ends it, and nothing starts in that home before.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from embedding.backup.collecting import row_folders
from embedding.backup.databases import (
    check_loadable,
    database_addresses,
    database_kind,
    load,
    sqlite_file,
)
from embedding.backup.manifest import (
    BACKUP_MANIFEST,
    CONFIGURATION,
    DUMPS,
    UNFINISHED,
    BackupManifest,
    check_formats,
    parse_backup,
)
from embedding.backup.repositories import BackupRepository, open_repository
from embedding.backup.staging import STAGE, VERIFIED
from embedding.exchange.placement import RowLayout, layout, needed_placement
from embedding.kernel.durable import replaced, sync
from embedding.kernel.errors import ConfigError, InputError, PlatformError
from embedding.kernel.private import private_folder
from embedding.settings import Settings

_HARMLESS = frozenset((STAGE, "lost+found"))
"""What an empty home may hold."""


def restore(
    settings: Settings, address: str, *, tell: Callable[[str], None] = lambda _: None
) -> BackupManifest:
    """Fill the empty home of `settings` from a backup; its manifest.

    ConfigError or InputError for a backup or a home that cannot be used, and PlatformError for
    what failed on the way: then the home is empty.
    """
    repository = open_repository(address)
    manifest = _read(repository)
    _check(settings, manifest)
    home = settings.paths.home
    stage = home / STAGE
    if not _verified(stage, manifest):
        _check_empty(home)
        private_folder(home)
        shutil.rmtree(stage, ignore_errors=True)
        private_folder(stage)
        try:
            if (free := shutil.disk_usage(stage).free) < manifest.bytes:
                raise PlatformError(
                    f"restore: {home} has {free:,} bytes free and the backup {manifest.bytes:,}."
                )
            _fetch(repository, manifest, stage)
            tell(f"{len(manifest.files):,} files fetched; every one is as it was written.")
            _move_rows(settings, manifest, stage, tell)
            _load(settings, stage, manifest)
            with replaced(stage / VERIFIED) as file:
                file.write(manifest.digest.encode())
        except BaseException:
            shutil.rmtree(stage, ignore_errors=True)
            raise
    for path in sorted(stage.iterdir()):
        if path.name != VERIFIED:
            path.rename(home / path.name)
    sync(home)
    shutil.rmtree(stage)
    return manifest


def _read(repository: BackupRepository) -> BackupManifest:
    data = repository.read(BACKUP_MANIFEST)
    if data is not None:
        manifest = parse_backup(data, repository.address)
        check_formats(manifest.formats, repository.address)
        return manifest
    if repository.read(UNFINISHED) is not None:
        raise InputError(
            f"restore: the backup at {repository.address} was cut off; run `yeoron backup` again."
        )
    raise InputError(
        f"restore: there is no backup at {repository.address}: it has no {BACKUP_MANIFEST}."
    )


def _check(settings: Settings, manifest: BackupManifest) -> None:
    """Refuse settings that do not go with the backup, before anything is fetched."""
    for name, here, stored in (
        ("model", settings.digest(), manifest.model),
        ("cluster.pool", settings.cluster.pool, manifest.pool),
    ):
        if here != stored:
            raise ConfigError(
                f"restore: the backup is of a platform with another {name} ({stored[:12]}, the "
                f"settings say {here[:12]}); its settings are in {CONFIGURATION}/settings.toml "
                "where it was given a file."
            )
    _check_server(settings, manifest)
    _check_places(settings, manifest)
    was, now = _layouts(settings, manifest)
    if was != now:
        needed_placement().check_move(was, now)
    addresses = database_addresses(settings)
    for part, kind in manifest.databases.items():
        check_loadable(part, kind, addresses[part])


def _check_server(settings: Settings, manifest: BackupManifest) -> None:
    """Refuse to part a server's checkpoints from what belongs to them."""
    if manifest.server_host and not settings.hosts.server:
        raise ConfigError(
            "restore: the server's checkpoints are in the backup of another host "
            f"({manifest.server_host}); settings whose server runs on a host of its own are "
            "accepted (hosts.server), and that backup is restored there."
        )
    if settings.hosts.server and not manifest.server_host:
        raise ConfigError(
            "restore: the backup holds a server's checkpoints, and the settings have it run on "
            f"the host {settings.hosts.server}; settings without hosts.server are accepted."
        )


def _check_places(settings: Settings, manifest: BackupManifest) -> None:
    """Refuse settings by which a store lies elsewhere than where it would be put."""
    home, addresses = settings.paths.home.resolve(), database_addresses(settings)
    stores = {home / "checkpoints": [settings.state_folder]}
    stores[home / "checkpoints"] += [folder.parent for folder in row_folders(settings)]
    for part, kind in manifest.databases.items():
        if kind == "sqlite" and database_kind(addresses[part]) == "sqlite":
            stores[home / part] = [sqlite_file(addresses[part]).parent]
    for wanted, folders in stores.items():
        for folder in folders:
            if folder.resolve() != wanted:
                raise ConfigError(
                    f"restore: the settings keep in {folder} what would be put into {wanted}; "
                    "settings that leave it there are accepted (server.state_dir, "
                    "crawl.frontier)."
                )


def _check_empty(home: Path) -> None:
    names = sorted(path.name for path in home.iterdir()) if home.is_dir() else []
    left = [name for name in names if name not in _HARMLESS]
    left.sort(key=lambda name: name.startswith("."))
    if left:
        raise InputError(
            f"restore: {home} holds {left[0]}{' and more' if len(left) > 1 else ''}; an empty home "
            "is accepted: move that one away first, or set paths.home."
        )


def _fetch(repository: BackupRepository, manifest: BackupManifest, stage: Path) -> None:
    for name, expected in manifest.files.items():
        stored = repository.get(name, stage / name)
        if stored is None:
            raise InputError(f"restore: {repository.address} has no {name}; nothing was restored.")
        if stored != expected:
            raise InputError(
                f"restore: {name} in {repository.address} is not as it was written: it is damaged; "
                "nothing was restored."
            )


def _layouts(settings: Settings, manifest: BackupManifest) -> tuple[RowLayout, RowLayout]:
    """How the rows lay, and how they are to lie."""
    return {"shards": manifest.shards, "split": manifest.split}, layout(settings.server)


def _move_rows(
    settings: Settings, manifest: BackupManifest, stage: Path, tell: Callable[[str], None]
) -> None:
    """Rows to the processes that the settings ask for."""
    was, now = _layouts(settings, manifest)
    folder = stage / "checkpoints"
    if was == now or not folder.is_dir():
        return
    fresh = stage / "moved"
    model = settings.model
    needed_placement().move(folder, fresh, was, now, dim=model.width, buckets=model.gram_rows)
    shutil.rmtree(folder)
    fresh.rename(folder)
    tell(f"Rows of {was['shards']} shards were moved to {now['shards']}.")


def _load(settings: Settings, stage: Path, manifest: BackupManifest) -> None:
    """PostgreSQL's databases, each in one transaction, and then what they came from goes."""
    addresses = database_addresses(settings)
    done: list[str] = []
    for part in sorted(manifest.databases):
        if manifest.databases[part] != "postgresql":
            continue
        try:
            load(stage / DUMPS / f"{part}.dump", addresses[part])
        except PlatformError as error:
            filled = (
                f" The database of {', '.join(done)} is filled: empty it first." if done else ""
            )
            raise PlatformError(f"{error}{filled}") from error
        done.append(part)
    shutil.rmtree(stage / DUMPS, ignore_errors=True)
    for part, kind in manifest.databases.items():
        if kind == "sqlite":
            for copy in (stage / part).glob("*.db"):
                copy.rename(stage / part / sqlite_file(addresses[part]).name)


def _verified(stage: Path, manifest: BackupManifest) -> bool:
    """Whether all of this backup is there already; InputError when it is all of another."""
    try:
        text = (stage / VERIFIED).read_text("utf-8")
    except FileNotFoundError:
        return False
    if text != manifest.digest:
        raise InputError(
            f"restore: {stage.parent} was being filled from another backup; name that one, or "
            f"empty the folder."
        )
    return True
