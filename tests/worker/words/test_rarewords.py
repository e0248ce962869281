"""Words that were read only a few times: what nodes add up, and the vectors inferred from it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from in_process import InProcess, make_state

from embedding.exchange.payload import WordContexts, summed
from embedding.exchange.protocol import (
    EVERY_BLOCK,
    PROTOCOL_VERSION,
    Pace,
    Welcome,
)
from embedding.kernel.records import Calendar, Table, TokenBlock, WindowUnit
from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from embedding.models.contextbags import ContextBag, added_up
from embedding.models.inference import MEAN_SHARE, Frame, directions
from embedding.models.sampling import NoiseTable
from embedding.server.config import SyncConfig
from embedding.server.snapshotting.live import LiveModel
from embedding.server.words.inferred import IdRows, Taught
from embedding.stream.replay import UniformReplay
from embedding.worker.config import NodeConfig
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.link import LearnerSetup
from embedding.worker.learning.planning import CodedText, plan
from embedding.worker.words.rarewords import RareWords
from yeoron_lab.hogwild.training import HogwildTraining, MappedTables
from yeoron_lab.paced.paced import PacedTraining


def tables(rows: int = 400, dim: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and output rows of words whose likelihood a vector near its own row explains."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(0.3, 1.0, (rows, dim)).astype(np.float32)
    contexts = (vectors - 0.5 + 0.2 * rng.normal(size=(rows, dim))).astype(np.float32)
    return vectors, contexts


def stands(contexts: np.ndarray, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """What stood around as many words as there are rows: Σ w u/|u| and Σ w."""
    weights = np.random.default_rng(seed).random((len(contexts), len(contexts))).astype(np.float32)
    return weights @ directions(contexts), weights.sum(axis=1)


def test_a_vector_is_that_of_the_formula():
    vectors, contexts = tables()
    sums, weights = stands(contexts)
    x = (sums / weights[:, None]).astype(np.float64)
    centre, origin = vectors.mean(axis=0).astype(np.float64), x.mean(axis=0)
    second = (x - origin).T @ (x - origin)
    ridge = 0.003 * np.trace(second) / 8
    mapping = np.linalg.solve(second + ridge * np.eye(8), (x - origin).T @ (vectors - centre))
    away = (x[5] - origin) @ mapping
    length = np.sqrt(np.mean(np.sum((vectors - centre) ** 2, axis=1)))
    expected = MEAN_SHARE * centre + length * away / np.linalg.norm(away)
    found = Frame.of(vectors, sums, weights, contexts).infer(sums[5:6], weights[5:6])
    np.testing.assert_allclose(found[0], expected, rtol=1e-3, atol=1e-4)


def test_how_often_and_how_near_contexts_stood_does_not_lengthen_a_vector():
    vectors, contexts = tables()
    sums, weights = stands(contexts)
    frame = Frame.of(vectors, sums, weights, contexts)
    once, often = frame.infer(sums[:3], weights[:3]), frame.infer(9 * sums[:3], 9 * weights[:3])
    np.testing.assert_allclose(once, often, rtol=1e-4, atol=1e-4)


def test_a_row_of_nought_has_no_direction():
    assert not directions(np.zeros((2, 3), np.float32)).any()


@pytest.mark.parametrize("fault", ["few", "flat", "nan", "unread"])
def test_words_that_teach_nothing_give_no_frame(fault):
    vectors, contexts = tables()
    sums, weights = stands(contexts)
    if fault == "few":
        vectors, sums, weights = vectors[:15], sums[:15], weights[:15]
    elif fault == "flat":
        vectors[:] = 1.0
    elif fault == "nan":
        vectors[3, 2] = np.nan
    else:
        weights[7] = 0.0
    assert Frame.of(vectors, sums, weights, contexts) is None


def test_sums_of_several_nodes_add_up():
    one = WordContexts(
        np.array([4, 2]),
        np.array([1, 2]),
        np.array([1, 3]),
        np.array([9, 9, 7, 4]),
        np.array([0.5, 1.0, 0.25, 1.0], np.float16),
    )
    other = WordContexts(
        np.array([2]), np.array([5]), np.array([2]), np.array([3, 7]), np.ones(2, np.float16)
    )
    both = summed([one, other])
    assert both.ids.tolist() == [2, 4]
    assert both.sizes.tolist() == [4, 1]
    assert both.contexts.tolist() == [3, 4, 7, 9, 9]
    assert both.weights.tolist() == [1.0, 1.0, 1.25, 1.0, 0.5]
    assert both.mentions.tolist() == [7, 1]
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
        fit = np.exp(self.contexts[: len(self.names)] @ self.vectors[word])
        return [self.names[i] for i in self.rng.choice(len(fit), n, p=fit / fit.sum())]

    def sentences(self, word: int, name: str, mentions: int) -> list[list[str]]:
        around = (self.beside(word, 4) for _ in range(mentions))
        return [[a, b, name, c, d] for a, b, c, d in around]


def read(
    world: Words, rare: RareWords, texts: list[list[str]], **rows: int
) -> dict[int, ContextBag]:
    """Let `rare` read a block; what it says, by id."""
    filler = [[name] for name in world.names]
    block = TokenBlock.build("뉴스", [[*texts, *filler]], published=[0.0], keys=["k"])
    known = {name: i for i, name in enumerate(world.names)} | rows
    table = np.array([known.get(word, -1) for word in block.words])
    pool = world.noise.draw(2000, 1).astype(np.int64)
    planned = plan([CodedText(table, block.codes, block.sentences)], pool, world)
    whole = 25 * world.counts
    counts = world.counts[world.places(planned.words)]
    seen = rare.sight([block], planned.block, planned.words, counts, whole)
    told = rare.learn_all(seen)
    if told is None:
        return {}
    return {row: told.bags.of(told.ids == row) for row in told.ids.tolist()}


def young_ones(told: dict[int, ContextBag]) -> dict[int, ContextBag]:
    """Of the words that are told of, those that were added to the world."""
    return {row: part for row, part in told.items() if row >= 400}


def inferred(world: Words, parts: list[ContextBag], row: int) -> np.ndarray:
    """All vectors, the one of `row` as a server infers it from what known words teach."""
    texts = [text for word in range(400) for text in world.sentences(word, world.names[word], 20)]
    known = read(world, make(mentions=10_000), texts)
    ids = np.arange(400)
    taught = Taught(ids, joined([known[i] for i in range(400)]), ids)
    reading = taught.reading(IdRows(ids, world.vectors[:400]), IdRows(ids, world.contexts[:400]))
    found = world.vectors.copy()
    found[row] = reading.infer(found[row : row + 1], parted(parts))[0]
    return found


def joined(each: list[ContextBag]) -> ContextBag:
    """Of all words, one after another."""
    return ContextBag(*(np.concatenate(column) for column in zip(*each, strict=True)))


def parted(parts: list[ContextBag]) -> ContextBag:
    """What several pushes say of one word."""
    whole = joined(parts)
    mentions = np.array([whole.mentions.sum()])
    return added_up(np.zeros(len(whole.contexts), np.int64), *whole[1:3], mentions)


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


def make(mentions: int = 30, limit: int = 1000) -> RareWords:
    return RareWords(window=2, mentions=mentions, limit=limit)


def test_thirty_mentions_put_a_new_word_beside_the_word_it_stands_for():
    world, rare = Words(), make(mentions=100)
    row = fresh(world)
    told = young_ones(read(world, rare, world.sentences(7, "새말", 30), 새말=row))
    assert list(told) == [row]
    assert told[row].mentions.tolist() == [30]
    assert rank(inferred(world, [told[row]], row), row, 7) < 10


def test_mentions_of_several_blocks_and_of_the_time_before_the_row_add_up():
    world, rare, once = Words(), make(mentions=100), make(mentions=100)
    texts = world.sentences(7, "새말", 30)
    assert not young_ones(read(world, rare, texts[:10])), "a word without a row has no id"
    assert len(rare) == 1
    row = fresh(world)
    parts = [read(world, rare, part, 새말=row)[row] for part in (texts[10:20], texts[20:])]
    whole = read(world, once, texts, 새말=row)[row]
    assert [part.mentions.tolist() for part in parts] == [[20], [10]], (
        "what was held comes with the first"
    )
    assert len(rare) == 0
    both = parted(parts)
    assert both.contexts.tolist() == whole.contexts.tolist()
    np.testing.assert_allclose(both.weights, whole.weights, rtol=1e-5)


def test_of_known_words_a_sample_of_mentions_is_told_as_many_for_each():
    world, rare = Words(), make(mentions=20)
    world.counts[7] = 4000.0
    told = []
    for _ in range(20):
        texts = world.sentences(7, "말7", 100) + world.sentences(8, "말8", 100)
        told.append(read(world, rare, texts))
    assert [bool(one) for one in told] == [at == 15 for at in range(20)], "together, now and then"
    often, seldom = (int(told[15][row].mentions[0]) for row in (7, 8))
    assert 1 <= often <= 40, "1,600 mentions and more, each with chance 20/4000"
    assert 15 <= seldom <= 120, "1,600 mentions and more, each with chance 20/1000"


def test_where_too_many_words_are_known_some_are_told_of(monkeypatch):
    monkeypatch.setattr("embedding.worker.words.rarewords.KNOWN_EXAMPLES", 100)
    world, rare = Words(), make(mentions=1000)
    told = [read(world, rare, []) for _ in range(16)]
    assert set(told[-1]) == set(range(0, 400, 4))


def test_the_words_held_are_bounded_and_the_latest_stay():
    world, rare = Words(), make(limit=5)
    for i in range(20):
        read(world, rare, [["말1", f"새말{i}", "말2"]])
        assert len(rare) <= 5
    assert rare._held.keys() == [f"새말{i}" for i in range(15, 20)]


def test_only_skip_gram_infers_and_it_can_be_turned_off():
    assert RareWords.of(ModelConfig(), 30) is not None
    assert RareWords.of(ModelConfig(), 0) is None
    assert RareWords.of(ModelConfig(model="cbow"), 30) is None


MODEL = ModelConfig(dim=8, window=3, sample=0.0)


class Stream:
    """A server and a node that reads twelve topics; one word is renamed at some moment."""

    def __init__(
        self,
        rare_mentions: int,
        *,
        shared: bool = False,
        replay: float = 0.0,
        pace: Pace = EVERY_BLOCK,
    ) -> None:
        hogwild = {"max_words": 500} if shared else {}
        sync = SyncConfig(policy="hogwild" if hogwild else "asp")
        self.state = make_state(sync, dim=8, min_count=3, rare_mentions=rare_mentions, **hogwild)
        self.line = InProcess(self.state)
        welcome = self.state.hello("n0", version=PROTOCOL_VERSION, digest="", clock=0)
        tables = MappedTables.attach(welcome.shared, 8) if shared else None
        self.learner = Learner(
            self.line,
            make_trainer(MODEL),
            UniformReplay(100_000, 1) if replay else None,
            LearnerSetup(
                node="n0",
                model=MODEL,
                config=NodeConfig(replay_ratio=replay).model_copy(update={"vocabulary_blocks": 1}),
                calendar=Calendar(WindowUnit.DAY),
            ),
            welcome=Welcome(
                pace=pace, min_count=welcome.min_count, rare_mentions=welcome.rare_mentions
            ),
            kind=PacedTraining if tables is None else partial(HogwildTraining, tables=tables),
        )
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
            lengths = np.linalg.norm(live._copied(ids, Table.IN), axis=1)
        own = lengths[vocabulary.names(ids).index("새말")]
        return sum(n.word.startswith("말3.") for n in near), float(own / np.median(lengths))

    def rows(self) -> list[np.ndarray]:
        slots = self.state.vocabulary.slots(self.state.vocabulary.alive(), "t")
        return [self.state.tables.read(table, slots) for table in (Table.IN, Table.OUT)]


@pytest.fixture
def _read_enough(monkeypatch):
    monkeypatch.setattr("embedding.worker.words.rarewords._LEAST_TOKENS_READ", 20_000)


def test_nothing_is_told_before_known_words_are_at_rest():
    stream = Stream(30).begin().mention(8)
    assert not len(stream.state.accounts.rare), "a million tokens were not read"
    assert stream.read()[1] < 0.5


@pytest.mark.usefixtures("_read_enough")
@pytest.mark.parametrize("shared", [False, True])
def test_readers_find_a_renamed_word_sooner_than_by_gradient_steps(shared):
    companions, length = Stream(30, shared=shared).begin().mention(8).read()
    assert companions >= 8
    assert length > 0.6
    assert Stream(0, shared=shared).begin().mention(8).read()[1] < 0.5


@pytest.mark.usefixtures("_read_enough")
@pytest.mark.parametrize("replay", [0.0, 2.0])
def test_what_is_trained_does_not_depend_on_it(replay):
    streams = [Stream(mentions, replay=replay).begin().mention(40) for mentions in (0, 30)]
    assert any(push.rare is not None for push in streams[1].line.pushes)
    assert not any(push.rare is not None for push in streams[0].line.pushes)
    for one, other in zip(*(stream.rows() for stream in streams), strict=True):
        assert np.array_equal(one, other), "bit for bit"


@pytest.mark.usefixtures("_read_enough")
def test_mentions_that_nodes_keep_for_a_later_push_come_with_it():
    sync = SyncConfig(policy="asp", n_push=3)
    stream = Stream(30, pace=Pace(push_every=3))
    stream.state.configure(sync)
    assert stream.state.machine.policy.pace(stream.state.machine.board).push_every == 3
    stream.begin().mention(12)
    stream.learner.training.flush()
    told = [push.rare for push in stream.line.pushes if push.rare is not None]
    own = int(stream.state.vocabulary.ids(["새말"])[0])
    assert sum(int(t.mentions[t.ids == own].sum()) for t in told) == stream.mentions
