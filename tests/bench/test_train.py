"""`yeoron bench train` runs `yeoron train` and gensim as a user would."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from embedding.cli import app


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_both_sides_train_on_the_same_words(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    names = [f"w{n}" for n in range(200)]
    lines = [" ".join(random.choice(names, 12)) for _ in range(2_000)]
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(lines), encoding="utf-8")
    sides = ["--side", "gensim-1", "--side", "nodes-1", "--repeats", "1", "--dim", "16"]
    done = CliRunner().invoke(
        app, ["bench", "train", str(corpus), *sides, "--results", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    (kept,) = tmp_path.glob("train-*.json")
    runs = json.loads(kept.read_text(encoding="utf-8"))["runs"]
    assert set(runs) == {"gensim-1", "nodes-1"}
    assert all(run["words_per_second"] > 0 for side in runs.values() for run in side)
