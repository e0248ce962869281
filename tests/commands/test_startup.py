"""What a command costs before it does anything: no room is imported until one is asked for."""

from __future__ import annotations

import subprocess
import sys

HEAVY = {
    *("torch", "numba", "numpy", "scipy", "pyarrow", "pandas", "sqlalchemy", "trafilatura"),
    *("datasketch", "httpx", "kiwipiepy", "playwright", "distributed", "mlflow", "airflow"),
}


def test_the_command_line_itself_imports_nothing_heavy():
    told = "import sys, embedding.cli; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True, timeout=120
    )
    assert HEAVY & set(done.stdout.split()) == set()


def test_a_training_counts_its_words_while_torch_is_imported():
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
import embedding.settings, embedding.server.service, embedding.server.shards.service
print(*[name for name in ("scipy.special", "scipy.sparse") if name in sys.modules])
import embedding.training.running
import embedding.worker.crawling.crawling, embedding.worker.process.gradient
import pyarrow as pa
table = pa.table({"a": pa.array(["list"])})
print("pandas" in sys.modules)
print(*table.to_pandas().a)
"""
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines() == ["", "False", "list"]


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
