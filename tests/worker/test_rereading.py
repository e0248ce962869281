"""Texts of windows before, read again when a window begins: which, by what tables, how many."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import pytest

from benchmarks.local import Local
from embedding.errors import RefusedError
from embedding.models import ModelConfig
from embedding.models.base import LocalBlock
from embedding.positions import positions
from embedding.records import Table, TokenBlock, WindowUnit
from embedding.server.config import ServerConfig
from embedding.worker import compass as compass_room
from embedding.worker import rereading, smoothing
from embedding.worker.compass import Compass, Pull
from embedding.worker.config import NodeConfig
from embedding.worker.past import PARTS, PastTexts, Sentences, Stretch
from embedding.worker.rereading import Rereading
from embedding.worker.smoothing import RowMeans
from embedding.worker.ticks import Begun
from embedding.worker.usage import UsageReader, _fresh

DAY, DIM, CONTEXT, WINDOWS = 86_400, 5, 2, 6
WORDS = "가나다라마"


def block(source: str, texts: list[tuple[int, str]]) -> TokenBlock:
    """Documents of (day, sentences divided by `/`, of one-letter words)."""
    return TokenBlock.build(
        source,
        [[list(sentence) for sentence in text.split("/")] for _, text in texts],
        published=[float(day * DAY) for day, _ in texts],
        keys=[str(at) for at in range(len(texts))],
    )


def ids_of(one: TokenBlock) -> np.ndarray:
    table = np.array([WORDS.find(word) for word in one.words], dtype=np.int64)
    return table[one.codes]


def past_of(*blocks: TokenBlock, most: int = 1_000) -> PastTexts:
    past = PastTexts(WindowUnit.DAY, most, WINDOWS)
    past.add(blocks, [ids_of(one) for one in blocks])
    return past


def around(words: int) -> np.ndarray:
    return np.random.default_rng(11).normal(size=(words, DIM)).astype(np.float32)


def compass(words: int = len(WORDS), seed: int = 0) -> Compass:
    rng = np.random.default_rng(seed)
    held = Compass(np.arange(words), np.ones(words, np.float32), around(words))
    for table in (Table.IN, Table.OUT):
        held.see(table, np.arange(words), rng.normal(size=(words, DIM)).astype(np.float32))
    return held


def begin(again: Rereading, tables: Compass, day: int = 2) -> None:
    """A day begins, with the words of these tables."""
    again.begin(Begun(day * DAY, tables.ids, tables.keep), DIM)


def server(tables: Compass) -> Pull:
    """A server that has these tables."""
    return lambda ids, others: {
        Table.IN: tables.vectors[ids],
        Table.OUT: tables.contexts[others],
    }


def by_hand(sentences: list[str], word: str, tables: Compass) -> tuple[np.ndarray, float]:
    """g and N of a word over sentences, from the formula with τ = 1/2."""
    slope, pairs = np.zeros(3 * DIM), 0.0
    for sentence in sentences:
        for i, centre in enumerate(sentence):
            for j in range(max(0, i - CONTEXT), min(len(sentence), i + CONTEXT + 1)):
                other = WORDS.find(sentence[j])
                if j == i or centre != word or not 0 <= other < len(tables.ids):
                    continue
                weight = (CONTEXT + 1 - abs(i - j)) / CONTEXT
                u, v = tables.contexts[other].astype(float), tables.vectors[other].astype(float)
                expected = 1 + np.exp(u @ tables.vectors[WORDS.find(word)] / 2)
                slope += weight / expected * np.concatenate([u, v, tables.around[other]])
                pairs += weight
    return slope, pairs


def test_the_parts_hold_all_texts_of_the_windows_before_and_no_other():
    texts = [(day, "가나다/라마") for day in (1, 1, 1, 2, 2, 3)] * 4
    past = past_of(block("뉴스", texts), block("글판", [(2, "마마")]))
    held = past.before(3 * DAY)
    assert {source for source, _ in held} == {"뉴스", "글판"}
    news = [s for (source, _), own in held.items() for s in own if source == "뉴스"]
    assert sum(len(stretch.ids) for stretch in news) == 20 * 5
    assert all(len(stretch.sentences) - 1 == len(stretch.ids) * 2 / 5 for stretch in news)
    assert not past.before(DAY)
    assert {part for _, part in held} == set(range(PARTS)), "documents are dealt out in turn"


def test_memory_is_bounded_and_the_oldest_windows_leave_first():
    past = past_of(block("뉴스", [(day, "가나다라마") for day in range(1, 30)]), most=1_000)
    held = past.before(29 * DAY)
    assert sum(len(s.ids) for own in held.values() for s in own) == WINDOWS * 5
    small = past_of(*(block("뉴스", [(day, "가나다라마")]) for day in range(1, 5)), most=12)
    assert small.tokens <= 12
    assert sum(len(s.ids) for own in small.before(9 * DAY).values() for s in own) == 10


def test_sums_are_those_of_the_formula_by_the_tables_of_the_beginning():
    texts = [(1, "가나다/나가나"), (1, "다가라가"), (2, "가마")] * PARTS
    again, tables = Rereading(CONTEXT, past_of(block("뉴스", texts))), compass(words=4)
    begin(again, tables)
    assert again.compass is not None
    again.compass.around = tables.around
    found = again.read(10_000, server(tables))
    assert again.left == 0
    assert [(one.window, one.source) for one in found] == [(2 * DAY, "뉴스")] * PARTS
    assert sorted(one.part for one in found) == list(range(PARTS))
    seen: dict[int, set[int]] = {}
    for one in found:
        own = [text for at, (day, text) in enumerate(texts) if day == 1 and at % PARTS == one.part]
        sentences = [sentence for text in own for sentence in text.split("/")]
        for word, slope, pairs in zip(one.ids.tolist(), one.slopes, one.pairs, strict=True):
            wanted = by_hand(sentences, WORDS[word], tables)
            np.testing.assert_allclose(slope, wanted[0], rtol=3e-3, atol=3e-3)
            assert pairs == pytest.approx(wanted[1], rel=1e-5)
        seen[one.part] = set(one.ids.tolist())
    assert set().union(*seen.values()) >= {0, 1}
    assert all(WORDS.find("마") not in own for own in seen.values()), "younger than the compass"


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick may read again eight tokens for each fresh one, and pulls a few rows."""
    monkeypatch.setattr(rereading, "LEAST", 0)
    monkeypatch.setattr(rereading, "PULLED", 0)


