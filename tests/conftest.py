"""What all tests share: how hypothesis explores, and a stream of known changes."""

from __future__ import annotations

import fcntl
import gc
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

from commandline import Done, Yeoron
from embedding import cli
from embedding_airflow.environment import airflow_environment, migrate_command
from generated import examples
from pgserver import PostgresServer, running_postgres

ROOT = Path(__file__).parents[1]

# The machine may be busy: slow examples are no failure. Everybody's run looks at the same examples,
# so that a change is judged by the change; `make explore` looks for new ones.
PATIENT = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples()
)
settings.register_profile("same", PATIENT, derandomize=True)
settings.register_profile("explore", PATIENT, print_blob=True)
settings.load_profile("same")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL that all tests of this process share."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def airflow_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Airflow's database in SQLite, migrated and without a run, to copy.

    Processes that share the tests share the one migration.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    template = shared / "airflow-template.db"
    with (shared / "airflow-template.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not template.exists():
            home = tmp_path_factory.mktemp("airflow")
            others = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW")}
            own = airflow_environment(home, port=8080, dags=ROOT / "dags", plugins=ROOT / "plugins")
            command = migrate_command()
            env = {**others, **own}
            subprocess.run(command, check=True, timeout=120, capture_output=True, env=env)
            shutil.copyfile(home / "airflow.db", template)
    return template


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Without collecting garbage, of which there is little: what is imported stays to the end.

    Nor is it looked through afterwards: a million and a half objects, of which each `gc.collect`,
    also one of pytest's own at the end, would make a second.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish() -> None:
    """What is left goes with the process: pytest would look through all of it five times."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where processes share the tests, they take the files in this order (infra/test.sh)."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = [one for one in files.values() if _allowed(one)]
    others = [one for one in files.values() if not _allowed(one)]
    waiting.sort(key=lambda one: (-_allowed(one), -len(one)))
    others.sort(key=lambda one: -len(one))
    items[:] = [item for one in dealt(waiting, others) for item in one]


def _allowed(items: Iterable[pytest.Item]) -> float:
    """Seconds that the longest test of a file that starts processes may take; 0: starts none."""
    limits = [mark.args[0] for item in items for mark in item.iter_markers("timeout")]
    slow = any(item.get_closest_marker("slow") for item in items)
    return float(max([1, *limits])) if slow or limits else 0.0


def dealt(waiting: Sequence[list[pytest.Item]], others: Sequence[list[pytest.Item]]) -> list:
    """Both kinds of files mixed, the longest of each first; the last fifth is of the others alone.

    Files that start processes wait much: a file that computes beside each of them uses the time. A
    long file that came last would be waited for by all.
    """
    placed = [
        (part * at / len(kind), one)
        for part, kind in ((0.8, waiting), (1.0, others))
        for at, one in enumerate(kind)
    ]
    return [one for _, one in sorted(placed, key=lambda each: each[0])]


@pytest.fixture
def yeoron(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Yeoron:
    """Call the command line in this process."""

    def call(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["yeoron", *map(str, arguments)])
        # It is for good, and this process has other tests to run.
        monkeypatch.setattr(cli, "leave_no_core", lambda: None)
        with pytest.raises(SystemExit) as left:
            cli.main()
        said = capsys.readouterr()
        return Done(int(left.value.code or 0), said.out, said.err)

    return call


@pytest.fixture(scope="session")
def planted() -> ModuleType:
    """The synthetic stream that the tests of trends, of the page and of the commands publish."""
    path = Path(__file__).parent / "trends" / "planted.py"
    spec = importlib.util.spec_from_file_location("planted", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["planted"] = module
    spec.loader.exec_module(module)
    return module
