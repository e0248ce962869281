"""`yeoron train --pulls changes`: what is learnt stays, most of the bytes go."""

from __future__ import annotations

from pathlib import Path

import pytest
from calling import sentences

from embedding.kernel.config import validate
from embedding.training import TrainRequest, train_corpus

WORDS = 20_000


@pytest.mark.laboratory
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_loss_stays_and_bytes_go(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(sentences(WORDS), encoding="utf-8")
    asked = {
        "corpus": corpus,
        "epochs": 3,
        "min_count": 1,
        "nodes": 2,
        "model": {"dim": 16, "sample": 0, "learning_rate": 0.2},
        "node": {"replay_ratio": 0.0, "block_tokens": 2_000},
        "exchange": {"pulls": "changes", "compression": "threshold", "cache_bytes": 1 << 24},
    }
    done = train_corpus(validate(TrainRequest, asked, "test"))
    assert done.tokens_trained == 3 * WORDS
    assert done.loss < 2.5, "untrained: 4.16"
    assert done.bytes_per_entry < 1.0, "float16 takes more than 2"
    # As many numbers are pulled as pushed: in float16 they would take twice what is pushed now.
    assert done.bytes_pulled < done.bytes_pushed


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--pulls", "some"), ["pulls", "rows", "changes"]),
        (
            ("--pulls", "changes", "--shards", "2", "--split", "columns"),
            ["pulls changes", "split columns", "rows is accepted"],
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