def long_past() -> PastTexts:
    rng = np.random.default_rng(7)
    texts = [(1, "/".join("".join(rng.choice(list(WORDS), 6)) for _ in range(9)))] * 3 * PARTS
    return past_of(block("뉴스", texts), block("글판", texts[:PARTS]), most=10_000)


@pytest.mark.usefixtures("slowly")
def test_slices_of_a_part_give_the_sums_of_the_whole_once():
    tables, sums = compass(), []
    for fresh in (10_000, 3):
        again = Rereading(CONTEXT, long_past())
        begin(again, tables)
        found, left = [], again.left
        while again.left:
            found += again.read(fresh, server(tables))
            assert left - again.left <= max(6, 8 * fresh), "eight tokens for each fresh one"
            left = again.left
        assert again.read(fresh, server(tables)) == ()
        sums.append({(one.source, one.part): one for one in found})
        assert len(found) == len(sums[-1]) == 2 * PARTS
    for key, whole in sums[0].items():
        assert np.array_equal(whole.ids, sums[1][key].ids)
        assert np.array_equal(whole.slopes, sums[1][key].slopes)
        assert np.array_equal(whole.pairs, sums[1][key].pairs)


@pytest.mark.usefixtures("slowly")
def test_a_part_that_was_not_finished_when_the_next_window_begins_is_left():
    past, tables = long_past(), compass()
    again = Rereading(CONTEXT, past)
    begin(again, tables)
    found = [one for _ in range(4) for one in again.read(12, server(tables))]
    assert 0 < len(found) < 2 * PARTS
    held = past.before(3 * DAY)
    assert again.left > 0
    begin(again, tables, day=3)
    assert again.left == sum(len(s.ids) for own in held.values() for s in own), (
        "all, from the first"
    )
    later = []
    while again.left:
        later += again.read(12, server(tables))
    assert {one.window for one in found} == {2 * DAY}
    assert [one.window for one in later] == [3 * DAY] * 2 * PARTS


