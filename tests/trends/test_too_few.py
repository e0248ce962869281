"""Where documents say nothing of any word, the report says so in a sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from embedding.exchange.payload import UNITS
from embedding.snapshots.store import SnapshotStore
from embedding.snapshots.usage import Usage
from embedding.trends.report import build_report
from embedding.trends.rows import judged


def used(n: int, dim: int, documents: float, units: int, seed: int) -> Usage:
    """One source; so many documents of each word in each of the first units."""
    random = np.random.default_rng(seed)
    held = np.zeros((n, UNITS), dtype=np.float32)
    held[:, :units] = documents
    means = random.normal(size=(n, UNITS, dim)).astype(np.float32) * (held > 0)[..., None]
    total = held.sum(axis=1).astype(np.int64)
    return Usage(np.arange(n), ["뉴스"] * n, total, held, means)


@pytest.mark.parametrize(
    ("documents", "units", "says"),
    [(4.0, UNITS, ""), (40.0, 1, "too_few_documents"), (0.3, UNITS, "only_copies")],
)
def test_few_documents_and_one_author_are_named(planted, tmp_path, documents, units, says):
    store, parent = SnapshotStore(tmp_path), None
    for data in list(planted.stream(planted.Plan(windows=3, fillers=120)))[-2:]:
        n, dim = data.vectors.shape
        now, before = (used(n, dim, documents, units, seed) for seed in (1, 2))
        own = replace(now, reread=(now, before))
        parent = store.publish(replace(data, parent=parent), own).id
    report = build_report(store)
    assert [note.code for note in report.notes] == ([says] if says else [])
    assert judged(report) == (says != "only_copies")
    assert says == "only_copies" or report.ranked["moved"] > 50
    if says:
        assert not report.significant("moved")


def test_shifts_of_models_need_no_such_note(store):
    assert "too_few_documents" not in [note.code for note in build_report(store).notes]
