"""Where compiled kernels are kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from embedding.models import jit

PACKAGE = Path(jit.__file__).parents[1]


def test_kernels_are_kept_for_every_clone_of_the_same_code(tmp_path: Path) -> None:
    """Another clone compiles none; what any kernel inlines is in the name of their folder."""
    for file in PACKAGE.rglob("*.py"):
        if b"embedding.models.jit" in file.read_bytes():
            assert file.parent in [PACKAGE / folder for folder in jit.FOLDERS], file
    clone = tmp_path / "embedding"
    shutil.copytree(PACKAGE, clone, ignore=shutil.ignore_patterns("__pycache__"))
    ask = (
        "from embedding.models import jit, sampling\n"
        "print(jit.cache_folder(), sampling.subsample._cache.cache_path)"
    )

    def cache(place: Path) -> str:
        environment = os.environ | {"PYTHONPATH": str(place)}
        return subprocess.run(
            [sys.executable, "-c", ask],
            env=environment,
            cwd=place,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    here = cache(PACKAGE.parent)
    assert cache(tmp_path) == here
    file = clone / "exchange" / "compression" / "halves.py"
    file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert cache(tmp_path) != here