def test_any_tick_reads_some_of_the_past_again():
    again, tables = Rereading(CONTEXT, long_past()), compass()
    begin(again, tables)
    assert len(again.read(0, server(tables))) == 2 * PARTS


@pytest.mark.parametrize("most", [1, 4, 5, 6, 7, 11, 13, 100])
def test_sentences_are_taken_whole_and_in_order(most):
    stretches = [
        Stretch("뉴스", 0, np.arange(0, 9), np.array([0, 2, 3, 9])),
        Stretch("뉴스", 0, np.arange(9, 14), np.array([0, 5])),
    ]
    sentences, taken, lengths = Sentences(stretches), [], []
    while sentences.tokens:
        ids, offsets = sentences.take(most)
        assert len(ids) <= most or len(offsets) == 2, "one sentence may be longer"
        taken += ids.tolist()
        lengths += np.diff(offsets).tolist()
    assert taken == list(range(14))
    assert lengths == [2, 1, 6, 5]
    assert len(sentences.take(most)[0]) == 0


def test_the_compass_keeps_what_it_saw_first_and_asks_for_the_rest(monkeypatch):
    monkeypatch.setattr(compass_room, "PULLED", 4)
    asked: list[tuple[list[int], list[int]]] = []
    ids = np.array([3, 4, 7, 8, 9, 12])
    held, means = Compass(ids, np.ones(6, np.float32), around(6)), RowMeans(DIM)
    means.begin(ids)

    def pull(vectors: np.ndarray, contexts: np.ndarray) -> dict[Table, np.ndarray]:
        asked.append((vectors.tolist(), contexts.tolist()))
        return {
            Table.IN: np.repeat(vectors[:, None], DIM, 1).astype(np.float16),
            Table.OUT: np.repeat(contexts[:, None] * 10, DIM, 1).astype(np.float16),
        }

    held.see(Table.IN, held.places(np.array([4, 5, 8])), np.full((3, DIM), 0.5, np.float32))
    held.see(Table.IN, held.places(np.array([8])), np.full((1, DIM), 0.7, np.float32))
    held.ask(pull, 4, means)
    assert asked == [([3, 7, 9, 12], [3, 4, 7, 8])]
    assert not held.whole
    held.ask(pull, 100, means)
    assert asked[1:] == [([], [9, 12])]
    assert held.whole
    held.ask(pull, 100, means)
    assert len(asked) == 2
    assert held.vectors[:, 0].tolist() == [3, 0.5, 7, 0.5, 9, 12]
    assert held.contexts[:, 1].tolist() == [30, 40, 70, 80, 90, 120]
    assert held.places(np.array([12, 5, 3])).tolist() == [5, -1, 0]


class Stream:
    """A learner that adds up use over days, against a real server's state."""

    def __init__(self, past: int = 100_000, seed: int = 3, words: Sequence[str] = WORDS) -> None:
        model = ModelConfig(dim=8, seed=seed, sample=0.0)
        server = ServerConfig(min_count=1, device="cpu", half_life_tokens=None, window="day")
        self.local = Local(model, NodeConfig(replay_ratio=0.0), server)
        self.local.learner.usage = UsageReader.of(
            model, WindowUnit.DAY, True, PastTexts(WindowUnit.DAY, past, WINDOWS) if past else None
        )
        self.rng = np.random.default_rng(seed)
        self.words = list(words)

    def day(self, day: int, ticks: int = 3, words: int | None = None) -> None:
        for _ in range(ticks):
            sentences = [list(self.rng.choice(self.words[:words], 6)) for _ in range(40)]
            self.local.learn(sentences, [float(day * DAY + 60)] * len(sentences))

    def sums(self, day: int):
        held = self.local.state.accounts.usage.held([day * DAY])
        return {one.past: one for one in held}


