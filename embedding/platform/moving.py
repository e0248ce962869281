"""Moving the tables of a home from SQLite to PostgreSQL, which loses nothing.

A database is moved in one transaction, in which all rows are counted; then its file is renamed. The
platform does not start on PostgreSQL while a file is left, so a move that was killed goes on where
it ended.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from embedding.crawl.frontier import Frontier
from embedding.database.copying import copy_rows, merge_log, postgres_rows, sqlite_rows
from embedding.kernel.errors import ConfigError, PlatformError
from embedding.platform.databases import check_databases, on_postgres
from embedding.platform.operate import airflow_variables, prepare_airflow
from embedding.settings import Part, Settings

MOVED = ".moved"
"""What the name of a file ends with once its rows are on PostgreSQL."""
_USED: Mapping[Part, tuple[str, ...]] = {
    "airflow": ("dag", "dag_run", "connection", "variable"),
    "mlflow": ("runs", "registered_models"),
    "frontier": ("frontier_urls", "frontier_leases"),
}
"""Tables that have rows as soon as somebody has worked with the database."""
_MAKE_MLFLOW = """
import os
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
SqlAlchemyStore(os.environ["MLFLOW_BACKEND_STORE_URI"], "mlflow-artifacts:/")
"""


@dataclass(frozen=True)
class MovedDatabase:
    """A database that was moved, with the number of rows by table."""

    part: Part
    rows: Mapping[str, int]


def move(settings: Settings, progress: Callable[[Part], None]) -> list[MovedDatabase]:
    """Move each database that is on PostgreSQL by the settings and in a file of the home.

    Raises ConfigError, InputError or PlatformError; then what is not moved is where it was. The
    platform must be down.
    """
    if not on_postgres(settings):
        raise ConfigError(
            "database move: by the settings nothing is on PostgreSQL; set database.url to its "
            "address first."
        )
    check_databases(settings)
    parts = [one for one in on_postgres(settings) if settings.sqlite_file(one).is_file()]
    for part in parts:
        merge_log(settings.sqlite_file(part))
        _require_unused(settings, part)
    done = []
    for part in parts:
        progress(part)
        done.append(MovedDatabase(part, _move(settings, part)))
    return done


def _require_unused(settings: Settings, part: Part) -> None:
    """ConfigError when the target holds rows that are not those of the file."""
    there = postgres_rows(settings.database_address(part))
    used = next((table for table in _USED[part] if there.get(table)), None)
    if used is not None and there != sqlite_rows(settings.sqlite_file(part)) | {
        table: n for table, n in there.items() if not n
    }:
        raise ConfigError(
            f"{settings.database_setting(part)}: the tables of {part} there are in use ({used} has "
            f"{there[used]:,} rows); a database or schema without them is accepted."
        )


def _move(settings: Settings, part: Part) -> dict[str, int]:
    file, address = settings.sqlite_file(part), settings.database_address(part)
    rows = sqlite_rows(file)
    if not any(postgres_rows(address).get(table) for table in _USED[part]):
        _make_tables(settings, part)
        copy_rows(file, address)
    file.rename(file.with_name(file.name + MOVED))
    return rows


def _make_tables(settings: Settings, part: Part) -> None:
    """The tables as their own tool makes them."""
    if part == "airflow":
        prepare_airflow(settings, airflow_variables(settings))
    elif part == "frontier":
        Frontier(settings.database_address(part)).close()
    else:
        address = {"MLFLOW_BACKEND_STORE_URI": settings.database_address(part)}
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", _MAKE_MLFLOW],
            env={**os.environ, **address, "MLFLOW_DISABLE_TELEMETRY": "true"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise PlatformError(f"MLflow's database could not be prepared: {last}")
