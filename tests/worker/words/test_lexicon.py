"""A node's mirror of the vocabulary, against the server's own."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process import InProcess, make_state

from embedding.exchange.protocol import Push, Welcome
from embedding.kernel.records import Calendar, TokenBlock, WindowUnit
from embedding.models.config import ModelConfig
from embedding.worker.corpus.counting import count_words
from embedding.worker.learning.wordtables import WordTables
from embedding.worker.words import lexicon as module
from embedding.worker.words.lexicon import NodeLexicon
from generated import examples

texts = st.lists(st.sampled_from([f"말{i}" for i in range(12)]), min_size=1, max_size=8)


def block(words: list[str], source: str = "뉴스") -> TokenBlock:
    return TokenBlock.build(source, [[words]], published=[0.0], keys=["k"])


class Reader:
    """A node that only reads and counts."""

    def __init__(self, line: InProcess, least: float = 1.0) -> None:
        self.line = line
        self.least = least
        self.lexicon = NodeLexicon()
        self.sequence = 0

    def read(self, *read: list[str]) -> None:
        blocks = [block(words, f"s{at}") for at, words in enumerate(read)]
        tables = self.lexicon.encode(blocks, self.line, least=self.least)
        for each, table in zip(blocks, tables, strict=True):
            self.check_table(each, table)
        self.sequence += 1
        counts = count_words(blocks, tables, Calendar(WindowUnit.DAY))
        tokens = sum(each.n_tokens for each in blocks)
        self.line.push(Push(self.line.node, self.sequence, 0, counts=counts, tokens=tokens))

    def check_table(self, each: TokenBlock, table: np.ndarray) -> None:
        """An id that is handed out is this word's and no other's."""
        names = self.line.state.vocabulary.names(table[table >= 0])
        words = [word for word, row in zip(each.words, table.tolist(), strict=True) if row >= 0]
        # A word that was evicted and forgotten has no name any more; it never has another's.
        assert all(name in (word, "") for name, word in zip(names, words, strict=True))

    def check_order(self) -> None:
        ids = self.lexicon.ids
        assert (np.diff(ids) > 0).all()
        assert len(ids) == len(self.lexicon.counts)
        assert self.lexicon.places(ids).tolist() == list(range(len(ids)))

    def mirrored(self) -> dict[str, float]:
        """Word → count, by the mirror's own map."""
        lexicon = self.lexicon
        words = [f"말{i}" for i in range(12)]
        rows = [lexicon._ids.get(word, -1) for word in words]
        found = {word: row for word, row in zip(words, rows, strict=True) if row >= 0}
        assert len(found) == len(lexicon)
        places = lexicon.places(np.asarray(list(found.values()), dtype=np.int64))
        return dict(zip(found, np.round(lexicon.counts[places], 9).tolist(), strict=True))


happenings = st.lists(
    st.tuples(st.just("read"), st.integers(0, 1), st.lists(texts, min_size=1, max_size=2))
    | st.tuples(st.just("refresh"), st.integers(0, 1), st.booleans()),
    max_size=30,
)


@settings(max_examples=examples(150))
@given(happenings, st.integers(1, 3), st.sampled_from([3, 6, 100]))
def test_a_refreshed_mirror_is_the_servers_map_whatever_happened(
    happenings: list, min_count: int, max_words: int
) -> None:
    state = make_state(min_count=min_count, max_words=max_words)
    readers = [Reader(InProcess(state, f"n{i}")) for i in range(2)]
    for kind, which, what in happenings:
        reader = readers[which]
        if kind == "read":
            reader.read(*what)
        else:
            reader.lexicon.refresh(reader.line, whole=what)
            assert reader.mirrored() == reader.line.counts()
            assert reader.lexicon.ids.tolist() == state.vocabulary.alive().tolist()
        reader.check_order()
    for reader in readers:
        reader.lexicon.refresh(reader.line)
        assert reader.mirrored() == reader.line.counts()


def test_between_two_refreshes_counts_grow_by_what_this_node_reads() -> None:
    state = make_state()
    one, two = (Reader(InProcess(state, f"n{i}")) for i in range(2))
    one.read(["말0", "말1", "말0"], ["말0"])
    two.read(["말0"])
    one.read(["말1"])
    assert one.mirrored() == {"말0": 3.0, "말1": 2.0}
    one.lexicon.refresh(one.line)
    assert one.mirrored() == {"말0": 4.0, "말1": 2.0}