def test_a_window_has_the_past_beside_it_but_the_first_one():
    stream = Stream()
    stream.day(1)
    stream.day(2)
    stream.day(3)
    assert set(stream.sums(1)) == {0}
    for day in (2, 3):
        sums = stream.sums(day)
        assert set(sums) == {0, 1, 2}, "eight parts are two times four replicas"
        assert all((sums[past].pairs > 0).all() for past in (1, 2)), "no replica is empty"
    before = sum(stream.sums(3)[past].pairs.sum() for past in (1, 2))
    own = sum(stream.sums(day)[0].pairs.sum() for day in (1, 2))
    assert before == pytest.approx(own, rel=1e-3), "all texts of both days, each once"


def test_the_same_stream_gives_the_same_sums():
    first, second = Stream(), Stream()
    for day in (1, 2, 3):
        first.day(day)
        second.day(day)
    for past, one in first.sums(3).items():
        assert np.array_equal(one.slopes, second.sums(3)[past].slopes)


def test_without_memory_nothing_is_read_again():
    stream = Stream(past=0)
    stream.day(1)
    stream.day(2)
    assert set(stream.sums(2)) == {0}


def test_fresh_text_is_read_by_the_tables_of_the_beginning():
    stream = Stream()
    stream.day(1)
    stream.day(2)
    reader = stream.local.learner.usage
    assert reader is not None
    assert reader.again is not None
    held = reader.again.compass
    assert held is not None
    tables = stream.local.state.tables
    slots = stream.local.state.vocabulary.slots(held.ids, "test")
    assert not np.allclose(tables.read(Table.OUT, slots), held.contexts), "training went on"
    stream.day(2, ticks=1)
    assert reader.again.compass is held
    stream.day(3, ticks=1)
    assert reader.again.compass is not held


def many_words() -> Stream:
    """More words than one tick of the second day has rows of."""
    return Stream(words=[f"낱말{at}" for at in range(400)])


def test_a_compass_that_takes_several_ticks_is_that_of_the_beginning(monkeypatch):
    for room in (rereading, compass_room):
        monkeypatch.setattr(room, "PULLED", 30)
    stream = many_words()
    stream.day(1, ticks=6)
    state, reader = stream.local.state, stream.local.learner.usage
    ids = state.vocabulary.alive()
    slots = state.vocabulary.slots(ids, "test")
    means = deepcopy(reader.again._means)
    means.begin(ids)
    before = {table: state.tables.read(table, slots).copy() for table in (Table.IN, Table.OUT)}
    before = {
        table: means.smooth(table, np.arange(len(ids)), rows) for table, rows in before.items()
    }
    ticks = 0
    while reader.again.compass is None or not reader.again.compass.whole:
        stream.day(2, ticks=1, words=20)
        ticks += 1
    assert ticks > 1
    held = reader.again.compass
    assert np.array_equal(held.ids, ids)
    assert np.array_equal(held.vectors, before[Table.IN])
    assert np.array_equal(held.contexts, before[Table.OUT])
    assert not np.array_equal(state.tables.read(Table.IN, slots), held.vectors), "training went on"


def test_the_first_window_has_means_of_words_that_come_after_its_first_tick():
    stream = many_words()
    stream.day(1, ticks=1, words=20)
    stream.day(1, ticks=5)
    state, reader = stream.local.state, stream.local.learner.usage
    late = np.sort(state.vocabulary.alive())[20:]
    slots = state.vocabulary.slots(late, "test")
    last = {table: state.tables.read(table, slots).copy() for table in (Table.IN, Table.OUT)}
    stream.day(2, ticks=1, words=20)
    held = reader.again.compass
    at = held.places(late)
    same = (held.vectors[at] == last[Table.IN]).all(axis=1)
    assert same.mean() < 0.1, "a row is not as the last tick left it"
    assert (held.contexts[at] != last[Table.OUT]).any(axis=1).mean() > 0.9


def test_a_server_that_does_not_know_the_words_costs_the_comparison_and_nothing_else():
    stream = many_words()
    stream.day(1)
    learner = stream.local.learner

    def refuse(clock: int, vectors: np.ndarray, contexts: np.ndarray) -> dict:
        del clock, vectors, contexts
        raise RefusedError("pull: row 3 is not known.")

    learner._tables = refuse  # type: ignore[method-assign]
    stream.day(2, words=20)
    assert set(stream.sums(2)) == {0}
    del learner._tables
    stream.day(3, words=20)
    assert set(stream.sums(3)) == {0, 1, 2}


