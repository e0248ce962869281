"""A learner against a real parameter server on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from in_process import InProcess, make_state

from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import ContextSums, WindowUse
from embedding.exchange.protocol import PulledRows, PullRequest, Welcome
from embedding.kernel.errors import RefusedError, YeoronError
from embedding.kernel.records import Calendar, FloatArray, Table, TokenBlock, WindowUnit
from embedding.models.base import BlockLoss, LocalBlock, Trainer, make_trainer
from embedding.models.config import LearningRateSchedule, ModelConfig
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.stream.replay import ReplayMemory, UniformReplay
from embedding.worker.config import NodeConfig
from embedding.worker.corpus.corpus import Offset
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import MOST_SUMS, LearnerSetup, portions
from embedding.worker.learning.ticks import hash_seed

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
            LearnerSetup(
                node=name,
                model=MODEL,
                config=NodeConfig(replay_ratio=1.0).model_copy(update={"vocabulary_blocks": 1}),
                calendar=Calendar(WindowUnit.DAY),
            ),
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
    ids = node.link.server.admit(words, np.ones(4, dtype=np.int64))
    rows = (
        node.link.server.pull(
            PullRequest({Table.IN: ids, Table.OUT: ids[:0]}, clock=node.turn.clock)
        )
        .rows[Table.IN]
        .astype(np.float32)
    )
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


def test_all_sources_of_a_tick_are_scored_by_one_request() -> None:
    class Counting(InProcess):
        asked: tuple[list[str], ...] = ()

        def pull(self, request: PullRequest) -> PulledRows:
            self.asked += ([pairs.source for pairs in request.score],)
            return super().pull(request)

    line = Counting(make_state(dim=16))
    node = Learner(
        line,
        make_trainer(MODEL),
        None,
        LearnerSetup(
            node="n0",
            model=MODEL,
            config=NodeConfig().model_copy(update={"vocabulary_blocks": 1}),
            calendar=Calendar(WindowUnit.DAY),
        ),
    )
    names = [f"source-{n}" for n in range(8)]
    blocks = [replace(topics(n), source=name) for n, name in enumerate(names)]
    node.learn(blocks)
    node.learn(blocks)
    assert line.asked[-1] == names
    assert len(line.asked) == 2
    assert list(line.state.scores.sources) == names


def test_two_nodes_share_one_vocabulary(server: ParameterServer, learner: Make) -> None:
    one, two = learner("n0"), learner("n1")
    one.learn([topics(0)])
    two.learn([topics(1)])
    two.lexicon.refresh(two.link.server, whole=True)
    one.lexicon.refresh(one.link.server, whole=True)
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


class Mover:
    """A model that moves each row of `moves` words by its own step and no other."""

    def __init__(self, moves: int, step: float, loss: BlockLoss | None = None) -> None:
        self.moves = moves
        self.step = step
        self.loss = loss or BlockLoss(1.0, 1)
        self.seen: list[tuple[FloatArray, FloatArray]] = []

    def train(
        self,
        block: LocalBlock,
        vectors: FloatArray,
        contexts: FloatArray,
        *,
        learning_rate: float,
        seed: int,
    ) -> BlockLoss:
        self.seen.append((vectors.copy(), contexts.copy()))
        rng = np.random.default_rng(seed)
        for rows in (vectors, contexts):
            assert rows.dtype == np.float32
            rows[: self.moves] += rng.normal(scale=self.step, size=rows[: self.moves].shape).astype(
                np.float32
            )
        return self.loss


def alone(
    trainer: Trainer,
    *,
    half: bool = True,
    replay: ReplayMemory | None = None,
    model: ModelConfig = MODEL,
    **config: object,
) -> tuple[Learner, InProcess]:
    """A learner with its server in this process."""
    line = InProcess(make_state(dim=16), half=half)
    settings = NodeConfig(**{"replay_ratio": 0.0, **config})
    learner = Learner(
        line,
        trainer,
        replay,
        LearnerSetup(node="n0", model=model, config=settings, calendar=Calendar(WindowUnit.DAY)),
    )
    return learner, line


BOTH = (Table.IN, Table.OUT)


def held(line: InProcess) -> dict[Table, FloatArray]:
    """The server's rows."""
    slots = np.arange(line.state.vocabulary.rows)
    return {table: line.state.tables.read(table, slots) for table in BOTH}


def test_a_row_that_training_leaves_alone_has_a_delta_of_exactly_zero() -> None:
    """However it was rounded on its way: rounding must not add up in rows that nobody moves."""
    trainer = Mover(3, 0.1)
    node, line = alone(trainer)
    node.learn([topics(0)])
    before = held(line)
    trainer.moves = 0
    for seed in range(5):
        node.learn([topics(seed)])
    after = held(line)
    for table in BOTH:
        assert np.array_equal(before[table].view(np.uint32), after[table].view(np.uint32))
    for push in line.pushes[1:]:
        assert all(not delta.values.any() for delta in push.deltas)
    trainer.moves = 1
    node.learn([topics(9)])
    for delta in line.pushes[-1].deltas:
        assert delta.values.dtype == np.float16
        assert delta.values[0].all()
        assert not delta.values[1:].any()


