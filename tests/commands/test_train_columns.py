"""`yeoron train --split columns`: a killed shard changes no byte; what it does not go with."""

from __future__ import annotations

import pytest
from test_train_shards import Killer, digest

from embedding.kernel.config import validate
from embedding.training import TrainRequest, train_corpus


@pytest.mark.laboratory
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_shard_killed_in_the_middle_changes_no_byte(corpus, tmp_path):
    base = {
        "corpus": corpus,
        "epochs": 2,
        "min_count": 2,
        "shards": 2,
        "split": "columns",
        "model": {"dim": 16, "learning_rate": 0.1},
        "node": {"replay_ratio": 0.0, "block_tokens": 2_000},
    }
    plain = train_corpus(validate(TrainRequest, {**base, "out": tmp_path / "plain"}, "test"))
    out, killer = tmp_path / "killed", Killer(10_000)
    result = train_corpus(validate(TrainRequest, {**base, "out": out}, "test"), killer)
    assert killer.killed
    assert result.tokens_trained == plain.tokens_trained
    assert digest(out) == digest(tmp_path / "plain")
    assert plain.loss < 4.0, "it learns: an untrained pair has 4.16 nats"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--model", "glove"), "model glove with split columns"),
        (("--model", "fasttext"), "model fasttext"),
        (("--sync", "easgd"), "policy easgd with split columns"),
        (("--sync", "hogwild"), "hogwild"),
        (("--compression", "onebit"), "compression onebit"),
        (("--cache-mb", 1), "cache_bytes"),
        (("--nodes", 2, "--aggregators", 1), "aggregators 1"),
        (("--nodes", 2, "--topology", "allreduce"), "topology allreduce with split columns"),
        (("--nodes", 2, "--topology", "hybrid"), "topology hybrid with split columns"),
        (("--learning-rate", 5000), "learning_rate 5000.0 with split columns: at most 1000"),
        (("--dim", 1), "at most 1 shards are accepted"),
        (("--split", "diagonal"), "split"),
    ],
)
def test_what_does_not_go_with_columns_is_one_sentence(yeoron, corpus, options, reason):
    given = () if "--split" in options else ("--split", "columns")
    done = yeoron("train", corpus, "--shards", 2, *given, *options)
    assert done.code == 2
    assert reason in " ".join(done.err.split())