@pytest.mark.parametrize("first", ["refused", "unknown"])
def test_a_window_begins_with_its_first_tick_though_that_one_trains_nothing(first, monkeypatch):
    stream = Stream()
    stream.day(1)
    learner, moment = stream.local.learner, [2.0 * DAY + 30]

    def refuse(*_: object, **__: object) -> None:
        raise RefusedError("pull: row 3 is not known.")

    if first == "refused":
        one = TokenBlock.build("corpus", [[["가"]]], published=moment, keys=["refused"])
        with monkeypatch.context() as patched:
            patched.setattr(learner.server, "pull", refuse)
            prepared = learner.prepare([one], when="late")
            with pytest.raises(RefusedError):
                learner.train(prepared)
    else:
        with monkeypatch.context() as patched:
            nobody = lambda words, counts: np.full(len(words), -1, dtype=np.int64)  # noqa: E731
            patched.setattr(learner.server, "admit", nobody)
            stream.local.learn([["새말"]], moment)
    stream.day(2)
    assert set(stream.sums(2)) == {0, 1, 2}


def test_after_a_refused_pull_no_text_of_the_window_is_summed(monkeypatch):
    """Those before it were read by one compass; what it lacks is no longer as the window began."""
    for room in (rereading, compass_room):
        monkeypatch.setattr(room, "PULLED", 30)
    stream = many_words()
    stream.day(1)
    learner = stream.local.learner

    def refuse(clock: int, vectors: np.ndarray, contexts: np.ndarray) -> dict:
        del clock, vectors, contexts
        raise RefusedError("pull: row 3 is not known.")

    learner._tables = refuse  # type: ignore[method-assign]
    stream.day(2, ticks=1, words=20)
    before = deepcopy(stream.sums(2)[0])
    assert before.pairs.sum() > 0, "the tick that asked had read its text"
    stream.day(2, ticks=2)
    del learner._tables
    stream.day(2, ticks=1)
    after = stream.sums(2)
    assert set(after) == {0}
    assert np.array_equal(after[0].pairs, before.pairs)
    assert np.array_equal(after[0].slopes, before.slopes)
    stream.day(3)
    assert set(stream.sums(3)) == {0, 1, 2}


def test_the_places_of_a_ticks_rows_are_found_once_for_means_and_compass(monkeypatch):
    """Once a table, and once more for the texts that the compass reads."""
    for room in (rereading, compass_room):
        monkeypatch.setattr(room, "PULLED", 30)
    stream = many_words()
    stream.day(1)
    found: list[int] = []

    def counting(held: np.ndarray, ids: np.ndarray) -> np.ndarray:
        found.append(len(ids))
        return positions(held, ids)

    for room in (smoothing, compass_room):
        monkeypatch.setattr(room, "positions", counting)
    stream.day(2, ticks=1, words=20)
    begins = 1
    assert len(found) == begins + 2 + 1
    assert not stream.local.learner.usage.again.compass.whole


@pytest.mark.parametrize("tokens", [[3, -1, 0, 3, 4], [-1, -1], [0, 1], []])
def test_rows_of_a_whole_table_become_rows_of_the_tick(tokens):
    block = LocalBlock(
        tokens=np.array([*tokens, 9, 9], dtype=np.int32),
        sentences=np.array([0, len(tokens), len(tokens) + 2], dtype=np.int32),
        keep=np.arange(10, dtype=np.float32),
        pool=np.empty(0, dtype=np.int32),
        ids=None,
    )
    own, ids = _fresh(block, np.empty(0, dtype=np.int64), len(tokens))
    assert [ids[row] if row >= 0 else -1 for row in own.tokens.tolist()] == tokens
    assert ids.tolist() == sorted({token for token in tokens if token >= 0})
    assert own.keep.tolist() == ids.tolist(), "each word keeps its own chance"
