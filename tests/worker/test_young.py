"""Words that were read only a few times: what nodes add up, and the vectors inferred from it."""

from __future__ import annotations

import numpy as np
import pytest
from in_process import InProcess, make_state

from embedding.exchange.payload import Surroundings, summed
from embedding.exchange.protocol import VERSION
from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from embedding.models.inference import CURVATURE, PRIOR, Frame, Viewpoint, sampled
from embedding.models.sampling import NoiseTable
from embedding.records import Table, TokenBlock, WindowUnit
from embedding.server.config import SyncConfig
from embedding.server.cutting.live import LiveModel
from embedding.stream.replay import UniformReplay
from embedding.worker.config import NodeConfig
from embedding.worker.hogwild import HogwildLearner, MappedTables
from embedding.worker.learner import Learner
from embedding.worker.paced import PacedLearner
from embedding.worker.planning import Part, plan
from embedding.worker.young import RowCounts, YoungWords

NEGATIVE, TOTAL = 5, 1e7


def tables(rows: int = 400, dim: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and output rows of words whose likelihood a vector near its own row explains."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(0.3, 1.0, (rows, dim)).astype(np.float32)
    contexts = (vectors - 0.5 + 0.2 * rng.normal(size=(rows, dim))).astype(np.float32)
    return vectors, contexts


def sums(contexts: np.ndarray, weights: np.ndarray, view: Viewpoint) -> np.ndarray:
    """g of one word, float32 [1, dim]."""
    slope = (weights * view.surprise(contexts)) @ contexts
    return (slope - NEGATIVE * weights.sum() * view.noise)[None].astype(np.float32)


def test_a_step_is_that_of_the_formula():
    vectors, contexts = tables()
    view, frame = Viewpoint.of(vectors, contexts), Frame.of(vectors, contexts)
    weights = np.linspace(0.2, 1.0, 12)
    chosen = contexts[:12].astype(np.float64)
    centre = vectors.mean(axis=0).astype(np.float64)
    sigma = 1 / (1 + np.exp(-contexts.astype(np.float64) @ centre))
    total = weights.sum()
    slope = ((weights * (1 - sigma[:12]))[:, None] * chosen).sum(axis=0)
    slope -= NEGATIVE * total * (sigma[:, None] * contexts).mean(axis=0)
    second = contexts.T.astype(np.float64) @ contexts / len(contexts)
    covariance = np.cov(vectors.T.astype(np.float64), bias=True)
    covariance += 1e-4 * np.trace(covariance) / 8 * np.eye(8)
    stiff = NEGATIVE * total * CURVATURE * second + PRIOR * np.linalg.inv(covariance)
    expected = centre + np.linalg.solve(stiff, slope)
    pairs = np.array([NEGATIVE * total], dtype=np.float32)
    found = frame.infer(sums(contexts[:12], weights, view), pairs)
    np.testing.assert_allclose(found[0], expected, rtol=1e-3, atol=1e-4)


def test_without_a_context_a_word_is_the_mean_of_known_words():
    vectors, contexts = tables()
    frame = Frame.of(vectors, contexts)
    found = frame.infer(np.zeros((1, 8), np.float32), np.zeros(1, np.float32))
    np.testing.assert_allclose(found[0], vectors.mean(axis=0), atol=1e-5)


@pytest.mark.parametrize("fault", ["few", "flat", "nan"])
def test_tables_that_say_nothing_give_no_frame(fault):
    vectors, contexts = tables()
    if fault == "few":
        vectors = vectors[:15]
        assert Viewpoint.of(vectors, contexts) is None
    elif fault == "flat":
        vectors[:] = 0.0
    else:
        vectors[3, 2] = np.nan
        assert Viewpoint.of(vectors, contexts) is None
    assert Frame.of(vectors, contexts) is None


def test_known_words_and_noise_follow_the_counts():
    counts = np.concatenate([np.full(50, 1e4), np.full(5000, 3.0)])
    known, noise = sampled(counts)
    assert np.array_equal(known, np.arange(50))
    expected = 50 * 1e4**0.75 / (50 * 1e4**0.75 + 5000 * 3.0**0.75)
    assert abs(np.mean(noise < 50) - expected) < 0.05
    assert not any(map(len, sampled(np.zeros(0)))), "no word, no sample"


def test_sums_of_several_nodes_add_up():
    one = Surroundings(
        np.array([4, 2]), np.ones((2, 3), np.float16), np.ones(2, np.float32), np.array([1, 2])
    )
    other = Surroundings(
        np.array([2]), np.full((1, 3), 2, np.float16), np.ones(1, np.float32), np.array([5])
    )
    both = summed([one, other])
    assert both.ids.tolist() == [2, 4]
    assert both.slopes.tolist() == [[3.0] * 3, [1.0] * 3]
    assert both.slopes.dtype == np.float16
    assert (both.pairs.tolist(), both.mentions.tolist()) == ([2.0, 1.0], [7, 1])
    assert summed([]) is None


class Words:
    """A world in which each word stands beside words whose output rows suit it."""

    def __init__(self) -> None:
        self.vectors, self.contexts = tables()
        self.rng = np.random.default_rng(5)
        self.names = [f"말{i}" for i in range(len(self.vectors))]
        self.ids = np.arange(len(self.names))
        self.counts = np.full(len(self.names), 1000.0)
        self.noise = NoiseTable.build(self.counts, 0.75)

    def places(self, ids):
        return np.searchsorted(self.ids, ids)

    def beside(self, word: int, n: int) -> list[str]:
        fit = np.exp(self.contexts @ self.vectors[word])
        return [self.names[i] for i in self.rng.choice(len(fit), n, p=fit / fit.sum())]

    def sentences(self, word: int, name: str, mentions: int) -> list[list[str]]:
        around = (self.beside(word, 4) for _ in range(mentions))
        return [[a, b, name, c, d] for a, b, c, d in around]


def read(
    world: Words, young: YoungWords, texts: list[list[str]], **rows: int
) -> dict[int, Surroundings]:
    """Let `young` read a block; what it says, by id."""
    filler = [[name] for name in world.names]
    block = TokenBlock.build("뉴스", [[*texts, *filler]], published=[0.0], keys=["k"])
    known = {name: i for i, name in enumerate(world.names)} | rows
    table = np.array([known.get(word, -1) for word in block.words])
    pool = world.noise.draw(2000, 1).astype(np.int64)
    planned = plan([Part(table, block.codes, block.sentences)], pool, world)
    rowed = RowCounts(planned.words, world.counts[world.places(planned.words)], TOTAL)
    vectors, contexts = world.vectors[planned.words], world.contexts[planned.contexts]
    before = vectors.copy(), contexts.copy()
    found = [
        young.learn(seen, vectors, contexts, planned.block.pool)
        for seen in young.sight([block], planned.block, rowed)
    ]
    assert np.array_equal(before[0], vectors), "rows are read only"
    assert np.array_equal(before[1], contexts)
    told = summed([part for part in found if part is not None])
    if told is None:
        return {}
    columns = zip(told.ids.tolist(), told.slopes, told.pairs, told.mentions, strict=True)
    return {i: Surroundings(np.array([i]), s[None], p, m) for i, s, p, m in columns}


def inferred(world: Words, parts: list[Surroundings], row: int) -> np.ndarray:
    """All vectors, the one of `row` as a server infers it."""
    known, noise = sampled(world.counts)
    frame = Frame.of(world.vectors[known], world.contexts[noise])
    slopes = np.sum([part.slopes.astype(np.float32) for part in parts], axis=0)
    found = world.vectors.copy()
    found[row] = frame.infer(slopes, np.array([sum(part.pairs for part in parts)]))[0]
    return found


def fresh(world: Words, count: float = 10.0) -> int:
    """A row for a word that was never learnt."""
    row = np.zeros((1, world.vectors.shape[1]), dtype=np.float32)
    world.vectors = np.concatenate([world.vectors, row])
    world.contexts = np.concatenate([world.contexts, row])
    world.ids = np.arange(len(world.vectors))
    world.counts = np.append(world.counts, count)
    return len(world.vectors) - 1


def rank(vectors: np.ndarray, word: int, original: int) -> int:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    near = unit @ unit[word]
    near[word] = -2.0
    return int((near > near[original]).sum())


def make(mentions: int = 30, limit: int = 1000) -> YoungWords:
    return YoungWords(window=2, negative=NEGATIVE, mentions=mentions, limit=limit)


def test_thirty_mentions_put_a_new_word_beside_the_word_it_stands_for():
    world, young = Words(), make(mentions=100)
    row = fresh(world)
    told = read(world, young, world.sentences(7, "새말", 30), 새말=row)
    assert list(told) == [row], "only of young words"
    assert told[row].mentions == 30
    assert rank(inferred(world, [told[row]], row), row, 7) < 10


def test_mentions_of_several_blocks_and_of_the_time_before_the_row_add_up():
    world, young, once = Words(), make(mentions=100), make(mentions=100)
    texts = world.sentences(7, "새말", 30)
    assert not read(world, young, texts[:10]), "a word without a row has no id to be told by"
    assert len(young) == 1
    row = fresh(world)
    parts = [read(world, young, part, 새말=row)[row] for part in (texts[10:20], texts[20:])]
    whole = read(world, once, texts, 새말=row)[row]
    assert [part.mentions for part in parts] == [20, 10], "what was held comes with the first"
    assert len(young) == 0
    np.testing.assert_allclose(
        inferred(world, parts, row)[row], inferred(world, [whole], row)[row], rtol=0.05, atol=0.05
    )


def test_words_that_were_read_often_are_not_told_of():
    world, young = Words(), make(mentions=20)
    row = fresh(world, count=20.0)
    assert not read(world, young, world.sentences(7, "새말", 5), 새말=row)


def test_the_words_held_are_bounded_and_the_latest_stay():
    world, young = Words(), make(limit=5)
    for i in range(20):
        read(world, young, [["말1", f"새말{i}", "말2"]])
        assert len(young) <= 5
    assert young._held.keys() == [f"새말{i}" for i in range(15, 20)]


def test_only_skip_gram_infers_and_it_can_be_turned_off():
    assert YoungWords.of(ModelConfig(), 30) is not None
    assert YoungWords.of(ModelConfig(), 0) is None
    assert YoungWords.of(ModelConfig(model="cbow"), 30) is None


MODEL = ModelConfig(dim=8, window=3, sample=0.0)


class Stream:
    """A server and a node that reads twelve topics; one word is renamed at some moment."""

    def __init__(
        self, young_mentions: int, *, kind: type[Learner] = PacedLearner, replay: float = 0.0
    ) -> None:
        hogwild = {"max_words": 500} if kind is HogwildLearner else {}
        sync = SyncConfig(policy="hogwild" if hogwild else "asp")
        self.state = make_state(sync, dim=8, min_count=3, young_mentions=young_mentions, **hogwild)
        self.line = InProcess(self.state)
        welcome = self.state.hello("n0", version=VERSION, digest="", clock=0)
        self.learner = kind(
            self.line,
            make_trainer(MODEL),
            UniformReplay(100_000, 1) if replay else None,
            node="n0",
            model=MODEL,
            config=NodeConfig(replay_ratio=replay, vocabulary_blocks=1),
            unit=WindowUnit.DAY,
        )
        if hogwild:
            self.learner.tables = MappedTables.attach(welcome.shared, 8)
        self.learner.begin(0, 0, welcome.min_count, welcome.young_mentions)
        self.rng = np.random.default_rng(2)
        self.mentions = 0

    def block(self, number: int, sentences: int, name: str) -> TokenBlock:
        topics = self.rng.integers(0, 12, sentences)
        words = [f"말{t}.{w}" for t in topics.tolist() for w in self.rng.integers(0, 10, 8)]
        words = [name if word == "말3.0" else word for word in words]
        text = [words[i : i + 8] for i in range(0, len(words), 8)]
        return TokenBlock.build("뉴스", [text], published=[0.0], keys=[str(number)])

    def begin(self) -> Stream:
        for number in range(40):
            self.learner.learn([self.block(number, 500, "말3.0")])
        return self

    def mention(self, least: int) -> Stream:
        """Read on until the new word was read so often."""
        while self.mentions < least:
            read = self.block(100 + self.mentions, 200, "새말")
            if "새말" in read.words:
                self.mentions += int((read.codes == read.words.index("새말")).sum())
            self.learner.learn([read])
        return self

    def read(self) -> tuple[int, float]:
        """How many of the new word's ten nearest are of its topic, as a reader of the live tables
        is told, and the length of its vector in that of known words."""
        live = LiveModel(self.state)
        near = live.neighbours("새말", 10)
        vocabulary = self.state.vocabulary
        ids = vocabulary.alive()
        with live._taking_turns():
            lengths = live._copied(ids, Table.IN).norm(dim=1)
        own = lengths[vocabulary.names(ids).index("새말")]
        return sum(n.word.startswith("말3.") for n in near), float(own / lengths.median())

    def rows(self) -> list[np.ndarray]:
        slots = self.state.vocabulary.slots(self.state.vocabulary.alive(), "t")
        return [self.state.tables.read(table, slots) for table in (Table.IN, Table.OUT)]


@pytest.fixture
def _settled(monkeypatch):
    monkeypatch.setattr("embedding.worker.young.SETTLED", 100_000)


def test_nothing_is_told_before_known_words_are_at_rest():
    stream = Stream(30).begin().mention(8)
    assert not len(stream.state.young), "a million tokens were not read"
    assert stream.read()[1] < 0.5


@pytest.mark.usefixtures("_settled")
@pytest.mark.parametrize("kind", [PacedLearner, HogwildLearner])
def test_readers_find_a_renamed_word_sooner_than_by_gradient_steps(kind):
    companions, length = Stream(30, kind=kind).begin().mention(8).read()
    assert companions >= 8
    assert length > 0.6
    assert Stream(0, kind=kind).begin().mention(8).read()[1] < 0.5


@pytest.mark.usefixtures("_settled")
@pytest.mark.parametrize("replay", [0.0, 2.0])
def test_what_is_trained_does_not_depend_on_it(replay):
    streams = [Stream(mentions, replay=replay).begin().mention(40) for mentions in (0, 30)]
    assert any(push.young is not None for push in streams[1].line.pushes)
    assert not any(push.young is not None for push in streams[0].line.pushes)
    for one, other in zip(*(stream.rows() for stream in streams), strict=True):
        assert np.array_equal(one, other), "bit for bit"


@pytest.mark.usefixtures("_settled")
def test_mentions_that_nodes_keep_for_a_later_push_come_with_it():
    sync = SyncConfig(policy="asp", n_push=3)
    stream = Stream(30)
    stream.state.configure(sync)
    stream.learner.pace = stream.state.machine.policy.pace(stream.state.machine.board)
    stream.begin().mention(12)
    stream.learner.flush()
    told = [push.young for push in stream.line.pushes if push.young is not None]
    own = int(stream.state.vocabulary.ids(["새말"])[0])
    assert sum(int(t.mentions[t.ids == own].sum()) for t in told) == stream.mentions
