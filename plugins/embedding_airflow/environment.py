"""The environment variables of a one-machine Airflow: LocalExecutor, loopback, one login.

`make up` and the tests start Airflow with exactly these, so nothing of a user's own Airflow
installation (`~/airflow`, `airflow.cfg`) is read or changed.
"""

from __future__ import annotations

import base64
import json
import secrets
import sys
from pathlib import Path

from embedding.kernel.errors import ConfigError
from embedding.kernel.private import ensure_secret

USER = "admin"
_DATABASE = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"
FREED_GOES_BACK = {"MALLOC_TRIM_THRESHOLD_": "131072"}
"""glibc's own default, which it raises to 64 MB where it is not set: a service that once answered
much would keep it."""
_PATIENT, _IMPATIENT = "timeout=60", "timeout=5"
"""Seconds that a process waits for SQLite's lock."""


def airflow_environment(
    home: Path,
    *,
    port: int,
    dags: Path,
    plugins: Path,
    parallelism: int = 4,
    password: str | None = None,
    database: str | None = None,
) -> dict[str, str]:
    """The `AIRFLOW_*` variables of an Airflow that lives in `home`.

    Makes `home` and, once, its secrets: `secrets.json` (keys that sign and encrypt) and
    `passwords.json` (the login `admin`, read by `settings.platform_login`), both readable by their
    owner only. Later calls return the same values. `port` is the api-server's on 127.0.0.1;
    `parallelism` the number of tasks that run at once; `password` the login's when the caller wants
    a known one; `database` the address of its tables when they are not in `home`.
    Raises ConfigError when a folder is missing or a number cannot work.
    """
    _check(port=port, dags=dags, plugins=plugins, parallelism=parallelism)
    home = home.resolve()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    made = {"fernet": _key(32), "jwt": _key(64), "session": _key(32)}
    keys = _once(home / "secrets.json", made)
    _once(home / "passwords.json", {USER: password or secrets.token_urlsafe(12)})
    sections = _sections(home, keys, port, dags.resolve(), plugins.resolve(), parallelism)
    sections["database"] = _database(database or f"sqlite:///{home}/airflow.db")
    environment = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW_CONFIG": str(home / "airflow.cfg"),
        # Airflow 3.3 reports nothing home; these silence what its parts and MLflow would.
        "SCARF_ANALYTICS": "false",
        "DO_NOT_TRACK": "1",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        **FREED_GOES_BACK,
    }
    for section, options in sections.items():
        for name, value in options.items():
            environment[f"AIRFLOW__{section.upper()}__{name.upper()}"] = str(value)
    return environment


def _sections(
    home: Path, keys: dict[str, str], port: int, dags: Path, plugins: Path, parallelism: int
) -> dict[str, dict[str, object]]:
    address = f"http://127.0.0.1:{port}"
    return {
        "core": {
            "dags_folder": dags,
            "plugins_folder": plugins,
            "load_examples": False,
            "executor": "LocalExecutor",
            "parallelism": parallelism,
            "dags_are_paused_at_creation": False,
            "fernet_key": keys["fernet"],
            "auth_manager": "embedding_airflow.auth.AccountAuthManager",
            "simple_auth_manager_users": f"{USER}:admin",
            "simple_auth_manager_passwords_file": home / "passwords.json",
            "simple_auth_manager_all_admins": False,
            "execution_api_server_url": f"{address}/execution/",
            # The full name asks a name server, which takes seconds where there is none.
            "hostname_callable": "socket.gethostname",
            "min_serialized_dag_update_interval": 5,
        },
        "logging": {
            "base_log_folder": home / "logs",
            "dag_processor_child_process_log_directory": home / "logs" / "dag_processor",
            "colored_console_log": False,
            # Airflow sets these itself, whatever the umask is.
            "file_task_handler_new_folder_permissions": "0o700",
            "file_task_handler_new_file_permissions": "0o600",
        },
        "api": {
            "host": "127.0.0.1",
            "port": port,
            "base_url": address,
            "workers": 1,
            "secret_key": keys["session"],
            "expose_config": False,
            "enable_swagger_ui": False,
        },
        "api_auth": {"jwt_secret": keys["jwt"]},
        "dag_processor": {
            "refresh_interval": 10,
            # A file that changed is read at once; one that did not, for the settings and sources
            # that it shows. Reading all of them each 30 s took a twentieth of a processor.
            "min_file_process_interval": 300,
            "bundle_refresh_check_interval": 10,
            "parsing_processes": 1,
        },
        "scheduler": {
            "enable_health_check": False,
            "trigger_timeout_check_interval": 5,
            # Seconds between two looks while nothing runs.
            "scheduler_idle_sleep_time": 2,
        },
        "triggerer": {"capacity": 100},
    }


