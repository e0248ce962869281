"""Source weights: which sentences they reach, and that a heavier source is learnt faster."""

from __future__ import annotations

import numpy as np
import pytest
from in_process import InProcess, make_state
from pydantic import ValidationError

from embedding.kernel.records import Calendar, TokenBlock, WindowUnit
from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from embedding.stream.config import StreamConfig
from embedding.stream.replay import make_replay
from embedding.worker.config import NodeConfig
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerSetup
from embedding.worker.learning.rehearsal import Mixing
from embedding.worker.spec import NodeSpec

MODEL = ModelConfig(dim=8, window=3, sample=0.0, learning_rate=0.05)


def block(source: str, seed: int = 1) -> TokenBlock:
    rng = np.random.default_rng(seed)
    words = [f"{source}{i}" for i in range(8)]
    return TokenBlock.build(
        source,
        [[list(rng.choice(words, 8)), list(rng.choice(words, 6))] for _ in range(5)],
        published=[0.0] * 5,
        keys=[f"{source}/{seed}/{i}" for i in range(5)],
    )


def learner(weights: dict[str, float], replay: float = 0.0) -> Learner:
    return Learner(
        InProcess(make_state(dim=8)),
        make_trainer(MODEL),
        make_replay(StreamConfig(), 1) if replay else None,
        LearnerSetup(
            node="n0",
            model=MODEL,
            config=NodeConfig(replay_ratio=replay, source_weights=weights),
            calendar=Calendar(WindowUnit.DAY),
        ),
    )


def test_fresh_sentences_have_the_weight_of_their_source() -> None:
    node = learner({"board": 3.0})
    weights = node.prepare([block("news"), block("board")]).planned.block.weights
    assert weights is not None
    assert weights.tolist() == [1.0] * 10 + [3.0] * 10


def test_replayed_sentences_keep_the_weight_of_their_source() -> None:
    node = learner({"board": 3.0}, replay=4.0)
    node.learn([block("news"), block("board")])
    planned = node.prepare([block("news", 2)]).planned
    local, weights = planned.block, planned.block.weights
    assert weights is not None
    names = dict(zip(planned.words.tolist(), _named(node, planned.words), strict=True))
    firsts = local.tokens[local.sentences[:-1]]
    for row, weight in zip(firsts.tolist(), weights.tolist(), strict=True):
        source = names[int(planned.words[row])].rstrip("0123456789")
        assert weight == (3.0 if source == "board" else 1.0)
    assert {1.0, 3.0} == set(weights.tolist())


def _named(node: Learner, ids: np.ndarray) -> list[str]:
    return list(node.link.server.state.vocabulary.names(ids))  # type: ignore[attr-defined]


def test_without_weights_nothing_is_weighed() -> None:
    assert learner({}).prepare([block("news")]).planned.block.weights is None


def test_a_heavier_source_is_learnt_faster_and_others_as_before() -> None:
    def moved(source: str, weights: dict[str, float]) -> float:
        node = learner(weights)
        trained = node.prepare([block(source)])
        node.training.train(trained)
        delta = next(each for each in trained.deltas if each.table == "out")
        return float(np.linalg.norm(np.asarray(delta.values, np.float32)))

    assert moved("board", {"board": 4.0}) > 1.4 * moved("board", {})
    assert moved("news", {"board": 4.0}) == moved("news", {})


def test_what_a_memory_let_go_is_forgotten() -> None:
    mixing = Mixing({"board": 2.0})
    for at in range(1000):
        keys = np.arange(at * 4, at * 4 + 4)
        mixing.remember("board" if at % 2 else "news", keys, size=min(12, at * 4 + 4))
    assert len(mixing._firsts) <= 5
    assert mixing.past(np.arange(3988, 4000)).tolist() == [2.0] * 4 + [1.0] * 4 + [2.0] * 4


def test_weights_that_cannot_work_are_refused() -> None:
    for weight in (0.0, -1.0, float("nan"), 1e6):
        with pytest.raises(ValidationError, match="source_weights"):
            NodeConfig(source_weights={"board": weight})
    with pytest.raises(ValidationError, match="glove"):
        NodeSpec(
            name="n0",
            server="grpc://127.0.0.1:1",
            model=ModelConfig(model="glove"),
            node=NodeConfig(source_weights={"board": 2.0}),
        )
