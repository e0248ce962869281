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
    told = "import sys, embedding.training; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split() == ["False"]
