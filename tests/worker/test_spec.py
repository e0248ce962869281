"""What a node may be asked for."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.topology import TopologyConfig
from embedding.models.config import ModelConfig
from embedding.stream.config import StreamConfig
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig
from embedding.worker.spec import CorpusShare, NodeSpec


def spec(model: str, stream: StreamConfig, ratio: float) -> NodeSpec:
    return NodeSpec(
        name="n",
        server="grpc://127.0.0.1:1",
        model=ModelConfig(model=model),
        stream=stream,
        node=NodeConfig(replay_ratio=ratio),
    )


def test_glove_takes_no_ranked_replay() -> None:
    with pytest.raises(ValidationError, match="glove"):
        spec("glove", StreamConfig(replay="gradient"), 1.0)


def test_without_replay_nothing_is_ranked() -> None:
    assert spec("glove", StreamConfig(replay="loss"), 0.0).node.replay_ratio == 0.0
    assert spec("glove", StreamConfig(), 1.0).stream.replay == "uniform"
    assert spec("cbow", StreamConfig(replay="loss"), 1.0).stream.replay == "loss"


def test_what_a_node_trains_with() -> None:
    peers = ("n", "m", "o")
    told = spec("cbow", StreamConfig(), 1.0).model_copy(update={"peers": peers}).setup
    assert (told.model.model, told.compression, told.topology) == ("cbow", "fp16", "ps")
    assert (told.tokenizer, told.nodes) == ("auto", 3)
    reader = NodeSpec(
        name="n",
        server="grpc://127.0.0.1:1",
        corpus=CorpusShare(path="x", index=1, count=4),
        exchange=ExchangeConfig(compression="topk"),
        text=TextConfig(tokenizer="script"),
        topology=TopologyConfig(server_groups=2),
    ).setup
    assert (reader.compression, reader.topology) == ("topk", "servers")
    assert (reader.tokenizer, reader.nodes) == ("script", 4)
