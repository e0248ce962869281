"""`yeoron train --shards`: the same bytes as with one, also when a shard is killed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
from pathlib import Path

import psutil
import pytest

from embedding.kernel.config import validate
from embedding.training import TrainProgress, TrainRequest, train_corpus

SHORT = ("--dim", 16, "--epochs", 2, "--min-count", 2, "--json")


def digest(out: Path) -> str:
    (vectors,) = out.glob("*/vectors.arrow")
    return hashlib.sha256(vectors.read_bytes()).hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("model", ["sgns", pytest.param("fasttext", marks=pytest.mark.laboratory)])
def test_two_shards_give_the_same_bytes_as_one(process, corpus, tmp_path, model):
    found = {}
    for shards in (1, 2):
        out, asked = tmp_path / str(shards), ("--shards", shards, "--model", model)
        done = process("train", corpus, "--out", out, *asked, *SHORT)
        assert done.code == 0, done.err
        found[shards] = json.loads(done.out)
    assert digest(tmp_path / "1") == digest(tmp_path / "2")
    for name in ("tokens_trained", "loss", "vocabulary"):
        assert found[1][name] == found[2][name]
    assert {"shard-0", "shard-1"} <= found[2]["peak_memory"].keys()
    assert found[2]["bytes_sent_per_token"] > 0.5 * found[1]["bytes_sent_per_token"]


class Killer:
    """Told of a training's progress: kills a shard of this process once some words are learnt."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.killed: list[int] = []

    def __call__(self, told: TrainProgress) -> None:
        if self.killed or told.tokens < self.after:
            return
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.Error):  # one that has just ended
                if "shards.service" in " ".join(child.cmdline()):
                    os.kill(child.pid, signal.SIGKILL)
                    self.killed.append(child.pid)
                    return


@pytest.mark.laboratory
@pytest.mark.slow
@pytest.mark.parametrize("model", [{}, {"model": "fasttext", "buckets": 5_000}])
def test_a_shard_killed_in_the_middle_changes_no_byte(corpus, tmp_path, model):
    """One node: the shard gets what it lost, in the same order."""
    out, killer = tmp_path / "killed", Killer(10_000)
    base = {
        "corpus": corpus,
        "epochs": 8,
        "min_count": 2,
        "model": {"dim": 16, **model},
        "node": {"replay_ratio": 0.0, "block_tokens": 2_000},
    }
    plain = train_corpus(validate(TrainRequest, {**base, "out": tmp_path / "plain"}, "test"))
    asked = validate(TrainRequest, {**base, "shards": 2, "out": out}, "test")
    result = train_corpus(asked, killer)
    assert killer.killed
    assert result.tokens_trained == plain.tokens_trained
    assert digest(out) == digest(tmp_path / "plain")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            ("--sync", "hogwild"),
            "policy hogwild with 2 shards: it works on the tables of one process",
        ),
    ],
)
def test_what_does_not_go_with_shards_is_one_sentence(yeoron, corpus, options, reason):
    done = yeoron("train", corpus, "--shards", 2, *options)
    assert done.code == 2
    assert reason in done.err.replace("\n", " ")


@pytest.mark.laboratory
@pytest.mark.slow
def test_n_gram_rows_on_shards_are_summed_by_all_nodes_too(process, corpus, tmp_path):
    """Each word is learnt as often."""
    asked = ("--model", "fasttext", "--shards", 2, "--nodes", 2, "--topology", "hybrid")
    done = process("train", corpus, "--out", tmp_path / "out", *asked, *SHORT)
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert told["transports"]["bytes"]["allreduce"] > 0
    alone = process("train", corpus, "--out", tmp_path / "alone", "--model", "fasttext", *SHORT)
    assert told["tokens_trained"] == json.loads(alone.out)["tokens_trained"]


def test_how_many_shards_is_checked(yeoron, corpus):
    done = yeoron("train", corpus, "--shards", 0)
    assert done.code == 2
    assert "shards" in done.err
