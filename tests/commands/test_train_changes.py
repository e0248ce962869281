"""`yeoron train --pulls changes`: what is learnt stays, most of the bytes go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calling import sentences

WORDS = 60_000
FIXED = ("--dim", "16", "--sample", "0", "--min-count", "1", "--nodes", "2", "--json")
FIXED += ("--learning-rate", "0.1", "--epochs", "6")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_loss_stays_and_bytes_go(process, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(sentences(WORDS), encoding="utf-8")
    done = process("train", corpus, *FIXED, "--pulls", "changes", "--compression", "threshold")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["tokens_trained"] == 6 * WORDS
    assert told["loss"] < 4.1, "untrained: 4.16"
    assert told["bytes_per_entry"] < 1.0, "float16 takes more than 2"
    # As many numbers are pulled as pushed: in float16 they would take twice what is pushed now.
    assert told["bytes_pulled_per_token"] < told["bytes_pushed_per_token"]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--pulls", "some"), ["pulls", "rows", "changes"]),
        (
            ("--pulls", "changes", "--shards", "2", "--split", "columns"),
            ["cache_bytes", "split columns", "0 is accepted"],
        ),
        (("--pulls", "changes", "--sync", "sandblaster"), ["sandblaster", "changes", "rows"]),
        (("--relative-threshold", "-1"), ["relative_threshold", "-1"]),
    ],
)
def test_what_cannot_work_is_refused(yeoron, tmp_path: Path, options, parts) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("a b c\n" * 50, encoding="utf-8")
    done = yeoron("train", corpus, *options)
    assert done.code == 2
    assert all(part in done.err for part in parts), done.err
