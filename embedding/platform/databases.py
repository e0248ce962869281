"""Which databases of a platform are on PostgreSQL, and whether they can be used."""

from __future__ import annotations

from typing import get_args

from embedding.kernel.errors import ConfigError
from embedding.settings import DatabaseName, Settings

DATABASES: tuple[DatabaseName, ...] = get_args(DatabaseName)


def on_postgres(settings: Settings) -> list[DatabaseName]:
    """What has its tables on PostgreSQL by these settings."""
    return [name for name in DATABASES if settings.database_address(name).startswith("postgresql")]


def check_databases(settings: Settings) -> None:
    """Look at every PostgreSQL database before anything is started on it; ConfigError."""
    for name in on_postgres(settings):
        from embedding.database.postgres import check_database  # SQLAlchemy, a third of a second

        check_database(settings.database_address(name), settings.database_setting(name))


def require_moved(settings: Settings) -> None:
    """Raise ConfigError while rows of a database that is on PostgreSQL now are still in a file."""
    for name in on_postgres(settings):
        file = settings.sqlite_file(name)
        if file.is_file():
            raise ConfigError(
                f"{file}: {settings.database_setting(name)} names PostgreSQL, and the tables are "
                "still in this file; `yeoron database move` moves them, or take the file away to "
                "begin without them."
            )


def where(settings: Settings, name: DatabaseName) -> str:
    """Where its tables are, without user and password."""
    from sqlalchemy.engine import make_url

    from embedding.database.postgres import shown

    address = make_url(settings.database_address(name))
    if address.get_backend_name() == "sqlite":
        return f"SQLite, {address.database}"
    return f"{address.get_backend_name()}, {shown(address)}"
