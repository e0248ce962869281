"""An Airflow of its own for these tests: AIRFLOW_HOME in a temporary folder, set before any import.

Airflow reads its configuration when it is imported, so the environment is made while this file
is imported, once for each test process. The database is made once and copied.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

from embedding_airflow.environment import airflow_environment

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
sys.path.insert(0, str(Path(__file__).parent))
HOME = Path(tempfile.mkdtemp(prefix="yeoron-airflow-"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)

for _name in [name for name in os.environ if name.startswith(("AIRFLOW", "YEORON_"))]:
    del os.environ[_name]
os.environ.update(
    airflow_environment(HOME, port=8080, dags=ROOT / "dags", plugins=ROOT / "plugins")
)
# Airflow limits the time of reading a DAG by the process's one alarm and switches it off after,
# which is the alarm that ends a test that hangs.
os.environ["AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT"] = "0"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark these tests; a warning of Airflow's own web stack about its client is not ours."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.airflow)
            item.add_marker(pytest.mark.filterwarnings("ignore:Using `httpx` with"))


@pytest.fixture(scope="session")
def airflow_home(airflow_database: Path) -> Path:
    """AIRFLOW_HOME with a migrated database, which the tests of a process share."""
    if not (HOME / "airflow.db").exists():
        shutil.copyfile(airflow_database, HOME / "airflow.db")
    return HOME


@pytest.fixture(scope="session")
def dag_bag(airflow_home: Path):
    """Every DAG, parsed as Airflow parses it, without its deadline.

    Airflow 3.3 cannot end a `DAG.test()` of one that has a deadline: it takes the alert for its id.
    """
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(dag_folder=str(ROOT / "dags"))
    for dag in bag.dags.values():
        dag.deadline = None
    return bag


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the metadata that an installation of this tree writes."""
    folder = tmp_path_factory.mktemp("installed")
    info = folder / "yeoron-9.9.9.dist-info"
    info.mkdir()
    head = "Metadata-Version: 2.4\nName: yeoron\nVersion: 9.9.9\n"
    (info / "METADATA").write_text(head, encoding="utf-8")
    lines = []
    for group, entries in PROJECT["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder
