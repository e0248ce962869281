"""What a node says of the use of words when a window closes: the formula, and whose text it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from embedding.exchange.payload import (
    BUSIEST,
    TIMES,
    UNITS,
    ContextSums,
    Inherited,
    WindowUse,
)
from embedding.kernel.records import Calendar, TokenBlock, WindowUnit
from embedding.models.config import ModelConfig
from embedding.worker.usage.past import PastTexts, of_busiest
from embedding.worker.usage.usage import UsageReader

REPEATED = 6
FREQUENT = 0.001
LEAST_MENTIONS = 12

DIM, DAY = 6, 86_400.0
LETTERS = "abcdefghijklmnopqrstuvwxyz"
IDS = {name: 3 + 2 * at for at, name in enumerate(LETTERS)}


class Lexicon:
    """Words whose ids have gaps, counted by chance."""

    def __init__(self, without: str = "") -> None:
        self.known = {word: at for word, at in IDS.items() if word not in without}
        self.ids = np.array(sorted(IDS.values()), dtype=np.int64)
        self.counts = np.random.default_rng(5).integers(1, 900, len(self.ids)).astype(float)

    def places(self, ids: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.ids, ids)

    def rows(self, words: Sequence[str]) -> np.ndarray:
        return np.array([self.known.get(word, -1) for word in words], dtype=np.int64)

    def names(self, ids: np.ndarray) -> list[str]:
        return [LETTERS[(at - 3) // 2] for at in ids.tolist()]


def block(documents: list[str], day: int, source: str = "s", voices: list[int] | None = None):
    """Documents of sentences divided by `/`, of one-letter words."""
    texts = [[list(sentence) for sentence in text.split("/")] for text in documents]
    found = TokenBlock.build(
        source,
        texts,
        published=[day * DAY] * len(texts),
        keys=[f"{source}{day}{i}" for i in range(len(texts))],
    )
    if voices is not None:
        object.__setattr__(found, "voices", np.array(voices, dtype=np.int64))
    return found


@pytest.fixture(autouse=True)
def small_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of words is compared here, of those too that nobody would judge."""
    monkeypatch.setattr("embedding.worker.usage.usage.LEAST_MENTIONS", 1)


def reader(most: int = 10_000, windows: int = 6) -> UsageReader:
    return UsageReader(2, DIM, PastTexts(Calendar(WindowUnit.DAY), most, windows))


def rows(ids: np.ndarray) -> np.ndarray:
    drawn = np.random.default_rng(1).normal(size=(200, DIM)).astype(np.float32)
    return drawn[ids]


def keep(usage: UsageReader, one: TokenBlock, without: str = "") -> None:
    """without: words that have no row yet"""
    table = Lexicon(without).rows(one.words)
    usage.keep([one], [table])


def added(parts: tuple[ContextSums, ...], time: int, word: str) -> tuple[np.ndarray, float]:
    """Sum and documents of a word over all units of a time."""
    total, documents = np.zeros(DIM), 0.0
    for part in parts:
        at = np.flatnonzero(part.ids == IDS[word])
        if part.part // UNITS == time and len(at):
            total += part.sums[at[0]].astype(float)
            documents += float(part.documents[at[0]])
    return total, documents


def by_hand(documents: list[str], word: str) -> np.ndarray:
    """The formula of worker/usage/usage.py, with two words on each side."""
    lexicon = Lexicon()
    present = sorted({IDS[w] for text in documents for w in text if w in IDS})
    drawn = {at: rows(np.array([at]))[0].astype(float) for at in present}
    share = dict(zip(lexicon.ids.tolist(), lexicon.counts / lexicon.counts.sum(), strict=True))
    weight = {at: FREQUENT / (FREQUENT + share[at]) for at in present}
    units = {at: drawn[at] / np.linalg.norm(drawn[at]) for at in present}
    heavy = {at: share[at] * weight[at] for at in present}
    centre = sum(heavy[at] * units[at] for at in present) / sum(heavy.values())
    says = {at: weight[at] * (units[at] - centre) for at in present}
    total = np.zeros(DIM)
    for text in documents:
        tokens = [[IDS[w] for w in sentence] for sentence in text.split("/")]
        own = np.zeros(DIM)
        for sentence in tokens:
            for i, centre_word in enumerate(sentence):
                if centre_word == IDS[word]:
                    own += sum(
                        (3 - abs(i - j)) * says[sentence[j]]
                        for j in range(max(0, i - 2), min(len(sentence), i + 3))
                        if j != i
                    )
        if own.any():
            total += own / np.linalg.norm(own)
    return total


