"""A trainer of every model is warmed, and what it was warmed with changes nothing."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path

import numpy as np
import pytest

from embedding.exchange.compression import halves
from embedding.exchange.compression.base import unpacked
from embedding.exchange.compression.sending import sending
from embedding.exchange.compression.traits import COMPRESSIONS
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.kernel.records import Table
from embedding.models import sgns
from embedding.models.config import ModelConfig
from embedding.models.traits import MODELS
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server
from embedding.stream.queue import BlockQueue
from embedding.worker.process import gradient
from embedding.worker.process.warming import warm, warm_exchange
from embedding.worker.spec import CorpusShare, NodeSpec
from yeoron_lab import onebit, topk
from yeoron_lab.keeping import boundedrows
from yeoron_lab.steps import planes, principal, threshold
from yeoron_lab.steps.changes import Mirror, Wanted


@pytest.mark.parametrize("model", MODELS.names())
def test_every_model_can_be_warmed(model: str) -> None:
    for dim in (4, 100):
        warm(ModelConfig(model=model, dim=dim))


def test_kernels_are_there_afterwards() -> None:

    warm(ModelConfig(model="sgns", dim=8))
    made = [each for each in vars(sgns).values() if hasattr(each, "nopython_signatures")]
    assert any(each.nopython_signatures for each in made)


@pytest.mark.parametrize("kind", COMPRESSIONS.names())
@pytest.mark.parametrize("pulls", ["rows", "changes"])
def test_no_push_or_pull_of_changes_compiles_anything_afterwards(kind: str, pulls: str) -> None:
    config = ExchangeConfig(compression=kind, pulls=pulls, cache_bytes=2**20)
    warm_exchange(config, 8)
    before = compiled()
    rng = np.random.default_rng(1)
    feedback = sending(config)
    for sequence in (1, 2):
        values = rng.normal(scale=0.02, size=(300, 8)).astype(np.float32)
        delta = RowDelta(Table.OUT, np.arange(300, dtype=np.int64), values)
        unpacked(feedback.encode(Push("n0", sequence, 0, (delta,))))
    while (left := feedback.rest(2**20)) is not None:
        unpacked(feedback.encode(Push("n0", 3, 0, (left,)), rest=True))
    if pulls == "changes":
        mirror, ids = Mirror(2**20), np.arange(300, dtype=np.int64)
        wanted = Wanted(0, 2**20, 0.01, 1.0, 4)
        for _ in range(2):
            rows = rng.normal(size=(300, 8)).astype(np.float32)
            mirror.differences({Table.IN: ids}, {Table.IN: rows}, wanted)
    assert compiled() == before


def compiled() -> dict[str, int]:
    """Kernels of what is sent, and for how many kinds of arguments each was compiled."""
    found = {}
    for module in (halves, onebit, planes, principal, boundedrows, threshold, topk):
        for name, each in vars(module).items():
            if hasattr(each, "nopython_signatures"):
                found[f"{module.__name__}.{name}"] = len(each.nopython_signatures)
    return found


def test_a_node_of_a_corpus_has_its_kernels_before_its_first_pull(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[object] = []

    class BegunError(Exception):
        """The first pull would come now."""

    def begin(*_: object, **__: object) -> None:
        raise BegunError

    monkeypatch.setattr(gradient, "warm", done.append)
    monkeypatch.setattr(gradient, "warm_exchange", lambda *of: done.append(of))
    monkeypatch.setattr(gradient, "Pipeline", begin)
    model = ModelConfig(dim=8)
    config = ServerConfig(config_digest=model.digest(), device="cpu")
    with running_server(config, SyncConfig(policy="asp"), dim=model.dim) as server:
        _, queue = BlockQueue.pair(1_000, multiprocessing.get_context("spawn"))
        share = CorpusShare(path=str(tmp_path / "corpus.txt"), index=0, count=1)
        spec = NodeSpec(name="n0", server=server.location, model=model, corpus=share)
        process = gradient.GradientProcess(spec, queue, threading.Event())
        with pytest.raises(BegunError):
            process.run()
        process.stop.set()
    assert done == [model, (spec.exchange, 8)]
