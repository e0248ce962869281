"""The environment of a one-machine Airflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from embedding.kernel.errors import ConfigError
from embedding.settings import platform_login
from embedding_airflow.environment import airflow_environment, airflow_services, of_api_server

ROOT = Path(__file__).parents[2]


def environment(home: Path, **changes):
    given = {"port": 18080, "dags": ROOT / "dags", "plugins": ROOT / "plugins"}
    return airflow_environment(home, **(given | changes))


def test_secrets_are_made_once_and_only_their_owner_reads_them(tmp_path):
    first = environment(tmp_path / "home")
    assert environment(tmp_path / "home") == first
    for name in ("secrets.json", "passwords.json"):
        assert (tmp_path / "home" / name).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
    other = environment(tmp_path / "other")
    for key in ("CORE__FERNET_KEY", "API_AUTH__JWT_SECRET", "API__SECRET_KEY"):
        assert first[f"AIRFLOW__{key}"] != other[f"AIRFLOW__{key}"]
    assert platform_login(tmp_path / "home") != platform_login(tmp_path / "other")


def test_simultaneous_calls_agree(tmp_path):
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: environment(tmp_path), range(8)))
    assert all(one == made[0] for one in made)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["passwords.json", "secrets.json"]


def test_a_wanted_password_is_kept(tmp_path):
    environment(tmp_path, password="열려라참깨")
    assert platform_login(tmp_path) == ("admin", "열려라참깨")


def test_airflow_reads_it_and_only_it(tmp_path):
    """Airflow itself, in a fresh process, reports the values back."""
    asked = [
        ("core", "load_examples"),
        ("core", "executor"),
        ("core", "parallelism"),
        ("api", "host"),
        ("database", "sql_alchemy_conn"),
        ("core", "dags_folder"),
    ]
    code = (
        "import json,sys; from airflow.configuration import conf; "
        "print(json.dumps([conf.get(s, o) for s, o in json.loads(sys.argv[1])]))"
    )
    given = {"PATH": os.environ["PATH"], **environment(tmp_path, parallelism=3)}
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(asked)],
        env=given,
        check=True,
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == [
        "False",
        "LocalExecutor",
        "3",
        "127.0.0.1",
        f"sqlite:///{tmp_path.resolve()}/airflow.db?timeout=60",
        str(ROOT / "dags"),
    ]


def test_the_api_server_waits_for_sqlite_for_a_short_time_only(tmp_path):
    given = environment(tmp_path)
    name = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
    assert of_api_server(given) == {**given, name: f"sqlite:///{tmp_path}/airflow.db?timeout=5"}
    elsewhere = environment(tmp_path, database="postgresql://u@h/d")
    assert of_api_server(elsewhere) == elsewhere


def test_every_option_is_one_that_airflow_knows(tmp_path):
    from airflow.configuration import conf

    known = conf.configuration_description
    for name in environment(tmp_path):
        if name.startswith("AIRFLOW__"):
            section, option = name.removeprefix("AIRFLOW__").lower().split("__")
            assert option in known[section]["options"], name


def test_services_listen_on_loopback_only(tmp_path):
    services = airflow_services(environment(tmp_path))
    assert list(services) == ["api-server", "scheduler", "dag-processor", "triggerer"]
    assert services["api-server"][-4:] == ["--host", "127.0.0.1", "--port", "18080"]
    for name in ("scheduler", "triggerer"):
        assert "--skip-serve-logs" in services[name]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"port": 0}, "1 to 65535"),
        ({"parallelism": 0}, "at least 1"),
        ({"dags": Path("nowhere")}, "DAG folder"),
        ({"plugins": Path("nowhere")}, "plugin folder"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path, changes, sentence):
    with pytest.raises(ConfigError, match=sentence):
        environment(tmp_path / "home", **changes)
    assert not (tmp_path / "home").exists()


def test_a_missing_or_broken_login_is_named(tmp_path):
    with pytest.raises(ConfigError, match="no Airflow login"):
        platform_login(tmp_path)
    (tmp_path / "secrets.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="remove it"):
        environment(tmp_path)
