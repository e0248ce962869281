"""When a node rehearses at all, by its settings and by what it learns with."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from embedding.kernel.records import WindowUnit
from embedding.models.config import ModelConfig
from embedding.worker.config import NodeConfig
from embedding.worker.process.rehearsing import rehearsals_of
from embedding.worker.spec import CorpusShare, NodeSpec

MONTHS = CorpusShare(path="c.jsonl", window=WindowUnit.MONTH)


def made(split: str = "rows", **fields: Any):
    spec = NodeSpec(name="n0", server="grpc://127.0.0.1:1", **fields)
    return rehearsals_of(spec, SimpleNamespace(split=split))


def test_a_stream_and_a_dated_corpus_are_rehearsed() -> None:
    assert made().state.passes
    assert made(corpus=MONTHS).state.passes


@pytest.mark.parametrize(
    "fields",
    [
        {"corpus": CorpusShare(path="c.txt")},
        {"node": NodeConfig(rehearsal_passes=0)},
        {"node": NodeConfig(rehearsal_passes=0), "corpus": MONTHS},
        {"model": ModelConfig(model="glove"), "corpus": MONTHS},
        {"split": "columns", "corpus": MONTHS},
        # Nothing would ever be rehearsed of a budget: every window would wait for its limit.
        {"node": NodeConfig(rehearsal_share=0)},
    ],
)
def test_where_nothing_is_rehearsed_no_window_waits_for_it(fields: dict[str, Any]) -> None:
    rehearsals = made(**fields)
    rehearsals.read(0, 1_000_000)
    assert not rehearsals.state.passes
    assert rehearsals.unconverged is None
    assert rehearsals.figures()["rehearses"] is False


def test_the_share_of_a_core_is_of_a_stream_alone() -> None:
    assert made(corpus=MONTHS, node=NodeConfig(rehearsal_share=0)).state.passes
