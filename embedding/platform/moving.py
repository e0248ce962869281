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

from embedding.crawl.frontier import Frontier
from embedding.database.copying import copy_rows, merge_log, postgres_rows, sqlite_rows
from embedding.kernel.errors import ConfigError, PlatformError
from embedding.platform.databases import check_databases, on_postgres
from embedding.platform.operate import airflow_variables, prepare_airflow
from embedding.settings import DatabaseName, Settings

MOVED_SUFFIX = ".moved"
"""What the name of a file ends with once its rows are on PostgreSQL."""
_USED: Mapping[DatabaseName, tuple[str, ...]] = {
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


def move(
    settings: Settings, progress: Callable[[DatabaseName], None]
) -> dict[DatabaseName, dict[str, int]]:
    """Move each database that is on PostgreSQL by the settings and in a file of the home; the
    number of rows of its tables, by database.

    Raises ConfigError, InputError or PlatformError; then what is not moved is where it was. The
    platform must be down.
    """
    if not on_postgres(settings):
        raise ConfigError(
            "database move: by the settings nothing is on PostgreSQL; set database.url to its "
            "address first."
        )
    check_databases(settings)
    names = [name for name in on_postgres(settings) if settings.sqlite_file(name).is_file()]
    for name in names:
        merge_log(settings.sqlite_file(name))
        _require_unused(settings, name)
    done: dict[DatabaseName, dict[str, int]] = {}
    for name in names:
        progress(name)
        done[name] = _move(settings, name)
    return done


def _require_unused(settings: Settings, name: DatabaseName) -> None:
    """ConfigError when the target holds rows that are not those of the file."""
    target = postgres_rows(settings.database_address(name))
    used = next((table for table in _USED[name] if target.get(table)), None)
    rows = sqlite_rows(settings.sqlite_file(name))
    if used is not None and _filled(target) != _filled(rows):
        raise ConfigError(
            f"{settings.database_setting(name)}: the tables of {name} there are in use ({used} has "
            f"{target[used]:,} rows); a database or schema without them is accepted."
        )


def _filled(rows: Mapping[str, int]) -> dict[str, int]:
    return {table: n for table, n in rows.items() if n}


def _move(settings: Settings, name: DatabaseName) -> dict[str, int]:
    file, address = settings.sqlite_file(name), settings.database_address(name)
    rows = sqlite_rows(file)
    if not any(postgres_rows(address).get(table) for table in _USED[name]):
        _make_tables(settings, name)
        copy_rows(file, address)
    file.rename(file.with_name(file.name + MOVED_SUFFIX))
    return rows


def _make_tables(settings: Settings, name: DatabaseName) -> None:
    if name == "airflow":
        prepare_airflow(settings, airflow_variables(settings))
    elif name == "frontier":
        Frontier(settings.database_address(name)).close()
    else:
        address = {"MLFLOW_BACKEND_STORE_URI": settings.database_address(name)}
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