@pytest.mark.parametrize("step", [1e-5, 1e-3, 0.1, 3.0])
def test_half_precision_costs_half_a_unit_of_what_travels_and_does_not_add_up(step: float) -> None:
    """Each push adds its delta rounded once; the rows that it was computed on are not rounded."""
    trainer = Mover(8, step)
    node, line = alone(trainer)
    exact: dict[Table, np.ndarray] = {}
    bound: dict[Table, np.ndarray] = {}
    for seed in range(20):
        if seed:
            before = held(line)
        node.learn([topics(seed)])
        (push,) = line.pushes[-1:]
        if not seed:
            exact = {table: rows.astype(np.float64) for table, rows in held(line).items()}
            bound = {table: np.zeros_like(rows) for table, rows in exact.items()}
            continue
        generator = np.random.default_rng(hash_seed(MODEL.seed, "n0", seed + 1))
        for delta, seen in zip(push.deltas, trainer.seen[-1], strict=True):
            moved = generator.normal(scale=step, size=seen[:8].shape).astype(np.float32)
            exact[delta.table][delta.ids[:8]] += moved
            # Half a unit of the delta's last place, and float32's own error of two additions.
            bound[delta.table][delta.ids[:8]] += np.maximum(np.abs(moved) * 2.0**-11, 2.0**-25)
            bound[delta.table][delta.ids[:8]] += 4 * 2.0**-24 * (np.abs(seen[:8]) + np.abs(moved))
            pulled = before[delta.table][delta.ids]
            assert (np.abs(seen - pulled) <= np.abs(pulled) * 2.0**-11 + 2.0**-25).all()
    for table, rows in held(line).items():
        assert (np.abs(rows - exact[table]) <= bound[table]).all()


def test_an_explosion_stops_with_the_setting_to_change() -> None:
    for loss in (BlockLoss(float("nan"), 1), BlockLoss(float("inf"), 1), BlockLoss(1e6, 10)):
        node, line = alone(Mover(1, 0.1, loss))
        with pytest.raises(
            YeoronError, match=r"set a smaller model\.learning_rate \(it is 0\.05\)"
        ):
            node.learn([topics(0)])
        assert line.pushes == [], "nothing of it reaches the server"


def test_replayed_words_that_were_evicted_are_trained_on_no_more() -> None:
    trainer = Mover(0, 0.0)
    node, line = alone(trainer, replay=UniformReplay(10_000, 1), replay_ratio=8.0)
    node.learn([topics(0)])
    gone = line.state.vocabulary.alive()[:4]
    with line.state.lock:
        line.state.words.install((), gone)
    node.words.forget()
    rest = [line.state.vocabulary.names(np.asarray([i]))[0] for i in range(4, 8)]
    texts = TokenBlock.build("news", [[rest * 10]], published=[DAY], keys=["k"])
    learnt = node.learn([texts])
    for delta in line.pushes[-1].deltas:
        assert not set(delta.ids.tolist()) & set(gone.tolist())
    assert learnt.trained_tokens > texts.n_tokens, "the others of the past are"


def test_the_rate_falls_with_the_reading() -> None:
    rates: list[float] = []

    class Listening(Mover):
        def train(self, *args: Any, learning_rate: float, seed: int) -> BlockLoss:
            rates.append(learning_rate)
            return super().train(*args, learning_rate=learning_rate, seed=seed)

    model = MODEL.model_copy(update={"schedule": "linear"})
    node, _ = alone(Listening(0, 0.0), model=model)
    for done in (0.25, 0.5, 1.0):
        learnt = node.learn([replace(topics(0), progress=done)])
        assert learnt.progress == done
    assert rates == [model.rate(0.25), model.rate(0.5), model.rate(1.0)]
    assert rates[0] > rates[1] > rates[2]


def test_a_corpus_of_one_tick_is_learnt_at_the_mean_rate() -> None:
    """Each tick at the rate of its middle, by the tokens that were read with it and before."""
    rates: list[float] = []

    class Listening(Mover):
        def train(self, *args: Any, learning_rate: float, seed: int) -> BlockLoss:
            rates.append(learning_rate)
            return super().train(*args, learning_rate=learning_rate, seed=seed)

    model = MODEL.model_copy(update={"schedule": "linear"})
    node, _ = alone(Listening(0, 0.0), model=model)
    n = topics(0).n_tokens
    for progress, read in ((1.0, n), (0.5, n), (1.0, 2 * n), (1.0, 10 * n)):
        node.learn([replace(topics(0), progress=progress, offset=str(Offset(tokens=read)))])
    assert rates == pytest.approx([model.rate(each) for each in (0.5, 0.25, 0.75, 0.95)])


