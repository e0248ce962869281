"""Where the laboratory is not installed the core works, and says in a sentence what brings it."""

from __future__ import annotations

import json
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
    import json
    from embedding.cli import main
    for options in json.loads(sys.argv[1]):
        sys.argv = ["yeoron", "train", "corpus.txt", "--dim", "4", *options]
        try:
            main()
        except SystemExit as left:
            sys.stderr.write(f"\\0{left.code or 0}\\0")
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

    def train(*trainings: tuple[str, ...]) -> list[tuple[int, str]]:
        """Exit code and standard error of each of these, one after the other in one process."""
        done = subprocess.run(
            [sys.executable, tmp_path / "run.py", json.dumps(trainings)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        *said, last = done.stderr.split("\0")
        assert (done.returncode, last) == (0, ""), done.stderr
        return [(int(code), text) for text, code in zip(said[::2], said[1::2], strict=True)]

    return train


@pytest.mark.slow
def test_a_usual_training_needs_nothing_of_it(without) -> None:
    ((code, said),) = without(("--nodes", "2"))
    assert code == 0, said


REFUSED = (
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
    ("--sync-setting", "tau=4"),
    ("--top-share", "0.1"),
)


@pytest.mark.slow
def test_what_it_brings_is_refused_in_a_sentence(without) -> None:
    found = without(*REFUSED)
    assert len(found) == len(REFUSED)
    for options, (code, said) in zip(REFUSED, found, strict=True):
        assert code == 2, (options, said)
        assert BRINGS in " ".join(said.split()), options
        assert "Traceback" not in said, options