TEXTS = ["abca/dea", "bafg", "hai/jk", "akbl", "mnop"]


def test_the_sums_are_those_of_the_formula():
    usage = reader()
    keep(usage, block(TEXTS, 9))
    parts = usage.close(int(9 * DAY), Lexicon(), rows).sums
    total, documents = added(parts, 0, "a")
    assert documents == 4
    np.testing.assert_allclose(total, by_hand(TEXTS, "a"), atol=5e-3)


def test_what_a_dead_process_had_learnt_is_said_under_its_mark():
    usage = reader()
    keep(usage, block(TEXTS[:1], 8))
    keep(usage, replace(block(TEXTS[1:2], 8), incarnation="dead"))
    keep(usage, block(TEXTS[2:3], 9))
    keep(usage, replace(block(TEXTS[3:4], 9), incarnation="dead"))
    keep(usage, replace(block(TEXTS[3:4], 9), incarnation="of another"))
    inherited = (Inherited("dead", "s", 1),)
    parts = usage.close(int(9 * DAY), Lexicon(), rows, inherited).sums
    for incarnation, documents in (("", [1, 1, 2]), ("dead", [1, 1, 0])):
        own = tuple(part for part in parts if part.incarnation == incarnation)
        assert [added(own, time, "a")[1] for time in range(3)] == documents
    assert {part.incarnation for part in parts} == {"", "dead"}


def test_times_lie_apart():
    usage = reader()
    for day in (5, 6, 7, 8, 9):
        keep(usage, block([f"ab{letter}{LETTERS[day]}" for letter in "klmno"], day))
    parts = usage.close(int(8 * DAY), Lexicon(), rows).sums
    assert [added(parts, time, "a")[1] for time in range(TIMES)] == [5, 5, 5, 10, 0]
    assert {part.window for part in parts} == {int(8 * DAY)}


def test_words_that_are_remembered_seldom_are_not_sent(monkeypatch):
    monkeypatch.setattr("embedding.worker.usage.usage.LEAST_MENTIONS", LEAST_MENTIONS)
    usage = reader()
    keep(usage, block([f"cd/{letter}" for letter in LETTERS[4:][: LEAST_MENTIONS - 1]], 8))
    keep(usage, block(["ab", "cd"], 9))
    parts = usage.close(int(9 * DAY), Lexicon(), rows).sums
    assert {int(at) for part in parts for at in part.ids} == {IDS["c"], IDS["d"]}


def test_words_that_got_their_row_later_are_used_as_if_they_had_it_from_the_start():
    """Also where a window was closed meanwhile, and where one of them never gets a row."""
    texts = {8: ["abc", "cab", "xab"], 9: ["bca", "axb", "cyx"]}
    whole, late = reader(), reader()
    for day, documents in texts.items():
        keep(whole, block(documents, day), without="y")
        keep(late, block(documents, day), without="abxy" if day == 8 else "by")
        if day == 8:
            late.close(int(8 * DAY), Lexicon("abxy"), rows)
    for usage, without in ((late, "xby"), (late, "y")):
        usage.past.find_late_words(Lexicon(without).rows)

    def same(without: str) -> None:
        parts = [usage.close(int(9 * DAY), Lexicon(without), rows).sums for usage in (whole, late)]
        for word in "abcx":
            for time in (1, 2):
                (sums, n), (own, m) = (added(each, time, word) for each in parts)
                assert n == m
                assert np.array_equal(sums, own), (word, time)

    same("y")
    assert len(late.past._late) == 1, "y waits; those that have got their row do not"


