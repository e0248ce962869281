"""`yeoron backup` and `yeoron restore`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from embedding.commands.common import (
    Json,
    console,
    keep_private,
    print_json,
    print_line,
    settings,
    settings_of,
    silent,
)

if TYPE_CHECKING:
    from embedding.backup.manifest import BackupManifest

_Address = Annotated[
    str, typer.Argument(metavar="PLACE", help="A folder, or a URL such as s3://bucket/name.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("backup")(backup)
    app.command("restore")(restore)


def backup(place: _Address, as_json: Json = False) -> None:
    """Copy all that the platform keeps to an empty place. The platform may run.

    Where the server has a host of its own, run it on both hosts while no node trains.

    Examples: `yeoron backup /mnt/backups/monday` · `yeoron backup s3://yeoron-backups/monday`
    """
    from embedding.backup.writing import back_up
    from embedding.platform.hosts import on_its_host

    keep_private()
    began = time.monotonic()
    chosen = on_its_host(settings_of())
    with console.status("Copying …"):
        manifest = back_up(chosen, place)
    _show("backup", manifest, place, time.monotonic() - began, as_json=as_json)
    if manifest.server_host and not as_json:
        print_line(
            f"The server's checkpoints are no part of it: run `yeoron backup` on the host "
            f"{manifest.server_host} too, before nodes train again."
        )
    elsewhere = chosen.server.snapshots
    if elsewhere is not None and not as_json and elsewhere != str(chosen.paths.snapshots):
        print_line(f"Snapshots lie in {elsewhere} (server.snapshots) and are no part of it.")


def restore(place: _Address, as_json: Json = False) -> None:
    """Fill an empty home from a backup. Every file is checked before it is put in place.

    Example: `yeoron restore /mnt/backups/monday`, then `yeoron up`
    """
    from embedding.backup.restoring import restore as fill
    from embedding.kernel.errors import ConfigError
    from embedding.platform.operate import running_supervisor

    keep_private()
    began = time.monotonic()
    chosen = settings()
    if running_supervisor(chosen) is not None:
        raise ConfigError("restore: the platform is running; stop it first with `yeoron down`.")
    manifest = fill(chosen, place, tell=silent if as_json else print_line)
    _show("restore", manifest, str(chosen.paths.home), time.monotonic() - began, as_json=as_json)


def _show(
    verb: str, manifest: BackupManifest, where: str, seconds: float, *, as_json: bool
) -> None:
    snapshots = {n for n in manifest.store("snapshots") if n.endswith("/manifest.json")}
    facts: dict[str, Any] = {
        "place": where,
        "made_at": manifest.made_at.isoformat(),
        "files": len(manifest.files),
        "bytes": manifest.bytes,
        "snapshots": len(snapshots),
        "versions": manifest.versions,
        "seconds": round(seconds, 2),
    }
    if as_json:
        print_json(facts)
        return
    done = "Copied" if verb == "backup" else "Restored"
    print_line(
        f"{done} {facts['files']:,} files ({facts['bytes'] / 1e6:,.1f} MB, {facts['snapshots']} "
        f"snapshots) to {where} in {seconds:.1f} s."
    )
