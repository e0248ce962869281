"""Framing: what goes in comes out, and nothing malformed gets through."""

import contextlib
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.exchange.wire import MESSAGE_SCHEMA, SLOTS, Message, decode, encode, text_array
from embedding.kernel.errors import RefusedError

numbers = st.sampled_from(["f2", "f4", "f8", "i4", "i8"])


def roundtrip(message: Message) -> Message:
    batch, header = encode(message)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, MESSAGE_SCHEMA) as writer:
        writer.write_batch(batch)
    with pa.ipc.open_stream(sink.getvalue()) as reader:
        return decode(reader.read_next_batch(), pa.py_buffer(header))


@given(
    st.dictionaries(st.text(min_size=1), st.tuples(numbers, st.integers(0, 5), st.integers(0, 5))),
    st.lists(st.text(), max_size=20),
)
def test_messages_come_back_as_they_were(shapes, words):
    shapes = dict(list(shapes.items())[:10])
    rng = np.random.default_rng(0)
    arrays = {n: rng.integers(0, 9, size=(r, c)).astype(d) for n, (d, r, c) in shapes.items()}
    if any("\ud800" <= character <= "\udfff" for word in [*words, *shapes] for character in word):
        return
    message = roundtrip(Message({"op": "x", "한글": "값"}, arrays, {"words": text_array(words)}))
    assert message.header["한글"] == "값"
    assert message.text("words").to_pylist() == words
    for name, values in arrays.items():
        assert np.array_equal(message.arrays[name], values)
        assert message.arrays[name].dtype == values.dtype


def test_sliced_words_are_sent_alone():
    words = text_array(["가", "나", "다", "라"]).slice(1, 2)
    assert roundtrip(Message({}, {}, {"w": words})).text("w").to_pylist() == ["나", "다"]


def test_of_slots_that_no_part_names_nothing_is_read():
    batch, header = encode(Message({"op": "x"}, {"a": np.arange(3)}))
    null = pa.array([None], pa.large_binary())
    unread = batch.set_column(SLOTS - 1, MESSAGE_SCHEMA.field(SLOTS - 1), null)
    assert decode(unread, pa.py_buffer(header)).arrays["a"].tolist() == [0, 1, 2]
    read = batch.set_column(0, MESSAGE_SCHEMA.field(0), null)
    with pytest.raises(RefusedError, match="a slot is null"):
        decode(read, pa.py_buffer(header))


def many_words() -> list[str]:
    rng = np.random.default_rng(0)
    return ["".join(chr(0xAC00 + c) for c in rng.integers(0, 40, n)) for n in [*range(1, 9)] * 60]


def test_many_words_are_sent_short():
    words = text_array(many_words())
    batch, header = encode(Message({}, {}, {"w": words.slice(3, 400)}))
    assert json.loads(header)["parts"] == [["w", "zstr", [400]]]
    assert batch.nbytes < 0.6 * words.slice(3, 400).nbytes
    back = roundtrip(Message({}, {}, {"w": words.slice(3, 400)})).text("w")
    assert back.to_pylist() == words.to_pylist()[3:403]


@given(st.integers(0, 1), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3))
def test_damaged_words_are_refused_or_words(slot, changes):
    batch, header = encode(Message({}, {}, {"w": text_array(many_words())}))
    data = bytearray(batch.column(slot)[0].as_py())
    for at, byte in changes:
        data[at % len(data)] = byte
    damaged = batch.set_column(slot, f"slot{slot}", pa.array([bytes(data)], pa.large_binary()))
    with contextlib.suppress(RefusedError):
        assert len(decode(damaged, pa.py_buffer(header)).text("w")) == 480
    for part in (["w", "zstr", [479]], ["w", "zstr", [480, 1]], ["w", "zstr", [2**39]]):
        named = json.dumps({"parts": [part]}).encode()
        with pytest.raises(RefusedError, match="'w'"):
            decode(batch, pa.py_buffer(named))


def test_rows_are_not_copied_when_encoded():
    rows = np.ones((100, 8), dtype=np.float32)
    batch, header = encode(Message({}, {"rows": rows}))
    rows[0, 0] = 7.0
    assert decode(batch, pa.py_buffer(header)).arrays["rows"][0, 0] == 7.0


def test_too_many_parts_are_refused():
    with pytest.raises(RefusedError, match=f"at most {SLOTS}"):
        encode(Message({}, {str(i): np.zeros(1) for i in range(SLOTS + 1)}))