def test_one_author_is_in_one_unit():
    usage = reader()
    keep(usage, block([f"a{letter}" for letter in LETTERS[1:]], 9, voices=[77] * 25))
    parts = usage.close(int(9 * DAY), Lexicon(), rows).sums
    holding = [part for part in parts if IDS["a"] in part.ids and part.part < UNITS]
    assert len(holding) == 1
    assert float(holding[0].documents[holding[0].ids == IDS["a"]][0]) == 25


def test_what_the_busiest_authors_wrote_in_the_window_is_sent_once_more():
    usage = reader()
    texts = [f"a{one}{other}" for one in LETTERS[1:14] for other in LETTERS[14:]]
    before = [text[0] + text[:0:-1] for text in texts]
    keep(usage, block(before, 8, voices=[3] * len(before)))
    voices = [*[77] * 9, *[78] * 7, *[-5] * 20, *range(100, 100 + len(texts) - 36)]
    keep(usage, block(texts, 9, voices=voices))
    parts = usage.close(int(9 * DAY), Lexicon(), rows).sums
    assert len(set(voices)) - 1 == 122, "two make one in a hundred; who is not known is none"
    theirs, documents = added(parts, BUSIEST, "a")
    assert documents == 16
    assert added(parts, 1, "a")[1] == len(texts)
    assert np.linalg.norm(theirs) > 0


def test_where_nobody_writes_twice_nobody_is_busiest():
    numbers = np.arange(5)
    assert not of_busiest(np.array([4, 5, 6, -1, -1]), numbers, 0.5).any()
    assert of_busiest(np.array([4, 5, 4, -1, -1]), numbers, 0.01).tolist() == [
        True,
        False,
        True,
    ] + 2 * [False]
    assert not of_busiest(np.empty(0, np.int64), np.empty(0, np.int64), 0.01).any()


def test_who_is_busiest_does_not_hang_on_how_authors_are_called():
    """A crawl draws other names for them at each start."""
    dice = np.random.default_rng(3)
    authors, numbers = dice.integers(0, 12, 40), dice.permutation(40)
    found = {tuple(of_busiest(dice.permutation(12)[authors], numbers, 0.2)) for _ in range(20)}
    assert len(found) == 1
    assert 0 < sum(found.pop()) < 40


def test_documents_are_spread_over_units():
    usage = reader()
    keep(usage, block([f"a{one}{other}" for one in LETTERS[1:14] for other in LETTERS[14:]], 9))
    parts = usage.close(int(9 * DAY), Lexicon(), rows).sums
    holding = [part.part for part in parts if IDS["a"] in part.ids]
    assert sorted(holding) == list(range(2 * UNITS)), "by rows of the model, and by counts"


def test_a_passage_that_many_documents_hold_counts_once():
    usage = reader()
    passage = LETTERS[:REPEATED]
    texts = [f"{letter}{passage}" for letter in LETTERS[REPEATED:]]
    keep(usage, block([*texts, "zb", "yb", "xb"], 9))
    parts = usage.close(int(9 * DAY), Lexicon(), rows).sums
    assert added(parts, 0, "b")[1] == 4


def test_which_document_keeps_a_passage_does_not_depend_on_its_time():
    kept = {1: 0.0, 2: 0.0}
    for day in range(2, 42):
        usage = reader()
        for back in (1, 0):
            passages = [f"ab{one}{other}" for one in LETTERS[2:8] for other in LETTERS[8:20]]
            keep(usage, block(passages, day - back))
        parts = usage.close(int(day * DAY), Lexicon(), rows).sums
        for time in kept:
            kept[time] += added(parts, time, "a")[1]
    assert sum(kept.values()) == 40 * 72
    assert abs(kept[1] - kept[2]) < 4 * (40 * 72) ** 0.5


