"""Vectors of words that were read only a few times."""

from __future__ import annotations

import numpy as np
import pytest
from in_process import InProcess, make_state

from embedding.models.base import make_trainer
from embedding.models.config import ModelConfig
from embedding.models.inference import CURVATURE, PRIOR, Frame
from embedding.models.sampling import NoiseTable
from embedding.records import Table, TokenBlock, WindowUnit
from embedding.worker.config import NodeConfig
from embedding.worker.learner import Learner
from embedding.worker.planning import Part, plan
from embedding.worker.young import LEAST, YoungWords

NEGATIVE, TOTAL = 5, 1e7


def tables(rows: int = 400, dim: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and output rows of words whose likelihood a vector near its own row explains."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(0.3, 1.0, (rows, dim)).astype(np.float32)
    contexts = (vectors - 0.5 + 0.2 * rng.normal(size=(rows, dim))).astype(np.float32)
    return vectors, contexts


def test_a_step_is_that_of_the_formula():
    vectors, contexts = tables()
    frame = Frame.of(vectors, contexts, NEGATIVE)
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
    sums = (weights * frame.surprise(contexts[:12])) @ contexts[:12]
    found = frame.infer(sums[None].astype(np.float32), np.array([total], dtype=np.float32))
    np.testing.assert_allclose(found[0], expected, rtol=1e-3, atol=1e-4)


def test_without_a_context_a_word_is_the_mean_of_known_words():
    vectors, contexts = tables()
    frame = Frame.of(vectors, contexts, NEGATIVE)
    found = frame.infer(np.zeros((1, 8), np.float32), np.zeros(1, np.float32))
    np.testing.assert_allclose(found[0], vectors.mean(axis=0), atol=1e-5)


@pytest.mark.parametrize("fault", ["few", "flat", "nan"])
def test_tables_that_say_nothing_give_no_frame(fault):
    vectors, contexts = tables()
    if fault == "few":
        vectors = vectors[:15]
    elif fault == "flat":
        vectors[:] = 0.0
    else:
        vectors[3, 2] = np.nan
    assert Frame.of(vectors, contexts, NEGATIVE) is None


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


def read(world: Words, young: YoungWords, texts: list[list[str]], **rows: int) -> np.ndarray:
    """Let `young` learn a block; the block's vectors afterwards, by id."""
    filler = [[name] for name in world.names]
    block = TokenBlock.build("뉴스", [[*texts, *filler]], published=[0.0], keys=["k"])
    known = {name: i for i, name in enumerate(world.names)} | rows
    table = np.array([known.get(word, -1) for word in block.words])
    pool = world.noise.draw(2000, 1).astype(np.int64)
    planned = plan([Part(table, block.codes, block.sentences)], pool, world)
    counts = world.counts[world.places(planned.words)]
    vectors, contexts = world.vectors[planned.words], world.contexts[planned.contexts]
    for seen in young.sight([block], planned, counts, TOTAL):
        young.learn(seen, vectors, contexts, planned.block.pool)
    found = world.vectors.copy()
    found[planned.words] = vectors
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
    texts = world.sentences(7, "새말", 30)
    assert rank(read(world, young, texts, 새말=row), row, 7) < 10


def test_mentions_of_several_blocks_and_of_the_time_before_the_row_add_up():
    world, young, once = Words(), make(mentions=100), make(mentions=100)
    texts = world.sentences(7, "새말", 30)
    read(world, young, texts[:10])
    row = fresh(world)
    read(world, young, texts[10:20], 새말=row)
    found = read(world, young, texts[20:], 새말=row)
    whole = read(world, once, texts, 새말=row)
    np.testing.assert_allclose(found[row], whole[row], rtol=0.05, atol=0.05)


def test_known_words_keep_their_rows():
    world, young = Words(), make()
    row = fresh(world)
    found = read(world, young, world.sentences(7, "새말", 10), 새말=row)
    assert np.array_equal(found[:row], world.vectors[:row])
    assert found[row].any()


def test_a_word_is_left_to_gradient_steps_once_it_was_read_often_enough():
    world, young = Words(), make(mentions=20)
    row = fresh(world)
    assert read(world, young, world.sentences(7, "새말", 20), 새말=row)[row].any()
    assert len(young) == 0, "it is forgotten"
    world.counts[row] = 20.0
    assert not read(world, young, world.sentences(7, "새말", 5), 새말=row)[row].any()
    few = fresh(world)
    assert not read(world, young, world.sentences(7, "딴말", LEAST - 1), 딴말=few)[few].any()


def test_the_words_remembered_are_bounded_and_the_latest_stay():
    world, young = Words(), make(limit=5)
    for i in range(20):
        read(world, young, [["말1", f"새말{i}", "말2"]])
        assert len(young) <= 5
    assert set(young._sums._places) == {f"새말{i}" for i in range(15, 20)}


def test_only_skip_gram_infers_and_it_can_be_turned_off():
    assert YoungWords.of(ModelConfig(), 30) is not None
    assert YoungWords.of(ModelConfig(), 0) is None
    assert YoungWords.of(ModelConfig(model="cbow"), 30) is None


def after_few_mentions(young_mentions: int) -> tuple[int, float]:
    """A renamed word after some ten mentions: how many of its ten nearest are of its topic, and
    the length of its vector in that of known words."""
    model = ModelConfig(dim=8, window=3, sample=0.0)
    state = make_state(dim=8, min_count=3)
    config = NodeConfig(replay_ratio=0.0, young_mentions=young_mentions, vocabulary_blocks=1)
    trainer = make_trainer(model)
    learner = Learner(
        InProcess(state), trainer, None, node="n0", model=model, config=config, unit=WindowUnit.DAY
    )
    rng = np.random.default_rng(2)

    def block(number: int, sentences: int, name: str) -> TokenBlock:
        topics = rng.integers(0, 12, sentences)
        words = [f"말{t}.{w}" for t in topics.tolist() for w in rng.integers(0, 10, 8).tolist()]
        words = [name if word == "말3.0" else word for word in words]
        text = [words[i : i + 8] for i in range(0, len(words), 8)]
        return TokenBlock.build("뉴스", [text], published=[0.0], keys=[str(number)])

    for number in range(40):
        learner.learn([block(number, 500, "말3.0")])
    mentions = 0
    while mentions < 8:
        read = block(100 + mentions, 200, "새말")
        mentions += (
            int((read.codes == read.words.index("새말")).sum()) if "새말" in read.words else 0
        )
        learner.learn([read])
    vocabulary = state.vocabulary
    ids = vocabulary.alive()
    names, vectors = vocabulary.names(ids), state.tables.read(Table.IN, vocabulary.slots(ids, "t"))
    length = np.linalg.norm(vectors, axis=1)
    cosines = vectors @ vectors[names.index("새말")] / length
    near = np.argsort(-cosines)[1:11]
    companions = sum(names[i].startswith("말3.") for i in near.tolist())
    return companions, float(length[names.index("새말")] / np.median(length))


def test_nothing_is_inferred_before_known_words_are_at_rest(monkeypatch):
    assert after_few_mentions(30)[1] < 0.5, "a million tokens were not read"
    monkeypatch.setattr("embedding.worker.young.SETTLED", 100_000)
    assert after_few_mentions(30)[1] > 0.7


def test_a_node_learns_a_renamed_word_sooner_than_by_gradient_steps(monkeypatch):
    monkeypatch.setattr("embedding.worker.young.SETTLED", 100_000)
    companions, length = after_few_mentions(30)
    assert companions >= 8
    assert length > 0.7
    assert after_few_mentions(0)[1] < 0.5
