"""Records as messages: exact round trips, and refusals that name what is wrong."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.exchange import codec
from embedding.exchange.payload import BlockCounts, ContextSums, CountGroup, RowDelta
from embedding.exchange.protocol import PullRequest, Push, VocabularyDelta
from embedding.exchange.wire import Message, decode, encode
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Phrase, ScorePairs, SourceProgress, Table


def sent(message: Message) -> Message:
    batch, header = encode(message)
    return decode(batch, pa.py_buffer(header))


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def a_push(**changes) -> Push:
    push = Push(
        node="n0",
        sequence=3,
        clock=2,
        deltas=(
            RowDelta(Table.IN, ints(4, 1), np.ones((2, 3), dtype=np.float32)),
            RowDelta(Table.OUT, ints(0), np.zeros((1, 3), dtype=np.float32)),
        ),
        counts=BlockCounts(
            (CountGroup("뉴스", 0, 2), CountGroup("글판", -60, 3)),
            ints(7, -1, -1),
            ["말", "글"],
            ints(5, 3, 1),
            ints(2, 1, 1),
        ),
        progress=(SourceProgress("뉴스", 2, 7, 12.5, 0, (0.5, 1.5)),),
        tokens=7,
        loss_sum=1.25,
        pairs=9,
        tokenizer_digest="d",
    )
    return replace(push, **changes)


def read(message: Message) -> Push:
    """The push in a message, its arrays looked at."""
    push = codec.from_message(Push, message)
    codec.check(push, "push")
    return push


def test_documents_authors_and_voices_come_back_and_a_node_may_know_none():
    sent_counts = counts(documents=ints(4, 2, 1), authors=ints(1, 0, 1), voices=ints(3, 2, 1))
    message = sent(codec.to_message(sent_counts))
    back = codec.from_message(Push, message).counts
    assert [column.tolist() for column in back.columns] == [
        [5, 3, 1],
        [4, 2, 1],
        [1, 0, 1],
        [3, 2, 1],
    ]
    back = read(sent(codec.to_message(counts(documents=ints(4, 2, 1))))).counts
    assert [column.tolist() for column in back.columns[1:]] == [[4, 2, 1], [0, 0, 0], [4, 2, 1]]
    for wrong in (ints(1, 1), np.arange(99)):
        with pytest.raises(RefusedError, match="er than its records say"):
            read(replace(message, arrays={**message.arrays, "counts.i8": wrong}))


def use(part: int, *ids: int, source: str = "뉴스") -> ContextSums:
    n = len(ids)
    sums = np.full((n, 3), part + 0.5, dtype=np.float16)
    return ContextSums(-60, source, part, ints(*ids), sums, np.full(n, part + 1, np.float32))


def test_the_use_of_words_comes_back_as_it_was():
    parts = (use(0, 9, 4), use(3), use(1, 2, source="글판"))
    back = codec.from_message(Push, sent(codec.to_message(a_push(usage=parts)))).usage
    for one, other in zip(parts, back, strict=True):
        assert (one.window, one.source, one.part) == (other.window, other.source, other.part)
        for name in ("ids", "sums", "documents"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
    assert codec.from_message(Push, sent(codec.to_message(a_push()))).usage == ()


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([[0, "뉴스", 1, "", [5, 3, "f2"]]], "shorter than its records say"),
        (
            [[0, "뉴스", 1, "", [0, 3, "f2"]], [0, "뉴스", 1, "", [1, 2, "f2"]]],
            "longer than its records say",
        ),
        ([[0, "뉴스", 1, "", [1, 3, "f4"]]], "'usage.f4' is shorter"),
        ([[0, "뉴스", 1, "", [1, 3, "u1"]]], "u1; f4 or f2 is accepted"),
        ([[0, "뉴스", 1, "", [1, 3]]], "lengths n, dim and 1 types"),
        ([[0, "뉴스", -1, "", [1, 3, "f2"]]], "usage.part must be a whole number from 0 to"),
        ([[0, "뉴스", 80, "", [1, 3, "f2"]]], "usage.part must be a whole number from 0 to"),
        ([[0, "뉴스", 1, "", [-1, 3, "f2"]]], "lengths of usage. must be whole"),
        ([[0.5, "뉴스", 1, "", [1, 3, "f2"]]], "usage.window must be a whole number"),
        ([[0, 7, 1, "", [1, 3, "f2"]]], "usage.source must be a string"),
        ([[True, "뉴스", 1, "", [1, 3, "f2"]]], "usage.window must be a whole number"),
        (["뉴스"], "must be"),
        ("뉴스", "must be a list"),
        ([[0, "뉴스", 1, "", [0, 3, "f2"]]] * 50_001, "a list of 0 to 50,000"),
    ],
)
def test_a_use_of_words_that_makes_no_sense_is_refused(rows, reason):
    message = sent(codec.to_message(a_push(usage=(use(0, 9),))))
    with pytest.raises(RefusedError, match=reason):
        read(replace(message, header={**message.header, "usage": rows}))
    bare = sent(codec.to_message(a_push()))
    header = {**bare.header, "usage": [[0, "뉴스", 1, "", [2, 3, "f2"]]]}
    with pytest.raises(RefusedError, match=r"'usage\.i8' is missing"):
        codec.from_message(Push, replace(bare, header=header))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_push_comes_back_as_it_was(dtype):
    deltas = tuple(replace(d, values=d.values.astype(dtype)) for d in a_push().deltas)
    push = a_push(deltas=deltas)
    back = codec.from_message(Push, sent(codec.to_message(push)))
    for name in ("node", "sequence", "clock", "progress", "tokens", "loss_sum", "pairs"):
        assert getattr(back, name) == getattr(push, name)
    for one, other in zip(back.deltas, push.deltas, strict=True):
        assert one.table == other.table
        assert np.array_equal(one.ids, other.ids)
        assert one.values.dtype == dtype
        assert np.array_equal(one.values, other.values)
    assert same_counts(back.counts, push.counts)


def same_counts(back: BlockCounts, counts: BlockCounts) -> bool:
    assert back.words.to_pylist() == list(counts.words)
    assert back.groups == counts.groups
    columns = ("ids", "counts", "documents")
    return all(np.array_equal(getattr(back, n), getattr(counts, n)) for n in columns)


word_counts = st.lists(
    st.tuples(
        st.text(max_size=3),
        st.integers(-(2**39), 2**39),
        st.lists(
            st.tuples(
                st.integers(0, 2**40) | st.text(st.characters(exclude_categories=["Cs"])),
                st.integers(1, 2**40),
            )
        ),
    ),
    max_size=5,
)


@given(word_counts)
def test_counts_come_back_whichever_words_have_a_row(rows):
    groups, ids, words, counts = [], [], [], []
    for source, window, read in rows:
        for word, count in read:
            ids.append(word if isinstance(word, int) else -1)
            words.extend([word] if isinstance(word, str) else [])
            counts.append(count)
        groups.append(CountGroup(source, window, len(ids)))
    push = a_push(
        counts=BlockCounts(tuple(groups), ints(*ids), words, ints(*counts), ints(*counts))
    )
    assert same_counts(codec.from_message(Push, sent(codec.to_message(push))).counts, push.counts)


def test_phrases_come_back():
    phrases = (Phrase("우한폐렴", ("우한", "폐렴"), 5.0, 7.5, 3),)
    assert (
        codec.from_message(Push, sent(codec.to_message(a_push(phrases=phrases)))).phrases == phrases
    )
    assert "phrases" not in codec.to_message(a_push()).header


@pytest.mark.parametrize("rows", [5, [["말글", ["말", "글"], 0.0, 0.0]], ["말글"]])
def test_what_are_no_phrases_is_refused(rows):
    message = codec.to_message(a_push())
    with pytest.raises(RefusedError, match="phrase"):
        codec.from_message(Push, replace(message, header={**message.header, "phrases": rows}))


def test_an_empty_push_comes_back():
    back = codec.from_message(Push, sent(codec.to_message(Push("n", 1, 0))))
    assert back.deltas == ()
    assert len(back.counts.words) == 0
    assert back.counts.groups == ()


def counts(**changes) -> Push:
    return a_push(counts=replace(a_push().counts, **changes))


@pytest.mark.parametrize(
    ("push", "reason"),
    [
        (a_push(sequence=0), "sequence"),
        (a_push(clock=-1), "clock"),
        (a_push(tokens=-1), "tokens"),
        (a_push(loss_sum=float("inf")), "Infinity is no JSON"),
        (a_push(node="n" * 5000), "node"),
        (counts(counts=ints(3)), "differ in length"),
        (counts(groups=(CountGroup("뉴스", 0, 2),)), "groups do not end"),
        (counts(groups=(CountGroup("뉴스", 0, 4),)), "groups do not end"),
        (counts(groups=(CountGroup("a", 0, 3), CountGroup("b", 0, 2))), "groups do not end"),
        (counts(groups=(CountGroup("a", 0, 4), CountGroup("b", 0, 3))), "groups do not end"),
        (counts(groups=(CountGroup("a", 0, -1), CountGroup("b", 0, 3))), "stop must be a whole"),
        (counts(groups=(CountGroup(7, 0, 3),)), "counts.groups.source must be a string"),
        (counts(groups=(CountGroup("a", 0.5, 3),)), "must be a whole number"),
        (counts(groups=(CountGroup("a", 2**41, 3),)), "must be a whole number"),
        (counts(words=["말"]), "or -1 and its name"),
        (counts(words=["말", "글", "집"]), "or -1 and its name"),
        (counts(ids=ints(-2, -1, -1), words=["말", "글", "집"]), "at least -1"),
        (counts(counts=ints(5, 0, 1), documents=ints(0, 0, 0)), "at least 1"),
        (counts(documents=ints(2, -1, 1)), "at least 0"),
        (counts(documents=ints(2, 4, 1)), "documents is somewhere more than counts"),
        (counts(authors=ints(3, 1, 1)), "more authors than voices"),
        (counts(voices=ints(-1, 1, 1)), "at least 0"),
        (counts(voices=ints(3, 1, 1)), "voices is somewhere more than documents"),
        (a_push(progress=(SourceProgress("s", -1, 0, 0.0, 0),)), "a whole number from 0"),
        (a_push(progress=(SourceProgress("s", 1, 0, float("nan"), 0),)), "NaN is no JSON"),
        (
            a_push(progress=(SourceProgress("s", 1, 0, 0.0, 0, (float("inf"),)),)),
            "Infinity is no JSON",
        ),
        (a_push(progress=(SourceProgress("s", 1.5, 0, 0.0, 0),)), "a whole number from 0"),
        (a_push(phrases=(Phrase("말", ("말",), 0.0, 0.0, 0),)), "a list of 2 to 16"),
        (a_push(phrases=(Phrase("말", ("말", ""), 0.0, 0.0, 0),)), "1 to 1,000 characters"),
        (a_push(phrases=(Phrase("말글", ("말", "글"), None, 0.0, 0),)), "a finite number"),
        (a_push(phrases=(Phrase("말글", ("말", "글"), 0.0, 0.0, -1),)), "whole number"),
        (a_push(phrases=(Phrase("말글", ("말", "글"), 0.0, 0.0, 1.5),)), "whole number"),
    ],
)
def test_a_malformed_push_is_refused(push, reason):
    with pytest.raises(RefusedError, match=reason):
        read(sent(codec.to_message(push)))


def test_rows_of_another_precision_are_refused():
    delta = RowDelta(Table.IN, ints(1), np.ones((1, 3)))
    with pytest.raises(RefusedError, match="f4 or f2 with 2 is accepted"):
        codec.from_message(Push, sent(codec.to_message(a_push(deltas=(delta,)))))


def test_half_a_delta_is_refused():
    message = codec.to_message(a_push())
    arrays = {name: part for name, part in message.arrays.items() if name != "in.f4"}
    with pytest.raises(RefusedError, match=r"in\.f4"):
        codec.from_message(Push, Message(message.header, arrays, message.texts))


def test_a_pull_comes_back_with_its_pairs():
    pairs = ScorePairs("뉴스", ints(1), ints(2), np.array([[3, 4]], dtype=np.int64), ints(86_400))
    rows = np.arange(4, dtype=np.int64).reshape(2, 2)
    more = ScorePairs("글판", ints(7, 8), ints(9, 9), rows, ints(0, -86_400))
    found = codec.from_message(
        PullRequest,
        sent(
            codec.to_message(
                PullRequest({Table.IN: ints(5, 6), Table.OUT: ints()}, 7, [pairs, more, pairs])
            )
        ),
    )
    assert found.ids[Table.IN].tolist() == [5, 6]
    assert found.ids[Table.OUT].tolist() == []
    assert found.clock == 7
    assert [each.source for each in found.score] == ["뉴스", "글판", "뉴스"]
    for one, other in zip(found.score, (pairs, more, pairs), strict=True):
        for name in ("centres", "contexts", "negatives", "windows"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
    assert codec.from_message(PullRequest, sent(codec.to_message(PullRequest({}, 0)))).score == ()


def test_pairs_of_unequal_length_are_refused():
    pairs = ScorePairs("s", ints(1, 2), ints(2), np.array([[3, 4]], dtype=np.int64), ints(0))
    with pytest.raises(RefusedError, match="differ in length"):
        codec.from_message(PullRequest, sent(codec.to_message(PullRequest({}, 0, [pairs]))))


def test_a_vocabulary_comes_back():
    counts = np.array([0.5, 8.25])
    delta = VocabularyDelta(9, ["말"], ints(3), ints(8), ints(1), ints(2, 3), counts)
    back = codec.from_message(VocabularyDelta, sent(codec.to_message(delta)))
    assert (back.alive.tolist(), back.alive_counts.tolist()) == ([2, 3], [0.5, 8.25])
    assert (back.version, list(back.words), back.ids.tolist()) == (9, ["말"], [3])
    assert (back.counts.tolist(), back.evicted.tolist()) == ([8], [1])
