"""What a command costs before it does anything: no room is imported until one is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    *("torch", "numba", "numpy", "scipy", "pyarrow", "pandas", "sqlalchemy", "trafilatura"),
    *("httpx", "kiwipiepy", "playwright", "distributed", "mlflow", "airflow"),
}


def test_the_command_line_itself_imports_nothing_heavy():
    told = "import sys, embedding.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True, timeout=120
    )
    assert HEAVY & set(done.stdout.split()) == set()


def test_the_status_of_a_server_is_shown_without_what_a_server_needs():
    told = """
import sys
sys.modules |= dict.fromkeys(("prometheus_client", "torch", "numba", "scipy", "fastapi"))
from embedding.commands.status_tables import figure_table
print(figure_table("Sources", {}).title)
"""
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "Sources (times of UTC)\n"


def test_a_training_counts_its_words_while_the_rest_is_imported():
    # numpy.random is there before: two threads that import it at once may end in an error.
    told = "import sys, embedding.training; print('torch' in sys.modules, *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True, timeout=120
    )
    torch, *modules = done.stdout.split()
    assert torch == "False"
    assert "numpy.random" in modules


def test_a_process_imports_scipy_and_pandas_only_where_it_uses_them():
    told = """
import sys
import embedding.settings, embedding.server.service, yeoron_lab.shards.service
print(*[name for name in ("scipy.special", "scipy.sparse") if name in sys.modules])
import embedding.training.running
import embedding.worker.process.gradient
import pyarrow as pa
table = pa.table({"a": pa.array(["list"])})
print("pandas" in sys.modules)
print(*table.to_pandas().a)
"""
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines() == ["", "False", "list"]


PROCESSES = {
    "node": "embedding.nodetask",
    "shard": "yeoron_lab.shards.service",
    "server": "embedding.server.service",
    "group": "yeoron_lab.groups.process",
    "aggregator": "yeoron_lab.aggregating.aggregator",
    "corpus": "embedding.worker.corpus.reading",
    "gradient": "embedding.worker.process.gradient",
    "evaluation": "embedding.evaluation.evaluate",
    "train": "embedding.training.running",
    "crawler": "embedding.worker.crawling.crawling",
}
OF_OTHERS = {
    *("torch", "pandas", "airflow", "fastapi", "mlflow", "playwright", "distributed", "dask"),
    *("kiwipiepy", "sqlalchemy", "trafilatura", "httpx", "uvicorn"),
}
OF_A_CRAWLER = {"sqlalchemy", "trafilatura", "httpx"}


def test_each_process_imports_what_it_uses_alone():
    """One after the other in one Python: what is not there after one was not before it either."""
    told = f"""
import sys
from importlib import import_module
for kind, module in {PROCESSES!r}.items():
    import_module(module)
    print(kind, *sorted({OF_OTHERS!r} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True, timeout=120
    )
    found = {line.split()[0]: set(line.split()[1:]) for line in done.stdout.splitlines()}
    assert found.pop("crawler") <= OF_A_CRAWLER
    assert found == {kind: set() for kind in PROCESSES if kind != "crawler"}


UNUSED = "torch pandas airflow sqlalchemy fastapi mlflow dask distributed cryptography scipy.linalg"


@pytest.mark.skipif(
    Path("/dev/nvidia0").exists(), reason="where there is a GPU torch is asked for it"
)
def test_no_process_of_a_training_imports_what_it_does_not_use(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        """
import os, sys
class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name in os.environ["UNUSED"].split():
            with open(os.environ["IMPORTED"], "a") as file:
                print(name, *sys.argv, file=file)
sys.meta_path.insert(0, Refusal())
"""
    )
    (tmp_path / "text.txt").write_text("봄 여름 가을 겨울 눈 비 바람 구름\n" * 300)
    imported = tmp_path / "imported"
    imported.touch()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "embedding.cli", "train", "text.txt"),
            *("--out", "store", "--dim", "16", "--shards", "2", "--json"),
        ],
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path[1:]]),
            "IMPORTED": str(imported),
            "UNUSED": UNUSED,
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "nll" in (next((tmp_path / "store").glob("*/manifest.json"))).read_text()
    assert imported.read_text() == ""


def test_a_command_spares_the_search_for_garbage():
    told = """
import atexit, gc, sys
atexit.register(lambda: print("left", len(gc.get_objects())))
from embedding.cli import main
sys.argv = ["yeoron", "--version"]
try:
    main()
finally:
    print("every", gc.get_threshold()[0])
"""
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True, timeout=120
    )
    said = dict(line.split() for line in done.stdout.splitlines() if line[:4] in ("left", "ever"))
    assert int(said["every"]) > 10_000
    assert int(said["left"]) < 1_000, "objects that the end of Python looks through"