def test_the_rate_falls_anew_in_each_window_of_event_time() -> None:
    """Whatever the reading says, and by the mean of a tick's tokens; windows here are days."""
    rates: list[float] = []

    class Listening(Mover):
        def train(self, *args: Any, learning_rate: float, seed: int) -> BlockLoss:
            rates.append(learning_rate)
            return super().train(*args, learning_rate=learning_rate, seed=seed)

    model = MODEL.model_copy(update={"schedule": LearningRateSchedule.WINDOW})
    node, _ = alone(Listening(0, 0.0), model=model)
    hours = (0, 12, 23, 24, 30)
    texts = [replace(topics(0), published=np.full(40, DAY + 3600.0 * h)) for h in hours]
    for text in texts:
        node.learn([replace(text, progress=0.9)])
    node.learn([texts[0], texts[2], texts[4]])
    parts = (0.0, 0.5, 23 / 24, 0.0, 0.25, (23 / 24 + 0.25) / 3)
    assert rates == pytest.approx([model.rate(part) for part in parts])
    assert rates[0] > rates[1] > rates[2]
    assert rates[1] == pytest.approx(MODEL.learning_rate)


def test_the_rate_falls_within_a_tick_by_the_text_of_its_window() -> None:
    """All of a window's text is of its last hour, and comes in one tick."""
    learnt: list[FloatArray] = []

    class Listening(Mover):
        def train(
            self, block: LocalBlock, *args: Any, learning_rate: float, seed: int
        ) -> BlockLoss:
            weights = np.ones(len(block.sentences) - 1) if block.weights is None else block.weights
            learnt.append(weights * learning_rate)
            return super().train(block, *args, learning_rate=learning_rate, seed=seed)

    model = MODEL.model_copy(update={"schedule": LearningRateSchedule.WINDOW})
    replay = UniformReplay(10_000, 1)
    node, _ = alone(Listening(0, 0.0), model=model, replay=replay, replay_ratio=1.0)
    passed = (np.arange(40) + 0.5) / 40
    block = replace(topics(0), passed=passed, published=np.full(40, DAY + 86_000.0))
    node.learn([block])
    expected = [model.rate(share) for share in passed]
    assert learnt[0] == pytest.approx(expected, rel=1e-5)
    node.learn([block])
    assert learnt[1][:40] == pytest.approx(expected, rel=1e-5)
    assert learnt[1][40:] == pytest.approx(np.full(len(learnt[1]) - 40, 0.05)), "of the past"


def test_words_with_a_row_are_counted_by_id() -> None:
    node, line = alone(Mover(0, 0.0))
    node.learn([topics(0)])
    node.learn([topics(1)])
    for push in line.pushes:
        assert list(push.counts.words) == []
        assert int(push.counts.counts.sum()) == topics(0).n_tokens
    assert sum(line.counts().values()) == 2 * topics(0).n_tokens


def test_after_a_refused_push_a_node_goes_on_from_where_the_server_stands() -> None:
    node, _ = alone(Mover(2, 0.1), half=False)
    node.learn([topics(0)])
    prepared = node.prepare([topics(1)])
    node.turn.sequence = 7
    node.training.train(prepared)
    with pytest.raises(RefusedError, match="gap, the server expects 2"):
        node.training.push(prepared)
    node.training.restart(1, 1)
    learnt = node.learn([topics(2)])
    assert learnt.ack.sequence == 2
    assert node.turn.clock == learnt.ack.clock == 2


def test_an_empty_document_is_acknowledged(server: ParameterServer, learner: Make) -> None:
    learnt = learner().learn([TokenBlock.build("news", [[]], published=[DAY], keys=["empty"])])
    assert learnt.keys == ("empty",)
    assert learnt.trained_tokens == 0


def test_a_process_that_begins_anew_offers_a_word_that_an_earlier_one_has_heard() -> None:
    """The server has counted it; what the earlier process heard went with it."""
    line = InProcess(make_state(dim=16, min_count=3))
    text = TokenBlock.build("뉴스", [[["드문"]]], published=[0.0], keys=["k"])

    def process() -> Learner:
        clock = line.state.machine.board.members["n0"].clock
        return Learner(
            line,
            make_trainer(MODEL),
            None,
            LearnerSetup(
                node="n0",
                model=MODEL,
                config=NodeConfig(replay_ratio=0.0).model_copy(update={"vocabulary_blocks": 1}),
                calendar=Calendar(WindowUnit.DAY),
            ),
            welcome=Welcome(clock, line.state.ledger.of("n0").accepted, min_count=3),
        )

    first = process()
    for _ in range(2):
        first.learn([text])
    assert len(line.state.vocabulary) == 0
    process().learn([text])
    assert line.state.vocabulary.ids(["드문"]).tolist() == [0]


def test_the_use_of_words_goes_in_messages_that_the_server_takes() -> None:
    one = ContextSums.none(0, "s", 0, "")
    sent = portions([WindowUse(0, sums=(one,) * (MOST_SUMS + 2))], 2**30)
    assert [len(message) for message in sent] == [MOST_SUMS, 2]
