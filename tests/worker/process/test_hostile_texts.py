"""`yeoron train` on a file of which some texts raise or end their process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostile_tokenizer import HOSTILE, KILLS, RAISES, install

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.slow


def train(folder: Path, corpus: Path, *options: str) -> subprocess.CompletedProcess[str]:
    paths = (str(ROOT), str(ROOT / "plugins"), install(folder))
    command = [sys.executable, "-m", "embedding.cli", "train", str(corpus), "--json"]
    return subprocess.run(
        [*command, "--tokenizer", HOSTILE, "--dim", "8", "--min-count", "1", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )


def test_a_training_names_the_lines_that_it_left_out(tmp_path: Path) -> None:
    hostile = {7: RAISES, 23: KILLS, 24: RAISES}
    texts = [f"하나 둘 낱말{n % 9} {hostile.get(n + 1, '셋')}" for n in range(40)]
    rows = ({"date": f"2024-01-{1 + n % 28:02d}", "text": text} for n, text in enumerate(texts))
    corpus = tmp_path / "c.jsonl"
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    corpus.write_text(lines, encoding="utf-8")
    done = train(tmp_path, corpus, "--dated", "--window", "month")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    raised, killed = "preparing it raised ValueError", "its process ended (SIGSEGV)"
    named = {f"{corpus.name}:{line}": raised for line in (7, 24)} | {f"{corpus.name}:23": killed}
    assert (result["given_up"], result["left_out"]) == (3, named)
    assert result["tokens_trained"] == 37 * 4
    assert "3 texts could not be read and were left out: " in done.stderr
    assert all(f"{place} ({why})" in done.stderr for place, why in named.items())
    assert "하나" not in done.stderr
