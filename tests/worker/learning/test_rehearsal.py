"""The replay memory in a learner's tick, against a real parameter server."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.kernel.records import Calendar, Table, TokenBlock, WindowUnit
from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.server.words.usage import added_up
from embedding.stream.config import StreamConfig
from embedding.stream.replay import ReplayMemory, make_replay
from embedding.worker.config import NodeConfig
from embedding.worker.learning import rehearsal
from embedding.worker.learning.convergence import Order
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerSetup
from embedding.worker.learning.planning import CodedText
from embedding.worker.learning.rehearsal import Mixing, Rehearsal, replay_ratio

INITIAL_TOKENS = 250_000.0

MODEL = ModelConfig(dim=8, window=3, sample=0.0, learning_rate=0.05)
WORDS = [f"말{i}" for i in range(12)]


@pytest.fixture
def server() -> Iterator[ParameterServer]:
    config = ServerConfig(min_count=1, config_digest=MODEL.digest())
    with running_server(config, SyncConfig(policy="asp"), dim=8) as running:
        yield running


@pytest.fixture
def client(server: ParameterServer) -> Iterator[ParameterClient]:
    client = ParameterClient(
        server.location, node="n0", config=ExchangeConfig(), config_digest=MODEL.digest()
    )
    client.hello()
    yield client
    client.close()


class Spy:
    """A replay memory that notes what it is told."""

    def __init__(self, memory: ReplayMemory) -> None:
        self.memory = memory
        self.told: list[tuple[np.ndarray, np.ndarray]] = []
        self.first: list[np.ndarray] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.memory, name)

    def __len__(self) -> int:
        return len(self.memory)

    def add(self, tokens, sentences, priority=None):
        self.first.append(priority)
        return self.memory.add(tokens, sentences, priority)

    def update(self, keys, priority) -> None:
        self.told.append((keys, priority))
        self.memory.update(keys, priority)


def block(seed: int) -> TokenBlock:
    rng = np.random.default_rng(seed)
    return TokenBlock.build(
        "news",
        [[list(rng.choice(WORDS, 8)), list(rng.choice(WORDS, 6))] for _ in range(5)],
        published=[0.0] * 5,
        keys=[f"{seed}/{i}" for i in range(5)],
        priority=[1.0, 2.0, 3.0, 4.0, 5.0],
    )


def learner(client: ParameterClient, memory: object, initial: float = 1.0) -> Learner:
    return Learner(
        client,
        make_trainer(MODEL),
        memory,
        LearnerSetup(
            node="n0",
            model=MODEL,
            config=NodeConfig(replay_ratio=1.0).model_copy(
                update={"initial_replay_ratio": initial}
            ),
            calendar=Calendar(WindowUnit.DAY),
        ),
    )


@pytest.mark.parametrize("kind", ["loss", "gradient"])
def test_drawn_sentences_are_weighed_measured_and_reported(
    client: ParameterClient, kind: str
) -> None:
    memory = Spy(make_replay(StreamConfig(replay=kind), 1))  # type: ignore[arg-type]
    node = learner(client, memory)
    node.learn([block(0)])
    assert memory.told == [] or all(not len(keys) for keys, _ in memory.told)
    prepared = node.prepare([block(1)])
    planned = prepared.planned.block
    assert planned.weights is not None
    assert len(planned.weights) == len(planned.sentences) - 1
    assert (planned.weights[:10] == 1.0).all()  # the fresh ones
    node.training.train(prepared)
    node.training.push(prepared)
    keys, figures = memory.told[-1]
    assert len(keys) == len(figures) > 0
    assert np.isfinite(figures).all()
    assert (figures > 0).all()
    assert set(keys.tolist()) <= set(range(10))


def test_sentences_inherit_the_first_priority_of_their_document(client: ParameterClient) -> None:
    memory = Spy(make_replay(StreamConfig(replay="loss"), 1))
    learner(client, memory).learn([block(0)])
    assert memory.first[0].tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_uniform_replay_costs_no_measuring(client: ParameterClient) -> None:
    node = learner(client, make_replay(StreamConfig(), 1))
    node.learn([block(0)])
    planned = node.prepare([block(1)]).planned.block
    assert planned.weights is None
    assert planned.track == "none"
    assert len(planned.tokens) > 70  # fresh and drawn ones


def test_a_young_model_learns_its_first_texts_more_often() -> None:
    config = NodeConfig(replay_ratio=2.0).model_copy(update={"initial_replay_ratio": 6.0})
    assert [replay_ratio(config, INITIAL_TOKENS * n) for n in (0, 0.5, 1, 1.5, 2, 3, 4, 100)] == [
        *[6.0, 6.0, 6.0, 4.0, 3.0],
        *[2.0, 2.0, 2.0],
    ]
    more = NodeConfig(replay_ratio=8.0).model_copy(update={"initial_replay_ratio": 6.0})
    assert replay_ratio(more, 0) == 8.0, "never less than is set"
    none = NodeConfig(replay_ratio=0.0).model_copy(update={"initial_replay_ratio": 6.0})
    assert replay_ratio(none, 0) == 0.0, "there is no memory to draw from"


@pytest.mark.parametrize(("initial", "times"), [(INITIAL_TOKENS, 6), (20.0, 2)])
def test_a_node_draws_as_the_age_of_the_model_says(
    client: ParameterClient, monkeypatch: pytest.MonkeyPatch, initial: float, times: int
) -> None:
    monkeypatch.setattr(rehearsal, "INITIAL_TOKENS", initial)
    node = learner(client, make_replay(StreamConfig(), 1), initial=5.0)
    node.learn([block(0)])
    learnt = node.learn([block(1)])
    assert learnt.trained_tokens == learnt.fresh_tokens * times, "140 tokens were read"


@pytest.mark.parametrize("kind", ["uniform", "gradient"])
def test_half_of_what_is_learnt_again_is_of_the_window_under_way_or_as_much_as_there_is(
    kind: str,
) -> None:
    memory = make_replay(StreamConfig(replay=kind), 1)  # type: ignore[arg-type]
    past = Rehearsal(memory, Mixing({}))

    def read(window: int, row: int, sentences: int) -> None:
        past.begin(window)
        text = [["말"] * 10 for _ in range(sentences)]
        one = TokenBlock.build("news", [text], published=[0.0], keys=[str(window)], priority=[1.0])
        past.draw([one], [CodedText(np.array([row]), one.codes, one.sentences)], 0)

    def share(*, evenly: bool) -> float:
        parts, _ = past.draw_again(2_000, evenly=evenly)
        ids = np.concatenate([part.ids for part in parts])
        assert len(ids) == 2_000
        return float((ids == 1).mean())

    read(0, 0, 900)
    read(1, 1, 100)
    assert share(evenly=False) == pytest.approx(0.55, abs=0.06)
    assert share(evenly=True) == pytest.approx(0.1, abs=0.06)


@pytest.mark.parametrize("kind", ["uniform", "loss", "gradient"])
@pytest.mark.parametrize("policy", ["asp", "bsp", "ssp", "backup", "averaging"])
def test_what_is_rehearsed_is_counted_nowhere(kind: str, policy: str) -> None:
    """No count of a word, document or window, no decay, no context of a rare word, no sum of usage:
    only rows move, and the total of what was replayed."""
    config = ServerConfig(min_count=1, config_digest=MODEL.digest(), half_life_tokens=100.0)
    with running_server(config, SyncConfig(policy=policy), dim=8) as server:
        client = ParameterClient(
            server.location, node="n0", config=ExchangeConfig(), config_digest=MODEL.digest()
        )
        client.hello()
        memory = make_replay(StreamConfig(replay=kind), 1)
        node = learner(client, memory)
        for seed in range(3):
            node.learn([block(seed)])
        before, rows = counted(server), rows_of(server)
        for _ in range(3):
            order = Order(100, 1.0, decay=0.1)
            told = node.prepare((), order=order)
            node.training.train(told)
            node.training.push(told)
            node.training.flush()
            assert (told.fresh_tokens, told.keys) == (0, ())
            assert told.trained_tokens > 50
        assert counted(server) == before
        assert server.state.meters.replayed_tokens > 150
        assert not np.array_equal(rows_of(server), rows)
        client.close()


def counted(server: ParameterServer) -> dict[str, object]:
    """All that a server counts of text; no row, and no bytes or clocks of what was sent."""
    state = server.state
    ids = state.vocabulary.alive()
    status = server.status()
    return {
        "words": dict(zip(state.vocabulary.names(ids), state.vocabulary.counts(ids), strict=True)),
        "last_seen": state.vocabulary.last_seen(ids).tolist(),
        "windows": status["windows"],
        "sources": {name: one["documents"] for name, one in status["sources"].items()},
        "tokens": (status["tokens"], status["documents"]),
        "rare": state.accounts.rare.held(ids, state.vocabulary.counts(ids)).at.tolist(),
        "usage": [
            (one.source, one.documents.tolist(), one.sums.tolist())
            for start in state.accounts.windows.windows()
            for one in added_up(state.accounts.usage.held([start]))
        ],
        "by_window": [
            state.accounts.windows.table(start).to_pydict()
            for start in state.accounts.windows.windows()
        ],
    }


def rows_of(server: ParameterServer) -> np.ndarray:
    state = server.state
    ids = state.vocabulary.alive()
    return np.array(state.tables.read(Table.IN, state.vocabulary.slots(ids, "test")))
