"""Every model through a real server on loopback: what it learns is what it pushes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from constants import with_constants
from embedding.exchange.client import ParameterClient
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import BlockCounts, CountGroup
from embedding.exchange.protocol import PullRequest, Push, Welcome
from embedding.kernel.records import Calendar, FloatArray, Table, TokenBlock, Window, WindowUnit
from embedding.models.base import Trainer, make_trainer
from embedding.models.config import ModelConfig, Optimiser
from embedding.models.subwords import gram_buckets
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import SnapshotStore
from embedding.stream.replay import UniformReplay
from embedding.worker.config import NodeConfig
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerLink, LearnerSetup
from embedding.worker.learning.training import Training
from embedding.worker.process.pipeline import Pipeline, When
from yeoron_lab.hogwild.training import HogwildInPlace

DIM, BUCKETS = 16, 3000
LINE = ExchangeConfig(rows="float32", compression="none").model_copy(
    update={"pull_timeout_s": 60.0, "request_timeout_s": 60.0}
)
DAY = Window(datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 2, tzinfo=UTC))
TOPICS = [["감염병", "마스크", "병원", "확진"], ["축구", "경기장", "선수", "감독"]]
EVERY = [word for topic in TOPICS for word in topic]
ASP, HOGWILD = SyncConfig(policy="asp"), SyncConfig(policy="hogwild")


def config(model: str, **changes: object) -> ModelConfig:
    values = {"dim": DIM, "window": 3, "sample": 0.0, "learning_rate": 0.05, "buckets": BUCKETS}
    return ModelConfig.model_validate({"model": model, **values, **changes})


def block(texts: Sequence[Sequence[str]], key: str) -> TokenBlock:
    """Documents of one sentence each."""
    keys = [f"{key}/{i}" for i in range(len(texts))]
    return TokenBlock.build(
        "뉴스", [[text] for text in texts], published=[0.0] * len(keys), keys=keys
    )


def topics(seed: int, documents: int = 40) -> TokenBlock:
    """Documents of two topics whose words never meet."""
    rng = np.random.default_rng(seed)
    return block([rng.choice(TOPICS[i % 2], 12).tolist() for i in range(documents)], f"{seed}")


class World:
    """A server of one model, and learners at it."""

    def __init__(self, stack: ExitStack, store: Path, model: ModelConfig, sync: SyncConfig) -> None:
        self.model, self._stack, self._store = model, stack, store
        chosen = ServerConfig(
            min_count=2, max_words=500, half_life_tokens=None, snapshots=str(store)
        )
        self.server: ParameterServer = stack.enter_context(
            running_server(
                chosen, sync, dim=model.width, seed=5, buckets=model.gram_rows, biases=model.biases
            )
        )

    def learner(
        self,
        name: str = "n0",
        *,
        replay: float = 0.0,
        active: int = 1,
        trainer: Trainer | None = None,
        **settings: object,
    ) -> Learner:
        client = ParameterClient(self.server.location, node=name, config=LINE)
        self._stack.callback(client.close)
        welcome = client.hello()
        shared = welcome.shared
        kind = Training
        if shared is not None:
            kind = HogwildInPlace.training(shared, welcome.dim)
        return Learner(
            client,
            trainer or make_trainer(self.model),
            UniformReplay(10_000, 1) if replay else None,
            LearnerSetup(
                node=name,
                model=self.model,
                config=with_constants(NodeConfig, replay_ratio=replay, **settings),  # type: ignore[arg-type]
                calendar=Calendar(WindowUnit.DAY),
            ),
            welcome=Welcome(min_count=welcome.min_count, active=active),
            kind=kind,
        )

    def table(self, table: Table) -> FloatArray:
        state = self.server.state
        rows = BUCKETS if table is Table.SUB else state.vocabulary.rows
        with state.lock:
            return state.tables.read(table, np.arange(rows))

    def cut(self) -> Snapshot:
        return SnapshotStore(str(self._store)).open(self.server.snapshotter.cut(DAY).id)


Make = Callable[..., World]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    numbers = itertools.count()
    with ExitStack() as stack:

        def world(model: ModelConfig, sync: SyncConfig = ASP) -> World:
            return World(stack, tmp_path / f"store{next(numbers)}", model, sync)

        yield world


def nearest(snapshot: Snapshot, word: str, n: int = 3) -> list[str]:
    return [found for found, _ in snapshot.neighbours(word, n)]


TRAINED = [
    (model, sync, optimiser)
    for model in ("sgns", "cbow", "fasttext", "glove")
    for sync in (ASP, HOGWILD)
    for optimiser in (Optimiser.SGD, Optimiser.ADAGRAD)
    if not (model == "glove" and optimiser is Optimiser.SGD)
]


@pytest.mark.parametrize(("model", "sync", "optimiser"), TRAINED)
def test_topics_come_apart_in_what_the_server_publishes(
    make: Make, model: str, sync: SyncConfig, optimiser: Optimiser
) -> None:
    rate = 0.05 if optimiser is Optimiser.SGD else 0.2
    world = make(config(model, optimiser=optimiser, learning_rate=rate), sync)
    nodes = [world.learner("n0"), world.learner("n1")]
    for seed in range(60):
        nodes[seed % 2].learn([topics(seed)])
    snapshot = world.cut()
    assert snapshot.manifest.dim == DIM
    for topic in TOPICS:
        for word in topic:
            assert set(nearest(snapshot, word)) == set(topic) - {word}


@pytest.mark.parametrize("sync", [ASP, HOGWILD])
def test_training_moves_the_n_gram_rows_of_its_words_and_no_others(
    make: Make, sync: SyncConfig
) -> None:
    world = make(config("fasttext"), sync)
    node = world.learner()
    before = world.table(Table.SUB)
    for seed in range(3):
        node.learn([topics(seed)])
    moved = np.flatnonzero((world.table(Table.SUB) != before).any(axis=1))
    hashed = [gram_buckets(word, BUCKETS) for word in EVERY]
    assert moved.tolist() == np.unique(np.concatenate(hashed)).tolist()


def test_what_a_node_learns_is_what_its_trainer_moves(make: Make) -> None:
    """One block: the server's rows moved by exactly what the kernel did to local copies."""
    world = make(config("fasttext"))
    node = world.learner()
    prepared = node.prepare([topics(0)])
    planned, rows = prepared.planned, prepared.rows
    assert rows is not None
    spelt = [rows.rows[Table.IN], rows.rows[Table.SUB]]
    vectors, contexts = np.concatenate(spelt), np.array(rows.rows[Table.OUT])
    make_trainer(world.model).train(
        planned.block, vectors, contexts, learning_rate=prepared.rate, seed=prepared.seed
    )
    node.training.train(prepared)
    node.training.push(prepared)
    held = node.link.server.pull(PullRequest(planned.rows(), clock=node.turn.clock))
    n = len(planned.words)
    assert np.allclose(held.rows[Table.IN], vectors[:n], atol=1e-6)
    assert np.allclose(held.rows[Table.SUB], vectors[n:], atol=1e-6)
    assert np.allclose(held.rows[Table.OUT], contexts, atol=1e-6)


