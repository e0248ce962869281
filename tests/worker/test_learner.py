"""A learner against a real parameter server on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from embedding.records import TokenBlock, WindowUnit
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.stream.replay import UniformReplay
from embedding.worker.config import NodeConfig
from embedding.worker.learner import Learner

MODEL = ModelConfig(dim=16, window=3, sample=0.0, learning_rate=0.05)
Make = Callable[..., Learner]
DAY = 1_580_515_200.0


@pytest.fixture
def server() -> Iterator[ParameterServer]:
    config = ServerConfig(min_count=2, config_digest=MODEL.digest())
    with running_server(config, SyncConfig(policy="asp"), dim=16) as running:
        yield running


@pytest.fixture
def learner(server: ParameterServer) -> Iterator[Make]:
    """Makes learners at the server; their connections are closed before it stops."""
    clients = []

    def make(name: str = "n0") -> Learner:
        client = ParameterClient(
            server.location, node=name, config=ExchangeConfig(), config_digest=MODEL.digest()
        )
        clients.append(client)
        client.hello()
        return Learner(
            client,
            make_trainer(MODEL),
            UniformReplay(10_000, 1),
            node=name,
            model=MODEL,
            config=NodeConfig(replay_ratio=1.0, vocabulary_seconds=0.01),
            unit=WindowUnit.DAY,
        )

    yield make
    for client in clients:
        client.close()


def topics(seed: int, documents: int = 40) -> TokenBlock:
    """Documents of two topics whose words never meet."""
    rng = np.random.default_rng(seed)
    topic = [["감염", "마스크", "병원", "확진"], ["축구", "경기", "선수", "감독"]]
    texts = [[list(rng.choice(topic[i % 2], 12))] for i in range(documents)]
    return TokenBlock.build(
        "news",
        texts,
        published=[DAY] * documents,
        keys=[f"{seed}/{i}" for i in range(documents)],
    )


def test_what_is_learnt_is_counted_once_and_acknowledged(
    server: ParameterServer, learner: Make
) -> None:
    node = learner()
    block = topics(0)
    learnt = node.learn([block])
    status = server.status()
    assert learnt.keys == block.keys
    assert status["documents"] == block.n_documents
    assert status["sources"]["news"]["tokens"] == block.n_tokens
    assert status["vocabulary"] == 8


def test_words_of_a_topic_come_together(server: ParameterServer, learner: Make) -> None:
    node = learner()
    for seed in range(60):
        node.learn([topics(seed)])
    words = ["감염", "마스크", "축구", "경기"]
    ids = node.server.admit(words, np.ones(4, dtype=np.int64))
    order = np.argsort(ids)
    rows = np.empty((4, 16), dtype=np.float32)
    rows[order] = node.server.pull(ids[order], ids[:0], clock=node.clock).vectors
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosine = unit @ unit.T
    assert cosine[0, 1] > cosine[0, 2] + 0.3
    assert cosine[2, 3] > cosine[1, 3] + 0.3


def test_documents_are_scored_before_they_are_learnt(
    server: ParameterServer, learner: Make
) -> None:
    """The score of a document is the same whether or not it is learnt afterwards."""
    node = learner()
    node.learn([topics(0)])
    before = server.status()["sources"]["news"]["nll"]
    for seed in range(1, 40):
        node.learn([topics(seed)])
    after = server.status()["sources"]["news"]["nll"]
    untrained = (1 + MODEL.negative) * np.log(2)
    assert before is None or before == pytest.approx(untrained, rel=0.2)
    assert after < 0.9 * untrained


def test_two_nodes_share_one_vocabulary(server: ParameterServer, learner: Make) -> None:
    one, two = learner("n0"), learner("n1")
    one.learn([topics(0)])
    two.learn([topics(1)])
    two.lexicon.refresh(two.server, whole=True)
    one.lexicon.refresh(one.server, whole=True)
    assert len(one.lexicon) == len(two.lexicon) == 8
    assert server.status()["documents"] == 80


def test_a_word_below_the_threshold_is_not_trained_but_counted(
    server: ParameterServer, learner: Make
) -> None:
    node = learner()
    once = TokenBlock.build("news", [[["한번", "감염", "감염"]]], published=[DAY], keys=["k"])
    learnt = node.learn([once])
    assert learnt.fresh_tokens == 3
    assert learnt.trained_tokens == 2
    assert server.status()["vocabulary"] == 1
    again = TokenBlock.build("news", [[["한번", "감염"]]], published=[DAY], keys=["k2"])
    node.learn([again])
    assert server.status()["vocabulary"] == 2


def test_an_empty_document_is_acknowledged(server: ParameterServer, learner: Make) -> None:
    learnt = learner().learn([TokenBlock.build("news", [[]], published=[DAY], keys=["empty"])])
    assert learnt.keys == ("empty",)
    assert learnt.trained_tokens == 0
