"""Settings of the databases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field, SecretStr, field_validator, model_validator

from embedding.kernel.config import Config, Secret

AIRFLOW_TASKS = {"sqlite": 4, "postgresql": 16}
"""Tasks that Airflow runs at once, unless a setting says otherwise."""


class DatabaseConfig(Config):
    """Where Airflow, MLflow and the frontier keep their tables: PostgreSQL, or else SQLite files
    in the home.

    An address is `postgresql://user@host:5432/database`, with parameters of libpq such as
    `?sslmode=verify-full&sslrootcert=/etc/yeoron/ca.pem`. It holds no password: that is in
    `passfile`.
    """

    url: Secret = SecretStr("")
    """Database for all three, each in a schema of its own; empty: SQLite."""

    airflow: Secret = SecretStr("")
    """Database of Airflow alone, in place of `url`."""

    mlflow: Secret = SecretStr("")
    """Database of MLflow alone, in place of `url`. The frontier's is `crawl.frontier`."""

    passfile: Path | None = None
    """File of mode 600 with the passwords, as libpq reads it: a line
    `host:port:database:user:password` each, `*` for any."""

    airflow_tasks: int | None = Field(default=None, ge=1, le=1000)
    """Tasks that Airflow runs at once; null: 4 on SQLite, which is the most there, 16 on
    PostgreSQL."""

    @field_validator("url", "airflow", "mlflow")
    @classmethod
    def _postgres(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value():
            check_postgres(value.get_secret_value())
        return value

    @model_validator(mode="after")
    def _possible(self) -> DatabaseConfig:
        most = AIRFLOW_TASKS["sqlite"]
        if not self.of("airflow") and (self.airflow_tasks or 0) > most:
            raise ValueError(
                f"airflow_tasks: {most} is the most on SQLite, which one process writes at a time; "
                "set url to a PostgreSQL address for more"
            )
        return self

    def of(self, name: str, schema: str | None = None) -> str:
        """SQLAlchemy address of airflow, mlflow or frontier; empty: SQLite.

        schema  its schema in a database that all three share; None: called like it
        """
        own = getattr(self, name, SecretStr("")).get_secret_value()
        shared = self.url.get_secret_value()
        if own:
            return self.completed(own)
        return self.completed(shared, schema or name) if shared else ""

    def completed(self, url: str, schema: str | None = None) -> str:
        """An address with the driver, the schema and the file of passwords in it."""
        from sqlalchemy.engine import make_url  # takes a while, and SQLite is the default

        address = make_url(url).set(drivername="postgresql+psycopg")
        more: dict[str, str] = {}
        if schema is not None:
            given = address.query.get("options")
            before = (given,) if isinstance(given, str) else given or ()
            more["options"] = " ".join((*before, f"-csearch_path={schema}"))
        if self.passfile is not None and not address.password and "passfile" not in address.query:
            more["passfile"] = str(self.passfile.resolve())
        return address.update_query_dict(more).render_as_string(hide_password=False)

    @property
    def tasks(self) -> int:
        kind = "postgresql" if self.of("airflow") else "sqlite"
        return self.airflow_tasks or AIRFLOW_TASKS[kind]


def check_postgres(url: str) -> None:
    """Raise ValueError, which says why, for what is no address of a PostgreSQL database."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        address = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise ValueError("not an address such as postgresql://user@host:5432/database") from error
    names = ("postgresql", "postgresql+psycopg", "postgres")
    if address.drivername not in names or not address.database:
        raise ValueError("an address such as postgresql://user@host:5432/database is accepted")
    query: dict[str, Any] = dict(address.query)
    if address.password is not None or "password" in query:
        raise ValueError("a password in the address would be shown; put it into database.passfile")