def _database(address: str) -> dict[str, object]:
    variables: dict[str, object] = {"sql_alchemy_conn": address}
    if address.startswith("sqlite"):
        # One process writes at a time. The usual 5 s are too few while a disk is slow.
        variables["sql_alchemy_conn"] = f"{address}?{_PATIENT}"
    if address.startswith("postgresql"):
        # The one driver does both; Airflow would look for another, which is not installed.
        variables["sql_alchemy_conn_async"] = address
    return variables


def of_api_server(environment: dict[str, str]) -> dict[str, str]:
    """The variables of the api-server, which waits for SQLite for a short time only.

    Airflow 3.3 logs each request that changes something (`log_action`) on its event loop. When a
    request of a task holds SQLite's lock meanwhile, it needs that loop to commit: both stand still,
    and so does every page, until the wait is over. Whoever asked is told 500, and asks again.
    """
    address = environment[_DATABASE].replace(_PATIENT, _IMPATIENT)
    return {**environment, _DATABASE: address}


def airflow_services(environment: dict[str, str]) -> dict[str, list[str]]:
    """The four long-running commands of that Airflow, by name; run `migrate` before them.

    `--skip-serve-logs`: on one machine the api-server reads the log files itself, and Airflow's
    log servers would listen on every interface.
    """
    airflow = [sys.executable, "-m", "airflow"]
    port = environment["AIRFLOW__API__PORT"]
    return {
        "api-server": [*airflow, "api-server", "--host", "127.0.0.1", "--port", port],
        "scheduler": [*airflow, "scheduler", "--skip-serve-logs"],
        "dag-processor": [*airflow, "dag-processor"],
        "triggerer": [*airflow, "triggerer", "--skip-serve-logs"],
    }


def migrate_command() -> list[str]:
    """The command that makes or upgrades the metadata database (about 6 s for a new one)."""
    return [sys.executable, "-m", "airflow", "db", "migrate"]


def _check(*, port: int, dags: Path, plugins: Path, parallelism: int) -> None:
    """Refuse what Airflow would only stumble over later."""
    if not 1 <= port <= 65535:
        raise ConfigError(f"Airflow port {port}: a number from 1 to 65535 is accepted.")
    if parallelism < 1:
        raise ConfigError(f"Airflow parallelism {parallelism}: at least 1, or no task ever runs.")
    for name, folder in (("DAG", dags), ("plugin", plugins)):
        if not folder.is_dir():
            raise ConfigError(f"{folder}: no such folder; Airflow's {name} folder is expected.")


def _key(size: int) -> str:
    """`size` random bytes in base64: Fernet takes 32, tokens signed with HS512 want 64."""
    return base64.urlsafe_b64encode(secrets.token_bytes(size)).decode()


def _once(path: Path, values: dict[str, str]) -> dict[str, str]:
    """Write `values` to `path` (mode 0600) unless it is there; return what it holds.

    A hard link publishes the whole file or nothing, and only the first of several writers.
    """
    ensure_secret(path, json.dumps(values))
    try:
        held: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"{path}: not valid JSON; remove it to make new secrets.") from error
    return held
