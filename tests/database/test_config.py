"""Addresses of databases, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from embedding.kernel.errors import ConfigError
from embedding.settings import Settings, load_settings

SECRET = "OPERATORS-PASSWORD"


def given(path: Path, text: str) -> Settings:
    file = path / "yeoron.toml"
    file.write_text(text, encoding="utf-8")
    return load_settings(file)


def test_sqlite_in_the_home_is_the_default(tmp_path: Path) -> None:
    settings = Settings(paths={"home": tmp_path}, cluster={"pool": "p"})
    assert settings.database_address("airflow") == f"sqlite:///{tmp_path}/airflow/airflow.db"
    assert settings.database_address("mlflow") == f"sqlite:///{tmp_path}/mlflow/mlflow.db"
    assert settings.database_address("frontier") == f"sqlite:///{tmp_path}/frontier/p.db"
    assert settings.database.tasks == 4


def test_one_address_serves_all_in_schemas_of_their_own(tmp_path: Path) -> None:
    settings = given(
        tmp_path,
        '[database]\nurl = "postgres://me@db.example:5433/yeoron?sslmode=verify-full"\n'
        'passfile = "/etc/yeoron/pass"\n[cluster]\npool = "a-b"\n',
    )
    schemas = {"airflow": "airflow", "mlflow": "mlflow", "frontier": "frontier_a_b"}
    for part, schema in schemas.items():
        address = make_url(settings.database_address(part))
        assert address.drivername == "postgresql+psycopg"
        assert (address.username, address.password) == ("me", None)
        assert (address.host, address.port, address.database) == ("db.example", 5433, "yeoron")
        assert address.query == {
            "sslmode": "verify-full",
            "passfile": "/etc/yeoron/pass",
            "options": f"-csearch_path={schema}",
        }
        assert settings.database_setting(part) == "database.url"
    assert settings.database.tasks == 16


def test_each_may_have_an_address_of_its_own(tmp_path: Path) -> None:
    settings = given(
        tmp_path,
        '[database]\nairflow = "postgresql://db/a"\nairflow_tasks = 32\npassfile = "/p"\n'
        '[crawl]\nfrontier = "postgresql://db/f?options=-cstatement_timeout%3D60s"\n',
    )
    assert settings.database_address("airflow") == "postgresql+psycopg://db/a?passfile=%2Fp"
    assert settings.database_address("mlflow").startswith("sqlite:///")
    frontier = make_url(settings.database_address("frontier"))
    assert frontier.query == {"options": "-cstatement_timeout=60s", "passfile": "/p"}
    assert settings.database_setting("airflow") == "database.airflow"
    assert settings.database_setting("frontier") == "crawl.frontier"
    assert settings.database.tasks == 32


def test_a_frontier_whose_address_was_set_before_still_opens_with_its_password() -> None:
    settings = Settings(crawl={"frontier": f"postgresql://me:{SECRET}@db/f"})
    assert make_url(settings.database_address("frontier")).password == SECRET
    assert SECRET not in repr(settings) + settings.model_dump_json()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f'url = "postgresql://me:{SECRET}@db/y"', "put it into database.passfile"),
        (f'url = "postgresql://me@db/y?password={SECRET}"', "put it into database.passfile"),
        (f'airflow = "mysql://me:{SECRET}@db/y"', "postgresql://user@host:5432/database"),
        (f'mlflow = "{SECRET}"', "postgresql://user@host:5432/database"),
        ('url = "postgresql://me@db"', "postgresql://user@host:5432/database"),
        ("airflow_tasks = 5", "4 is the most on SQLite"),
        ('mlflow = "postgresql://db/y"\nairflow_tasks = 5', "4 is the most on SQLite"),
        ("airflow_tasks = 0", "a number of at least 1"),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(ConfigError) as error:
        given(tmp_path, f"[database]\n{text}\n")
    assert sentence in str(error.value)
    assert SECRET not in str(error.value)
    assert "\n" not in str(error.value)
