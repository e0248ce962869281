"""Pushes of several nodes as one message."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.exchange.payload import BlockCounts, ContextShift, ContextSums, CountGroup, RowDelta
from embedding.exchange.protocol import Push
from embedding.exchange.wire import Message, decode, encode
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import SourceProgress, Table
from yeoron_lab.aggregating.aggregator import add_up, decode_together, encode_together

DIM = 2
ROWS = st.dictionaries(st.integers(0, 9), st.integers(-9, 9), max_size=6)


def a_push(node: str, rows: dict[int, int], words: dict[str, int], *, half: bool = False) -> Push:
    ids = np.asarray(sorted(rows), dtype=np.int64)
    dtype = np.float16 if half else np.float32
    values = np.asarray([[rows[i]] * DIM for i in ids.tolist()], dtype=dtype)
    names = sorted(words)
    counts = BlockCounts(
        groups=(CountGroup("s", 0, len(names) + 1),) if names else (),
        ids=np.asarray([*(-1 for _ in names), *([3] if names else [])], dtype=np.int64),
        words=names,
        counts=np.asarray([*(words[n] for n in names), *([2] if names else [])], dtype=np.int64),
        documents=np.ones(len(names) + bool(names), dtype=np.int64),
    )
    return Push(
        node,
        sequence=4,
        clock=3,
        deltas=(RowDelta(Table.IN, ids, values.reshape(-1, DIM)),),
        counts=counts,
        progress=(SourceProgress("s", 1, 5, 1.5, 0, (0.25,)),),
        tokens=7,
        loss_sum=1.5,
        pairs=3,
        tokenizer_digest="d",
        offset="there",
        usage=tuple(used(part, len(rows)) for part in range(len(words))),
        shifts=tuple(shifted(n) for n in range(len(rows) % 3)),
    )


def shifted(n: int) -> ContextShift:
    """Contexts of n words, one more of each than of the one before."""
    sizes = np.arange(1, n + 1)
    m = int(sizes.sum())
    figures = np.arange(3 * m, dtype=np.float32).reshape(m, 3)
    return ContextShift(
        n - 60, np.arange(n) + 4, np.ones(n, np.float32) * n, sizes, np.arange(m), figures
    )


def used(part: int, value: float) -> ContextSums:
    """How one word was used."""
    sums = np.full((1, DIM), value, np.float16)
    return ContextSums(-60, "s", part, np.array([3]), sums, np.array([value], np.float32))


WORDS = st.dictionaries(st.text(min_size=1, max_size=4), st.integers(1, 9), max_size=3)


def sent(message: Message) -> Message:
    batch, header = encode(message)
    return decode(batch, pa.py_buffer(header))


@given(st.lists(st.tuples(ROWS, WORDS), min_size=1, max_size=4))
def test_what_comes_out_is_what_each_node_gave_and_the_sum_of_the_rows(
    given_: list[tuple[dict[int, int], dict[str, int]]],
) -> None:
    pushes = [a_push(f"n{i}", rows, words) for i, (rows, words) in enumerate(given_)]
    found, sessions = decode_together(sent(encode_together(pushes, range(len(pushes)))))
    assert sessions == list(range(len(pushes)))
    for before, after in zip(pushes, found, strict=True):
        for name in ("node", "sequence", "clock", "progress", "tokens", "loss_sum", "pairs"):
            assert getattr(after, name) == getattr(before, name)
        assert (after.tokenizer_digest, after.offset) == ("d", "there")
        assert after.counts.words.to_pylist() == before.counts.words
        assert after.counts.groups == before.counts.groups
        for name in ("ids", "counts", "documents"):
            assert getattr(after.counts, name).tolist() == getattr(before.counts, name).tolist()
        assert [one.window for one in after.shifts] == [one.window for one in before.shifts]
        for mine, back in zip(before.shifts, after.shifts, strict=True):
            for name in ("ids", "weights", "sizes", "contexts", "figures"):
                assert np.array_equal(getattr(back, name), getattr(mine, name))
        assert len(after.usage) == len(before.usage)
        for mine, back in zip(before.usage, after.usage, strict=True):
            assert (back.window, back.source, back.part) == (mine.window, mine.source, mine.part)
            for name in ("ids", "sums", "documents"):
                assert np.array_equal(getattr(back, name), getattr(mine, name))
    assert not any(push.deltas for push in found[1:])
    total: dict[int, int] = {}
    for rows, _ in given_:
        for row, value in rows.items():
            total[row] = total.get(row, 0) + value
    (delta,) = found[0].deltas
    assert delta.ids.tolist() == sorted(total)
    assert delta.values[:, 0].tolist() == [total[row] for row in sorted(total)]


def test_a_sum_travels_as_its_parts_did() -> None:
    half = a_push("a", {1: 1}, {}, half=True)
    single = a_push("b", {1: 2, 5: 1}, {})
    assert add_up([half, replace(half, node="c")])[0].values.dtype == np.float16
    (mixed,) = add_up([half, single])
    assert mixed.values.dtype == np.float32
    assert mixed.values.tolist() == [[3, 3], [1, 1]]
    assert add_up([replace(half, deltas=())]) == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pushes": []}, "pushes must be a list of 1 to 4,096"),
        ({"pushes": [1, 2]}, "a row of pushes must be"),
        ({"sessions": [1]}, "`sessions` must be a list of 2 numbers"),
        ({"sessions": [1, "x"]}, "sessions must be a whole number"),
    ],
)
def test_a_malformed_message_is_refused_with_what_is_wrong(
    change: dict[str, object], said: str
) -> None:
    good = encode_together([a_push("a", {1: 1}, {"w": 1}), a_push("b", {2: 1}, {})], [1, 1])
    with pytest.raises(RefusedError, match=said):
        decode_together(replace(good, header={**good.header, **change}))


@pytest.mark.parametrize("counted", [[3, 1, "", ""], [1, 1, "", ""], [2, 5, "", ""]])
def test_columns_of_another_length_than_the_pushes_say_are_refused(counted: list[object]) -> None:
    good = encode_together([a_push("a", {1: 1}, {"w": 1}), a_push("b", {2: 1}, {})], [1, 1])
    pushes = [list(row) for row in good.header["pushes"]]
    pushes[0][4] = [pushes[0][4][0], counted]
    with pytest.raises(RefusedError, match="er than its records say"):
        decode_together(replace(good, header={**good.header, "pushes": pushes}))


def test_a_node_gives_one_push() -> None:
    push = a_push("a", {1: 1}, {})
    with pytest.raises(RefusedError, match="a node is named twice"):
        decode_together(encode_together([push, push], [1, 1]))