def test_ids_that_another_node_was_given_first_are_put_in_order() -> None:
    state = make_state()
    one, two = (Reader(InProcess(state, f"n{i}")) for i in range(2))
    two.read(["말5", "말6"])
    one.read(["말1", "말2"])
    assert one.lexicon.ids.tolist() == [2, 3]
    one.read(["말6", "말1", "말6", "말5", "말3"])
    assert one.lexicon.ids.tolist() == [0, 1, 2, 3, 4]
    assert one.mirrored() == {"말1": 2.0, "말2": 1.0, "말3": 1.0, "말5": 1.0, "말6": 2.0}


def test_words_of_several_blocks_are_offered_once_with_their_counts_added_up() -> None:
    state = make_state(min_count=3)
    reader = Reader(InProcess(state))
    offered: list[tuple[list[str], list[int]]] = []

    def admit(words: list[str], counts: np.ndarray, _: object) -> np.ndarray:
        offered.append((list(words), counts.tolist()))
        return state.words.admit(words, counts)

    reader.line.admit = admit
    read = [block(["말0", "말1"]), block(["말2", "말0", "말0"])]
    tables = reader.lexicon.encode(read, reader.line)
    assert offered == [(["말0", "말1", "말2"], [3, 1, 1])]
    assert [table.tolist() for table in tables] == [[0, -1], [-1, 0]]


def test_a_rare_word_is_offered_once_this_node_read_it_often_enough() -> None:
    state = make_state(min_count=4)
    reader = Reader(InProcess(state), least=2.0)
    asked: Counter[str] = Counter()
    admit = reader.line.admit

    def listening(words: list[str], counts: np.ndarray, _: object) -> np.ndarray:
        asked.update(words)
        return admit(words, counts)

    reader.line.admit = listening
    reader.read(["말0"])
    assert asked == {}
    reader.read(["말0"])
    assert asked == {"말0": 1}
    assert len(reader.lexicon) == 0, "the server has the last word"
    reader.read(["말0", "말0"])
    assert reader.mirrored() == {"말0": 2.0}
    reader.read(["말0"])
    assert asked == {"말0": 2}, "a word that has a row is not offered again"


def test_words_without_a_row_are_remembered_within_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_UNKNOWN_WORDS", 50)
    state = make_state(min_count=100)
    lexicon = NodeLexicon()
    line = InProcess(state)
    for at in range(40):
        lexicon.encode([block([f"드문{at}/{i}" for i in range(20)])], line, least=100.0)
        assert len(lexicon._heard) <= 50 + 20


def test_ids_of_evicted_words_are_told_from_known_ones() -> None:
    state = make_state(max_words=2)
    reader = Reader(InProcess(state))
    assert reader.lexicon.known(np.asarray([0, 5])).tolist() == [-1, -1]
    reader.read(["말0", "말1"])
    reader.read(["말1"])
    reader.read(["말2"])
    reader.lexicon.refresh(reader.line)
    alive = state.vocabulary.alive().tolist()
    asked = np.arange(state.vocabulary.next_id)
    expected = [id_ if id_ in alive else -1 for id_ in asked.tolist()]
    assert reader.lexicon.known(asked).tolist() == expected
    assert -1 in expected


def test_frequent_words_are_kept_less_often() -> None:
    reader = Reader(InProcess(make_state()))
    reader.read(["말0"] * 90 + ["말1"] * 10)
    ids = np.asarray([1, 0])
    assert reader.lexicon.keep(ids, 0.0).tolist() == [1.0, 1.0]
    rare, frequent = reader.lexicon.keep(ids, 0.01).tolist()
    # word2vec: (sqrt(f/t) + 1) · t/f
    assert frequent == pytest.approx((np.sqrt(90) + 1) / 90)
    assert rare == pytest.approx((np.sqrt(10) + 1) / 10)


def test_noise_follows_the_counts() -> None:
    reader = Reader(InProcess(make_state()))
    reader.read(["말0"] * 80 + ["말1"] * 20)
    model = ModelConfig().model_copy(update={"noise_exponent": 1.0})
    words = WordTables(reader.line, reader.lexicon, model, every=1, welcome=Welcome())
    drawn = np.bincount(words.some_noise(10_000, 1), minlength=2) / 10_000
    assert drawn == pytest.approx([0.8, 0.2], abs=0.02)


def test_a_word_heard_before_the_server_was_restarted_still_counts_towards_its_row():
    state = make_state(min_count=3)
    reader = Reader(InProcess(state), least=3.0)
    for _ in range(2):
        reader.read(["드문"])
    reader.lexicon.refresh(reader.line, whole=True)
    reader.read(["드문"])
    assert state.vocabulary.ids(["드문"]).tolist() == [0]
