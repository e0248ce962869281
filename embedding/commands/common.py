"""What every command needs: settings, output, one sentence for an error; which store it is of."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from embedding.kernel.errors import ConfigError, InputError, UnavailableError

if TYPE_CHECKING:
    from embedding.settings import Settings
    from embedding.snapshots.snapshot import Snapshot
    from embedding.snapshots.store import SnapshotStore
    from embedding.web.config import WebConfig

console = Console()
errors = Console(stderr=True)
WriteFile = Callable[[IO[bytes]], object]
"""Writes the content of a file."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def settings() -> Settings:
    """The settings of this folder (`yeoron --settings FILE`, $YEORON_SETTINGS, yeoron.toml).

    For a command that begins something of its own; any other asks `settings_of`.
    """
    from embedding.settings import load_settings  # slow to import, and not every command needs it

    return load_settings()


def settings_of(store: Path | None = None) -> Settings:
    """The settings of the platform that runs, unless the call names a store of its own."""
    return settings() if store is not None else _settings_of_what_runs()


@cache
def _settings_of_what_runs() -> Settings:
    """A platform is looked for in `paths.home`, and where no settings file was named its demo, too.

    One line on standard error says what is spoken of; this process and its children read its
    settings from then on.
    """
    from embedding.platform.processes import running_platform
    from embedding.settings import SETTINGS_VARIABLE

    chosen = settings()
    platform = running_platform(chosen.paths.home)
    named = os.environ.get(SETTINGS_VARIABLE)
    if platform is None or (named and platform.home != chosen.paths.home):
        return chosen
    sentence = f"yeoron: of the {platform.name} that runs in {platform.home}."
    print_line(sentence, "dim", to=errors)
    # Single settings of this call count, but not where it would keep its state.
    for name in [name for name in os.environ if name.startswith("YEORON_PATHS__")]:
        del os.environ[name]
    own = {name: value for name, value in os.environ.items() if name.startswith("YEORON_")}
    os.environ.update({**platform.environment, **own})
    if settings().paths.home.resolve() != platform.home.resolve():
        os.environ["YEORON_PATHS__HOME"] = str(platform.home.resolve())
    return settings()


def server_status(chosen: Settings) -> dict[str, Any]:
    """What the parameter server says of itself; UnavailableError when it is not there."""
    import httpx

    try:
        answer = httpx.get(chosen.server_status_url, timeout=5, trust_env=False)
        status = dict(answer.json())
    except (httpx.HTTPError, ValueError, TypeError) as error:
        raise UnavailableError(
            f"no parameter server answers at {chosen.server_status_url}; start the platform with "
            "`yeoron up`."
        ) from error
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        if status.get("status") == "away":
            raise UnavailableError(" ".join(status["reasons"]))
        raise UnavailableError(
            f"the parameter server at {chosen.server_status_url} is restoring its last "
            "checkpoint; ask again in a moment."
        )
    return status


def keep_private() -> None:
    """A service's files are its owner's alone, and so are those of whatever it starts.

    It may open as many files as the system allows.
    """
    from embedding.kernel.private import raise_descriptor_limit, write_privately

    raise_descriptor_limit()
    write_privately()


def use_settings_file(path: Path | None) -> None:
    """Make `path` the settings file of this process and of those it starts; a command begins here.

    What an earlier command of this process found to run does not count for this one.
    """
    _settings_of_what_runs.cache_clear()
    if path is None:
        return
    from embedding.settings import SETTINGS_VARIABLE

    if not path.is_file():
        raise ConfigError(f"--settings {path}: no such file; a TOML file is expected.")
    os.environ[SETTINGS_VARIABLE] = str(path.resolve())


def print_line(text: str, style: str | None = None, *, to: Console = console) -> None:
    """Print a line as it is: no markup in it, no part of it highlighted, none of it folded."""
    to.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """Print `value` as JSON with Hangul readable."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


def print_nearest(words: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Print words by how near they are to one, each with its `nearness`."""
    if as_json:
        print_json(words)
        return
    for near in words:
        print_line(f"{near['nearness']:.3f}  {near['word']}")


def write_whole(path: Path, write: WriteFile) -> None:
    """Write a file wholly or not at all, and say where it is; InputError where it cannot be."""
    from embedding.kernel.durable import replaced

    try:
        with replaced(path) as file:
            write(file)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}.") from error
    print_line(str(path))


def log_to_stderr(process: str, *, node: str = "", chosen: Settings | None = None) -> None:
    """Log lines of a service. Its children log and trace as the settings say.

    chosen  None: what the environment says
    """
    from embedding.kernel.logs import FORMAT_VARIABLE, begin_logging

    if chosen is not None:
        os.environ[FORMAT_VARIABLE] = chosen.log.format
        os.environ.update(chosen.trace.environment)
    begin_logging(process, node=node)
    for noisy in ("httpx", "httpcore", "asyncio", "uvicorn.error"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


SYNC_SETTING = (
    "A setting of the policy as NAME=VALUE, as in tau=8 or staleness=2 "
    "(docs/concepts/synchronisation.md); may be repeated."
)


def sync_settings(given: Sequence[str] | None, policy: str) -> dict[str, str]:
    """NAME=VALUE of --sync-setting; SyncConfig says which names and values there are.

    policy  how the policy itself is given
    """
    for setting in given or ():
        if not setting.partition("=")[2] or setting.startswith("policy="):
            raise ConfigError(
                f"--sync-setting {setting}: NAME=VALUE is accepted, as in tau=8; the policy itself "
                f"is given by {policy}."
            )
    return dict(setting.split("=", 1) for setting in given or ())


def duration(text: str | float) -> float:
    """Seconds of `90`, `90s`, `10m`, `1.5h` or `1d`; raises typer.BadParameter."""
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", str(text).strip())
    if parts is None or float(parts[1]) <= 0:
        raise typer.BadParameter(f"{text!r}: a time such as 90, 90s, 10m or 1.5h is accepted.")
    return float(parts[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[parts[2]]


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