def good() -> tuple[pa.RecordBatch, dict]:
    batch, header = encode(Message({"op": "x"}, {"a": np.arange(4)}, {"w": text_array(["가"])}))
    return batch, json.loads(header)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"parts": 3}, "must be a list"),
        ({"parts": [["a"]]}, "name, dtype, shape"),
        ({"parts": [["a", "i8", [4]], ["a", "i8", [4]]]}, "different strings"),
        ({"parts": [["a", "object", [4]]]}, "unknown dtype"),
        ({"parts": [["a", "i8", [-4]]]}, "no valid shape"),
        ({"parts": [["a", "i8", [2**50]]]}, "no valid shape"),
        ({"parts": [["a", "i8", [True]]]}, "no valid shape"),
        ({"parts": [["a", "i8", [5]]]}, "needs 5 or more"),
        ({"parts": [["a", "i8", [3]]]}, "after the last number"),
        ({"parts": [["a", "f4", [5]]]}, "needs 20"),
        ({"parts": [["a", "str", [4]]]}, "wrong length"),
        ({"parts": [["a", "i8", [4]], ["w", "str", [2]]]}, "wrong length"),
        ({"parts": [[f"p{i}", "i8", [0]] for i in range(SLOTS + 1)]}, f"at most {SLOTS}"),
    ],
)
def test_a_wrong_header_is_refused(change, reason):
    batch, header = good()
    with pytest.raises(RefusedError, match=reason):
        decode(batch, pa.py_buffer(json.dumps({**header, **change}).encode()))


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b"1"])
def test_a_header_that_is_no_object_is_refused(raw):
    batch, _ = good()
    with pytest.raises(RefusedError):
        decode(batch, pa.py_buffer(raw))


def test_words_that_are_not_utf8_are_refused():
    slots = [pa.array([b""], pa.large_binary())] * SLOTS
    slots[0] = pa.array([np.array([0, 2], dtype=np.int32).tobytes()], pa.large_binary())
    slots[1] = pa.array([b"\xff\xff"], pa.large_binary())
    batch = pa.RecordBatch.from_arrays(slots, schema=MESSAGE_SCHEMA)
    with pytest.raises(RefusedError, match="UTF-8"):
        decode(batch, pa.py_buffer(json.dumps({"parts": [["w", "str", [1]]]}).encode()))


@pytest.mark.parametrize("offsets", [[0, 9], [-1, 1], [2, 1], [5, 5]])
def test_offsets_outside_the_bytes_are_refused(offsets):
    slots = [pa.array([b""], pa.large_binary())] * SLOTS
    slots[0] = pa.array([np.array(offsets, dtype=np.int32).tobytes()], pa.large_binary())
    slots[1] = pa.array([b"ab"], pa.large_binary())
    batch = pa.RecordBatch.from_arrays(slots, schema=MESSAGE_SCHEMA)
    with pytest.raises(RefusedError, match="outside"):
        decode(batch, pa.py_buffer(json.dumps({"parts": [["w", "str", [1]]]}).encode()))


def test_another_schema_or_row_count_is_refused():
    other = pa.record_batch({"x": pa.array([1])})
    empty = pa.RecordBatch.from_arrays(
        [pa.array([], pa.large_binary())] * SLOTS, schema=MESSAGE_SCHEMA
    )
    null = pa.RecordBatch.from_arrays(
        [pa.array([None], pa.large_binary())] * SLOTS, schema=MESSAGE_SCHEMA
    )
    for batch in (other, empty, null):
        with pytest.raises(RefusedError):
            decode(batch, pa.py_buffer(json.dumps({"parts": [["a", "u1", [0]]]}).encode()))


@given(st.binary(max_size=200), st.lists(st.binary(max_size=40), min_size=SLOTS, max_size=SLOTS))
def test_no_bytes_do_more_than_be_refused(header, slots):
    arrays = [pa.array([slot], pa.large_binary()) for slot in slots]
    batch = pa.RecordBatch.from_arrays(arrays, schema=MESSAGE_SCHEMA)
    with contextlib.suppress(RefusedError):
        decode(batch, pa.py_buffer(header))


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5) | st.floats(), st.lists))
def test_no_part_list_does_more_than_be_refused(parts):
    batch, _ = good()
    with contextlib.suppress(RefusedError):
        decode(batch, pa.py_buffer(json.dumps({"parts": parts}).encode()))


def test_parts_are_asked_for_by_kind():
    message = Message({"op": "pull"}, {"a": np.zeros(3)}, {})
    for ask in (
        lambda: message.array("b", "i8", 1),
        lambda: message.array("a", "i8", 1),
        lambda: message.array("a", "f8", 2),
        lambda: message.text("w"),
    ):
        with pytest.raises(RefusedError, match="message pull"):
            ask()


@pytest.mark.parametrize("offsets", [[0, 99], [-8, 4], [8, 4], [2**62, 2**62 + 1]])
def test_slots_with_offsets_outside_their_bytes_are_refused(offsets):
    ends = pa.py_buffer(np.array(offsets, dtype=np.int64))
    good_slot = pa.array([b"12345678"], pa.large_binary())
    # What a damaged message holds after transport: Arrow takes such buffers as they come.
    sink = pa.BufferOutputStream()
    batch = pa.RecordBatch.from_arrays([good_slot] * SLOTS, schema=MESSAGE_SCHEMA)
    with pa.ipc.new_stream(sink, MESSAGE_SCHEMA) as writer:
        writer.write_batch(batch)
    raw = bytearray(sink.getvalue().to_pybytes())
    good_ends = np.array([0, 8], dtype=np.int64).tobytes()
    at = raw.rindex(good_ends)
    raw[at : at + 16] = ends.to_pybytes()
    with pa.ipc.open_stream(pa.py_buffer(bytes(raw))) as reader:
        damaged = reader.read_next_batch()
    header = json.dumps({"parts": [[f"a{at}", "u1", [8]] for at in range(SLOTS)]})
    with pytest.raises(RefusedError, match="outside its bytes"):
        decode(damaged, pa.py_buffer(header.encode()))
