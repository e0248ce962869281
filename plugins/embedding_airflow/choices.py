"""What the run forms offer to pick from: what lies in the platform's stores now.

Airflow reads the DAGs every few seconds, so this takes the standard library and a look at three
folders. It never fails: what cannot be read is not offered, and the fields take other values too.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

MOST = 100
"""Snapshots that are offered, the newest windows first."""
_CORPORA = (".txt", ".jsonl")
_PACKED = ".xz"


@dataclass(frozen=True)
class Choices:
    """Each in the order in which a form shows it.

    snapshots  ids, the newest window first; of a store that is no folder here, such as a bucket,
               those whose reports are in this home
    windows    their labels, without repetition
    sources    names in the sources file
    corpora    files that a training can read: $YEORON_DATA's, and those that sources play back
    """

    snapshots: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    corpora: tuple[str, ...] = ()


def choices() -> Choices:
    """What there is to pick from now."""
    settings = FormSettings.read()
    snapshots = _snapshots(settings)
    tables = _sources(settings.sources)
    names = (each.get("name") for each in tables)
    return Choices(
        snapshots,
        tuple(dict.fromkeys(window_of_id(name) for name in snapshots)),
        tuple(name for name in names if isinstance(name, str)),
        _corpora(settings, tables),
    )


def window_of_id(snapshot: str) -> str:
    """Label of a snapshot's window: `2020-02` of `2020-02-a1b2c3d4`."""
    return snapshot.rpartition("-")[0]


@dataclass(frozen=True)
class FormSettings:
    """The few settings that forms need, as `embedding.settings` finds them.

    Loading all of them imports every room, for which there is no time here; a test holds the two
    together.
    """

    home: Path
    sources: Path
    snapshots: str
    window: str
    timezone: str

    @classmethod
    def read(cls) -> FormSettings:
        """From the environment, else from the settings file, else the defaults."""
        file = _toml(Path(os.environ.get("YEORON_SETTINGS") or "yeoron.toml"))
        home = Path(_setting(file, "paths", "home", "var"))
        return cls(
            home,
            Path(_setting(file, "paths", "sources", "infra/sources.example.toml")),
            _setting(file, "server", "snapshots", "") or str(home / "snapshots"),
            _setting(file, "server", "window", "day"),
            _setting(file, "server", "timezone", "UTC"),
        )

    @property
    def calendar(self) -> str:
        """What the server counts in, as `run_window` takes it."""
        return f"{self.window} {self.timezone}"


def window_zone() -> tzinfo:
    """Where the windows' days begin; UTC for the name of none, which the server refuses."""
    with suppress(KeyError, ValueError, OSError):
        return ZoneInfo(FormSettings.read().timezone)
    return UTC


def _setting(file: Mapping[str, Any], section: str, name: str, default: str) -> str:
    given = os.environ.get(f"YEORON_{section}__{name}".upper())
    if given:
        return given
    table = file.get(section)
    value = table.get(name) if isinstance(table, Mapping) else None
    return value if isinstance(value, str) else default


def _snapshots(settings: FormSettings) -> tuple[str, ...]:
    """Ids in a folder, without those that were withdrawn."""
    local = settings.snapshots.removeprefix("file://")
    # A form never waits for a network: a DAG saves a report of each snapshot here.
    far = "://" in local
    folder = settings.home / "trends" if far else Path(local)
    sign = "report.json" if far else "manifest.json"
    try:
        names = [each.name for each in folder.iterdir()]
    except OSError:
        return ()
    gone = _json(folder / "withdrawn.json")
    ids = (name for name in names if "-" in name and name[0] != "." and name not in gone)
    newest = sorted(ids, reverse=True)
    return tuple(name for name in newest[:MOST] if (folder / name / sign).is_file())


def _sources(path: Path) -> list[dict[str, Any]]:
    tables = _toml(path).get("source")
    return [each for each in tables if isinstance(each, dict)] if isinstance(tables, list) else []


def _corpora(settings: FormSettings, tables: list[dict[str, Any]]) -> tuple[str, ...]:
    played = [each["path"] for each in tables if isinstance(each.get("path"), str)]
    files = [settings.sources.absolute().parent / path for path in played]
    data = os.environ.get("YEORON_DATA")
    if data:
        folder = Path(data).absolute()
        with suppress(OSError):
            files += sorted(folder.iterdir()) if folder.is_dir() else [folder]
    fit = (path for path in files if path.name.removesuffix(_PACKED).endswith(_CORPORA))
    return tuple(dict.fromkeys(str(path) for path in fit if path.is_file()))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
