"""All figures of one snapshot."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from embedding.evaluation.evaluate import evaluate_snapshot
from embedding.kernel.errors import ConfigError


def test_figures(store, make, gold):
    snapshot = store.open(store.publish(make()).id)
    found = evaluate_snapshot(snapshot, gold, "cpu")
    assert found.skipped == ()
    expected = {
        "words": 8,
        "vocabulary/seen": 6,
        "tokens": 100,
        "documents": 10,
        "tokens/뉴스": 70,
        "documents/청원": 3,
        "nll": 2.5,
        "nll/청원": 2.6,
        "nll/뉴스": 2.4,
        "pip": 0.5,
        "coverage/ws_ko": 0.8,
        "similarity/ws_ko": math.sqrt(0.9),
        "coverage/analogy_ko": 0.75,
        "analogy/analogy_ko/남녀": 1.0,
    }
    assert {name: found.metrics[name] for name in expected} == pytest.approx(expected)
    assert "nll.뉴스" not in found.metrics
    assert all(math.isfinite(value) for value in found.metrics.values())


def test_tables_pair_frequency_with_norm(store, make):
    snapshot = store.open(store.publish(make()).id)
    tables = evaluate_snapshot(snapshot, (), "cpu").tables
    np.testing.assert_array_equal(tables["frequency"], snapshot.counts)
    np.testing.assert_allclose(tables["norm"], np.linalg.norm(snapshot.vectors, axis=1))


def test_gold_that_cannot_be_used_is_said_and_the_rest_goes_on(store, make, gold, tmp_path):
    snapshot = store.open(store.publish(make()).id)
    (tmp_path / "foreign.tsv").write_text("tiger\tcat\t7\ncar\ttrain\t6\nking\tcabbage\t1\n")
    (tmp_path / "odd.tsv").write_text("a\tb\n")
    (tmp_path / "strange.txt").write_text(": x\na b c d\n")
    bad = [tmp_path / name for name in ("foreign.tsv", "none.tsv", "odd.tsv", "strange.txt")]
    found = evaluate_snapshot(snapshot, [*bad, *gold], "cpu")
    assert "similarity/ws_ko" in found.metrics
    assert len(found.skipped) == 4
    for path, part, sentence in zip(
        bad,
        ("only 0 of 3 pairs", "no such file", ":1: 2 columns", "none of 1 questions"),
        found.skipped,
        strict=True,
    ):
        assert str(path) in sentence
        assert part in sentence


def test_an_empty_snapshot(store, make):
    from dataclasses import replace

    data = make()
    empty = replace(
        data,
        words=(),
        ids=data.ids[:0],
        counts=data.counts[:0],
        last_seen=data.last_seen[:0],
        vectors=data.vectors[:0],
        contexts=data.contexts[:0],
    )
    found = evaluate_snapshot(store.open(store.publish(empty).id), (), "cpu")
    assert found.metrics["words"] == 0
    assert len(found.tables["norm"]) == 0


def test_a_device_that_is_not_there(store, make):
    snapshot = store.open(store.publish(make()).id)
    with pytest.raises(ConfigError, match="accepted are auto, cpu and cuda"):
        evaluate_snapshot(snapshot, (), "quantum")
    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match="no usable GPU"):
            evaluate_snapshot(snapshot, (), "cuda")
