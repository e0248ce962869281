"""Messages of any header and any parts: decoded, or refused in a sentence; nothing else happens."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.exchange import codec
from embedding.exchange.payload import (
    BlockCounts,
    ContextShift,
    ContextSums,
    CountGroup,
    RowDelta,
    WordContexts,
)
from embedding.exchange.protocol import PullRequest, Push
from embedding.exchange.wire import Message, decode, encode
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import ScorePairs, SourceProgress, Table
from generated import examples

DIM = 3


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


PUSH = codec.to_message(
    Push(
        node="n",
        sequence=1,
        clock=0,
        deltas=tuple(
            RowDelta(table, ints(0, 1), np.ones((2, DIM), dtype=np.float32))
            for table in (Table.IN, Table.OUT)
        ),
        counts=BlockCounts(
            (CountGroup("s", 0, 2),), ints(0, -1), pa.array(["새말"]), ints(2, 1), ints(1, 1)
        ),
        progress=(SourceProgress("s", 1, 3, 0.0, 0, (1.0,)),),
        tokens=3,
        rare=WordContexts(
            ints(0, 1), ints(3, 9), ints(1, 2), ints(1, 0, 1), np.ones(3, np.float32)
        ),
        usage=(
            ContextSums(
                0, "뉴스", 1, ints(0), np.ones((1, DIM), np.float32), np.ones(1, np.float32)
            ),
        ),
        shifts=(
            ContextShift(
                0, ints(1), np.ones(1, np.float32), ints(2), ints(0, 1), np.ones((2, 3), np.float32)
            ),
        ),
    )
)
PULL = codec.to_message(
    PullRequest(
        {Table.IN: ints(0, 1), Table.OUT: ints(1)},
        0,
        [
            ScorePairs("s", ints(0), ints(1), ints(0, 1).reshape(1, 2), ints(0)),
            ScorePairs(
                "t", ints(0, 1), ints(1, 0), ints(0, 1, 1, 0).reshape(2, 2), ints(0, 86_400)
            ),
        ],
    )
)

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["in", "out", "sub", "threshold", "onebit", "topk", "s"]),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)
arrays = st.builds(
    lambda dtype, shape, seed, scale: (
        np.random.default_rng(seed).normal(size=shape) * scale
    ).astype(dtype),
    st.sampled_from(["f2", "f4", "f8", "i4", "i8", "u1"]),
    st.sampled_from([(0,), (1,), (2,), (7,), (0, 3), (1, 3), (2, 3), (2, 2), (3, 0)]),
    st.integers(0, 9),
    st.sampled_from([0.0, 1.0, 5.0]),
)
texts = st.lists(st.text(max_size=3), max_size=3).map(lambda words: pa.array(words, pa.string()))


def changed(message: Message, data: st.DataObject) -> Message:
    """The message with some of its keys and parts exchanged, left out or added."""
    header, parts, words = dict(message.header), dict(message.arrays), dict(message.texts)
    for held, drawn, more in (
        (header, values, ["packed", "offset", "entries", "busy_s", "at", "keeps", "ids", "score"]),
        (
            parts,
            arrays,
            ["in.u1", "sub.i8", "sub.f4", "rare.i8", "usage.f2", "ids.sub.i8"],
        ),
        (words, texts, ["counts.words"]),
    ):
        names = st.sampled_from([*held, *more])
        for name in data.draw(st.lists(names, max_size=2)):
            if data.draw(st.booleans()) and name in held:
                del held[name]
            else:
                held[name] = data.draw(drawn)
    return Message(header, parts, words)


def test_all_that_a_push_brings_fits_one_message():
    batch, header = encode(PUSH)
    found = codec.from_message(Push, decode(batch, pa.py_buffer(header)))
    assert len(found.deltas) == 2
    assert len(found.usage) == 1
    (shift,) = found.shifts
    assert (shift.sizes.tolist(), shift.contexts.tolist()) == ([2], [0, 1])
    rare = found.rare
    assert rare is not None
    assert (rare.ids.tolist(), rare.mentions.tolist()) == ([0, 1], [3, 9])
    assert (rare.sizes.tolist(), rare.contexts.tolist()) == ([1, 2], [1, 0, 1])


@settings(max_examples=examples(200))
@given(st.sampled_from([PUSH, PULL]), st.data())
@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_any_message_is_read_or_refused_in_a_sentence(message, data):
    bad = changed(message, data)
    for record in (Push, PullRequest):
        reason = refusal(record, bad)
        assert reason is None or (reason.endswith(".") and "\n" not in reason)


def refusal(record, message: Message) -> str | None:
    """Why a message was refused; None when it was read."""
    try:
        codec.check(codec.from_message(record, message), "message", dim=DIM)
    except RefusedError as error:
        return str(error)
    return None


@settings(max_examples=examples(100))
@given(st.sampled_from([PUSH, PULL]), st.data())
@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_what_is_sent_arrives_or_is_refused(message, data):
    """Whatever a header says, its parts come out as they went in, or not at all."""
    bad = changed(message, data)
    try:
        batch, header = encode(bad)
        found = decode(batch, pa.py_buffer(header))
    except (RefusedError, UnicodeEncodeError):
        return
    assert found.arrays.keys() == bad.arrays.keys()
    for name, array in bad.arrays.items():
        assert np.array_equal(found.arrays[name], array, equal_nan=array.dtype.kind == "f")
    assert {k: v.to_pylist() for k, v in found.texts.items()} == {
        k: v.to_pylist() for k, v in bad.texts.items()
    }
