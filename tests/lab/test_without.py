"""Where the laboratory is not installed the core works, and says in a sentence what brings it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN = """
import sys

class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "yeoron_lab":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Gone())
if __name__ == "__main__":
    from embedding.cli import main
    main()
"""
BRINGS = 'pip install "yeoron[all]" brings'


@pytest.fixture
def without(tmp_path: Path):
    """Runs `yeoron train` on a small corpus with no entry point of a neighbour."""
    about = tmp_path / "paths" / "yeoron-0.1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: yeoron\nVersion: 0.1.0\n")
    (tmp_path / "run.py").write_text(RUN)
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(f"one two three four w{i % 7}" for i in range(200)))
    paths = (tmp_path / "paths", ROOT, ROOT / "plugins", ROOT / "neighbours")

    def train(*options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, tmp_path / "run.py", "train", corpus, "--dim", "4", *options],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return train


@pytest.mark.slow
def test_a_usual_training_needs_nothing_of_it(without) -> None:
    done = without("--nodes", "2")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("--sync", "sandblaster"),
        ("--sync", "auto"),
        ("--sync", "backup"),
        ("--sync", "easgd"),
        ("--sync", "hogwild"),
        ("--sync", "averaging"),
        ("--compression", "topk"),
        ("--compression", "threshold"),
        ("--pulls", "changes"),
        ("--topology", "hybrid"),
        ("--model", "glove"),
        ("--model", "sppmi"),
        ("--aggregators", "1"),
        ("--nodes", "2", "--server-groups", "2"),
        ("--shards", "2"),
        ("--cache-mb", "16"),
        ("--shards", "2", "--split", "columns"),
        ("--sync", "asp", "--sync-setting", "n_push=4"),
    ],
    ids=" ".join,
)
def test_what_it_brings_is_refused_in_a_sentence(without, options: tuple[str, ...]) -> None:
    done = without(*options)
    assert done.returncode == 2, done.stderr
    assert BRINGS in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