@pytest.mark.parametrize("sync", [ASP, HOGWILD])
def test_a_rare_korean_word_is_near_the_word_it_shares_letters_with(
    make: Make, sync: SyncConfig
) -> None:
    """It is read twice and never beside another word: all it has is its syllables and jamo."""
    alone = block([["감염병원균"], ["감염병원균"]], "rare")
    for model in ("fasttext", "sgns"):
        world = make(config(model), sync)
        node = world.learner()
        for seed in range(60):
            node.learn([topics(seed)])
        node.learn([alone])
        [(first, cosine), *_] = world.cut().neighbours("감염병원균", 3)
        if model == "fasttext":
            assert first == "감염병"
            assert cosine > 0.9
        else:
            assert cosine < 0.6, "without n-grams there is only its random start"


def test_a_new_word_pulls_the_n_gram_rows_that_others_trained(make: Make) -> None:
    world = make(config("fasttext"))
    node = world.learner()
    for seed in range(20):
        node.learn([topics(seed)])
    before = world.table(Table.SUB)
    prepared = node.prepare([block([["감염병원균"], ["감염병원균"]], "rare")])
    assert prepared.rows is not None
    assert np.array_equal(prepared.rows.rows[Table.SUB], before[prepared.planned.grams])
    assert set(prepared.planned.grams) == set(gram_buckets("감염병원균", BUCKETS))