def test_passages_that_differ_in_their_last_word_are_all_known_again():
    usage = reader()
    keep(usage, block([f"ab{letter}" for letter in LETTERS[2:]] * 4, 9))
    parts = usage.close(int(9 * DAY), Lexicon(), rows).sums
    assert added(parts, 0, "a")[1] == len(LETTERS[2:])


def test_a_short_sentence_that_many_documents_hold_counts_once():
    usage = reader()
    keep(usage, block([f"{letter}f/abcd" for letter in "uvwxyz"] + ["ag/ae/ah"], 9))
    parts = usage.close(int(9 * DAY), Lexicon(), rows).sums
    assert added(parts, 0, "b")[1] == 1
    assert added(parts, 0, "f")[1] == 6, "two words are said by chance"


def test_a_document_that_is_copied_counts_once_however_short_its_sentences_are():
    usage = reader()
    keep(usage, block(["ab/cd"] * 200 + ["ab/ce", "ab/de", "bc/de", "ae/be/bd"], 9))
    parts = usage.close(int(9 * DAY), Lexicon(), rows).sums
    assert added(parts, 0, "b")[1] == 5


def test_a_million_copies_of_one_document_say_no_more_than_one():
    usage = reader(most=10**6)
    for _ in range(20):
        keep(usage, block(["abcdefgh"] * 500, 9))
    parts = usage.close(int(9 * DAY), Lexicon(), rows).sums
    assert added(parts, 0, "b")[1] == 1


def test_a_window_without_text_says_nothing():
    usage = reader()
    keep(usage, block(["abc"] * 9, 8))
    assert usage.close(int(9 * DAY), Lexicon(), rows) == WindowUse(int(9 * DAY))


def test_unknown_words_and_words_that_are_gone_say_nothing():
    usage = reader()
    keep(usage, block(["가나다"] * 9, 9))
    assert usage.close(int(9 * DAY), Lexicon(), rows) == WindowUse(int(9 * DAY))


@pytest.mark.parametrize("late", [False, True])
def test_a_window_that_is_read_while_it_is_learnt_again_says_the_same(late: bool):
    """What comes late is read, too."""
    plain, begun = reader(), reader()
    for usage in (plain, begun):
        keep(usage, block(TEXTS, 8))
        keep(usage, block(["abc", "dea", "kab"], 9))
    begun.begin(int(9 * DAY), Lexicon())
    begun.begin(int(9 * DAY), Lexicon())
    if late:
        for usage in (plain, begun):
            keep(usage, block(["cab", "aeh"], 9, "t"))
    first, second = (usage.close(int(9 * DAY), Lexicon(), rows) for usage in (plain, begun))
    assert {part.part // UNITS for part in first.sums} == {0, 1, 2}
    assert {part.source for part in first.sums} == ({"s", "t"} if late else {"s"})
    for one, other in zip(first.sums, second.sums, strict=True):
        assert (one.source, one.part) == (other.source, other.part)
        assert np.array_equal(one.ids, other.ids)
        assert np.array_equal(one.sums, other.sums)


def test_what_is_remembered_is_bounded():
    past = PastTexts(Calendar(WindowUnit.DAY), 40, 2)
    usage = UsageReader(2, DIM, past)
    for day in range(1, 9):
        keep(usage, block(["abcdef"] * 3, day))
    assert past.tokens <= 40
    assert past.before(int(8 * DAY)) == [int(7 * DAY)]


@pytest.mark.parametrize("model", ["sgns", "cbow", "fasttext"])
def test_only_words_with_rows_of_their_own_are_read(model: str):
    config = ModelConfig(model=model)
    past = PastTexts(Calendar(WindowUnit.DAY), 40, 2)
    assert (UsageReader.of(config, True, past) is None) == (model == "fasttext")
    assert UsageReader.of(config, False, past) is None
    assert UsageReader.of(config, True, None) is None
