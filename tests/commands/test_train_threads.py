"""A training keeps its cores for its nodes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CALL = """
import sys
from threadpoolctl import threadpool_info
from embedding.cli import main
from embedding.commands import training

def threads(request):
    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    print(pools)
    sys.exit(0 if pools and set(pools) == {1} else 1)

training._train = threads
sys.argv = ["yeoron", "train", sys.argv[1]]
main()
"""


def test_matrix_products_have_one_thread(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("가 나 다\n" * 100, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", CALL, "corpus.txt"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if "OPENBLAS" not in name},
        timeout=120,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