def tables_after(make: Make, when: When, *, replay: float = 0.0) -> dict[Table, FloatArray]:
    world = make(config("fasttext", learning_rate=0.1))
    node = world.learner(replay=replay, vocabulary_blocks=10_000, curvature=0.0)
    # Every word has a large count from the start, so that noise does not hang on when it is read.
    many = np.full(len(EVERY), 100_000, dtype=np.int64)
    ids = node.link.server.admit(EVERY, many)
    counts = BlockCounts((CountGroup("뉴스", 0, len(ids)),), ids, [], many, np.ones_like(many))
    node.link.server.push(Push(node.setup.node, 1, 0, counts=counts))
    node.training.restart(1, 1)
    told: list[object] = []
    blocks = iter([topics(seed, 6)] for seed in range(12))
    Pipeline(node, blocks, told.append, when=lambda: when, in_order=True).run()
    assert len(told) == 12
    return {table: world.table(table) for table in Table}


@pytest.mark.parametrize("replay", [0.0, 1.0])
@pytest.mark.parametrize("when", ["ahead", "late"])
def test_a_lone_node_learns_the_same_whether_it_overlaps_or_not(
    make: Make, when: When, replay: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = tables_after(make, "now", replay=replay)
    overlapped = tables_after(make, when, replay=replay)
    for table in Table:
        assert np.allclose(plain[table], overlapped[table], rtol=1e-4, atol=1e-6), table
    if when == "ahead":
        unseen = LearnerLink.unseen
        words = (Table.IN, Table.OUT)
        monkeypatch.setattr(
            LearnerLink,
            "unseen",
            lambda self, rows: {t: d for t, d in unseen(self, rows).items() if t in words},
        )
        forgetful = tables_after(make, when, replay=replay)
        assert not np.allclose(plain[Table.SUB], forgetful[Table.SUB], rtol=1e-4, atol=1e-6)


def test_several_nodes_push_shares_of_their_n_gram_deltas(make: Make) -> None:
    """Rows touched often are averaged, as those of words are."""
    moved = {}
    for curvature in (0.0, 10.0):
        world = make(config("fasttext"))
        node = world.learner(curvature=curvature, active=2)
        before = world.table(Table.SUB)
        node.learn([topics(0)])
        moved[curvature] = world.table(Table.SUB) - before
    busy = np.abs(moved[0.0]).max(axis=1) > 0
    assert busy.any()
    assert np.allclose(moved[10.0][busy], 0.5 * moved[0.0][busy], atol=1e-6)


def test_replayed_words_keep_their_n_grams_after_the_vocabulary_was_read_anew(make: Make) -> None:
    world = make(config("fasttext"))
    node = world.learner(replay=1.0)
    node.learn([topics(0)])
    node.words.forget()
    only = block([["축구", "축구", "경기장", "경기장"]] * 3, "few")
    prepared = node.prepare([only])
    hashed = [
        gram_buckets(world.server.state.vocabulary.names(np.array([i]))[0], BUCKETS)
        for i in prepared.planned.words
    ]
    assert set(prepared.planned.grams.tolist()) == set(np.concatenate(hashed).tolist())
    assert len(prepared.planned.words) > 2, "something was replayed"


def test_glove_counts_on_from_block_to_block_also_in_shared_tables(make: Make) -> None:
    counts = {}
    for sync in (ASP, HOGWILD):
        world = make(config("glove"), sync)
        trainer = make_trainer(world.model)
        node = world.learner(trainer=trainer)
        for _ in range(3):
            node.learn([topics(0)])
        _, _, counts[sync.policy] = trainer.table.cells()  # type: ignore[attr-defined]
        trainer = make_trainer(world.model)
        once = make(config("glove"), sync).learner(trainer=trainer)
        once.learn([topics(0)])
        _, _, single = trainer.table.cells()  # type: ignore[attr-defined]
        assert counts[sync.policy].sum() == pytest.approx(3 * single.sum(), rel=1e-3)


def test_glove_pulls_no_noise_rows(make: Make) -> None:
    world = make(config("glove"))
    node = world.learner()
    node.learn([topics(0)])
    prepared = node.prepare([block([["축구", "경기장"]] * 3, "few")])
    assert not len(prepared.planned.extras)
    assert len(prepared.scores) == 1, "it is scored with them all the same"


def test_a_large_glove_loss_of_frequent_words_is_not_taken_for_divergence() -> None:
    assert 20 * config("glove").untrained_loss > 0.5 * np.log(1e9) ** 2
    assert config("sgns").untrained_loss == pytest.approx(6 * np.log(2))
