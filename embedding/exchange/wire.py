"""Framing: one message is one Arrow record batch of one row, with a JSON header as metadata.

The schema never changes during a stream, so that one long-lived `do_exchange` carries every kind
of message: SLOTS columns of large_binary, each holding one array as it lies in memory. The header
names the arrays (`parts`), with dtype and shape. Whole numbers of 64 bits (ids, counts) are written
in few bytes (`_varints`; `z8`: coded by zstd, where that makes them fewer); no other array is
copied on either side apart from what gRPC itself copies, and nothing is ever unpickled.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from embedding.exchange.payload import ByteArray
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import IntArray
from embedding.models.jit import kernel

SLOTS = 18
MESSAGE_SCHEMA = pa.schema([pa.field(f"slot{i}", pa.large_binary()) for i in range(SLOTS)])
COMMAND = b"yeoron.exchange"
MAX_HEADER_BYTES = 4 * 1024 * 1024

DTYPES: dict[str, np.dtype[Any]] = {
    "f2": np.dtype("<f2"),
    "f4": np.dtype("<f4"),
    "f8": np.dtype("<f8"),
    "i4": np.dtype("<i4"),
    "i8": np.dtype("<i8"),
    "u1": np.dtype("u1"),
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_TEXT, _SHORT_TEXT, _SQUEEZED = "str", "zstr", "z8"
_TEXTS = (_TEXT, _SHORT_TEXT)
_MANY = 1 << 15
"""Bytes of numbers from which zstd is tried: ids of a few thousand rows are a hundredth of them."""
_MOST_BYTES = 10
"""Bytes that one number takes at most."""
_MOST_GROWTH, _FREE = 200, 1 << 20
"""Bytes that one byte may stand for, and that any part may be: few bytes must not claim much."""
_WORTH = 128
_LENGTH = np.dtype("<u4")
_REASONS = {
    1: "the bytes end within a number",
    2: "a number has more than 64 bits",
    3: "there are bytes after the last number",
}
_SEVEN: Any = np.uint64(7)
_ONE: Any = np.uint64(1)
_LOW: Any = np.uint64(127)

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Message:
    """A header (JSON-safe) and named parts: numeric arrays or string arrays (pyarrow)."""

    header: Mapping[str, Any]
    arrays: Mapping[str, Array] = field(default_factory=dict)
    texts: Mapping[str, pa.Array] = field(default_factory=dict)

    def array(self, name: str, dtypes: str, ndim: int) -> Array:
        """The numeric part `name`; RefusedError when it is missing or of another kind.

        dtypes: the accepted ones, with blanks between them
        """
        values = self.arrays.get(name)
        if values is None:
            raise RefusedError(f"message {self.kind}: part {name!r} is missing.")
        if _NAMES[values.dtype] not in dtypes.split() or values.ndim != ndim:
            accepted = " or ".join(str(DTYPES[each]) for each in dtypes.split())
            raise RefusedError(
                f"message {self.kind}: part {name!r} is {values.dtype} with {values.ndim} "
                f"dimensions; {accepted} with {ndim} is accepted."
            )
        return values

    def text(self, name: str) -> pa.Array:
        """The string part `name`; RefusedError when it is missing."""
        words = self.texts.get(name)
        if words is None:
            raise RefusedError(f"message {self.kind}: part {name!r} is missing.")
        return words

    @property
    def kind(self) -> str:
        """What the message is: `pull`, `push`, …"""
        return str(self.header.get("op", self.header.get("status", "?")))


def kind_of(values: Array) -> str:
    """What an array's type is called in a message; "" where it does not travel."""
    return _NAMES.get(values.dtype, "")


def text_array(words: Sequence[str] | pa.Array) -> pa.Array:
    """Words as an Arrow string array."""
    return words if isinstance(words, pa.Array) else pa.array(words, pa.string())


def encode(message: Message) -> tuple[pa.RecordBatch, bytes]:
    """The record batch and the header bytes of a message; floats and bytes are not copied."""
    slots: list[pa.Array] = []
    parts: list[list[Any]] = []
    for name, values in message.arrays.items():
        flat = np.ascontiguousarray(values)
        dtype, sent = _sent(flat)
        parts.append([name, dtype, list(flat.shape)])
        slots.append(slot(pa.py_buffer(sent), sent.nbytes))
    for name, words in message.texts.items():
        dtype, ends, data = _written(words)
        parts.append([name, dtype, [len(words)]])
        slots += [slot(pa.py_buffer(each), each.nbytes) for each in (ends, data)]
    if len(slots) > SLOTS:
        raise RefusedError(f"message {message.kind}: {len(slots)} parts; at most {SLOTS} fit.")
    slots.extend(_EMPTY for _ in range(SLOTS - len(slots)))
    header = json.dumps({**message.header, "parts": parts}, ensure_ascii=False).encode()
    return pa.RecordBatch.from_arrays(slots, schema=MESSAGE_SCHEMA), header


def decode(batch: pa.RecordBatch | None, metadata: pa.Buffer | None) -> Message:
    """Read a message; RefusedError names what is wrong with it. Arrays share the batch's memory."""
    header = _header(metadata)
    parts = _parts(header)
    buffers = contents(batch, len(parts) + sum(dtype in _TEXTS for _, dtype, _ in parts))
    arrays: dict[str, Array] = {}
    texts: dict[str, pa.Array] = {}
    at = 0
    for name, dtype, shape in parts:
        wide = 2 if dtype in _TEXTS else 1
        if at + wide > len(buffers):
            raise RefusedError(f"message: part {name!r} is named in the header but not there.")
        if wide == 2:
            read = _text if dtype == _TEXT else _short_text
            texts[name] = read(name, shape, buffers[at], buffers[at + 1])
        else:
            arrays[name] = _numbers(name, dtype, shape, buffers[at])
        at += wide
    return Message(header, arrays, texts)


def _sent(flat: Array) -> tuple[str, Array]:
    """How an array travels, and its bytes."""
    if flat.dtype != np.int64:
        return _NAMES[flat.dtype], flat
    plain = _varints(flat.reshape(-1))
    short = _squeezed(plain) if plain.nbytes >= _MANY else None
    return (_NAMES[flat.dtype], plain) if short is None else (_SQUEEZED, short)


def _written(words: pa.Array) -> tuple[str, Array, Array]:
    """How words travel: their ends and their bytes; many of them as lengths and bytes by zstd."""
    clean = words if words.offset == 0 else pa.concat_arrays([words])
    _, offsets, data = clean.buffers()
    ends = np.zeros(1, np.int32) if offsets is None else np.frombuffer(offsets, np.int32)
    ends = ends[: len(words) + 1]
    letters = np.frombuffer(b"" if data is None else data, np.uint8)[: ends[-1]]
    lengths = _squeezed(_varints(np.diff(ends).astype(np.int64)))
    short = _squeezed(letters)
    if lengths is None or short is None:
        return _TEXT, ends, letters
    return _SHORT_TEXT, lengths, short


@kernel()
def _encode_varints(values: Any, out: Any) -> int:
    """Write int64 [n] to uint8 of room enough; the number of bytes."""
    at, before = 0, np.int64(0)
    for i in range(len(values)):
        step = values[i] - before
        before = values[i]
        rest = np.uint64((step << 1) ^ (step >> 63))
        while rest > _LOW:
            out[at] = np.uint8((rest & _LOW) | np.uint64(128))
            rest >>= _SEVEN
            at += 1
        out[at] = np.uint8(rest)
        at += 1
    return at


@kernel()
def _decode_varints(data: Any, values: Any) -> int:
    """Inverse of `_encode_varints`; a key of `_REASONS`, or 0."""
    at, before = 0, np.int64(0)
    for i in range(len(values)):
        rest, shift = np.uint64(0), np.uint64(0)
        while True:
            if at >= len(data):
                return 1
            byte = np.uint64(data[at])
            at += 1
            if shift == np.uint64(63) and byte > _ONE:
                return 2
            rest |= (byte & _LOW) << shift
            if byte <= _LOW:
                break
            shift += _SEVEN
        before += np.int64(rest >> _ONE) ^ -np.int64(rest & _ONE)
        values[i] = before
    return 0 if at == len(data) else 3


def _varints(values: IntArray) -> ByteArray:
    """int64 [n] in few bytes: each as its difference from the one before it, 7 bits a byte.

    Ids that lie near each other take a byte or two of their eight, and so do counts. A difference
    (modulo 2^64) is written with its sign as the lowest bit (zigzag), the lowest 7 bits first
    (LEB128).
    """
    out = np.empty(_MOST_BYTES * len(values), dtype=np.uint8)
    return out[: _encode_varints(values, out)].copy()


def _squeezed(data: ByteArray) -> ByteArray | None:
    """The length of `data` (uint32), then its bytes by zstd; None where that is not worth it.

    Its Huffman codes give a difference that is frequent a few bits.
    """
    if not _WORTH <= data.nbytes < 2**32:
        return None
    short = pa.Codec("zstd", compression_level=1).compress(pa.py_buffer(data))
    if not data.nbytes <= max(_FREE, _MOST_GROWTH * short.size) or short.size > 0.9 * data.nbytes:
        return None
    length = np.array([data.nbytes], dtype=_LENGTH).view(np.uint8)
    return np.concatenate([length, np.frombuffer(short, dtype=np.uint8)])


def _expanded(data: ByteArray) -> ByteArray | None:
    """Inverse of `_squeezed`; None for bytes that are none."""
    if data.nbytes < _LENGTH.itemsize:
        return None
    length = int(data[: _LENGTH.itemsize].view(_LENGTH)[0])
    rest = data[_LENGTH.itemsize :]
    if length > max(_FREE, _MOST_GROWTH * rest.nbytes):
        return None
    try:
        data = pa.Codec("zstd").decompress(pa.py_buffer(rest), decompressed_size=length)
    except (OSError, pa.ArrowException):
        return None
    return np.frombuffer(data, dtype=np.uint8)


def slot(data: pa.Buffer | None, size: int) -> pa.Array:
    """A one-row large_binary array over `data`."""
    offsets = pa.py_buffer(np.array([0, size], dtype=np.int64))
    held = pa.py_buffer(b"") if data is None else data
    return pa.Array.from_buffers(pa.large_binary(), 1, [None, offsets, held])


_EMPTY = slot(None, 0)


def _header(metadata: pa.Buffer | None) -> dict[str, Any]:
    if metadata is None or metadata.size == 0:
        raise RefusedError("message: the header is missing.")
    if metadata.size > MAX_HEADER_BYTES:
        raise RefusedError(
            f"message: the header has {metadata.size} bytes; at most {MAX_HEADER_BYTES} fit."
        )
    try:
        header = read_json(metadata.to_pybytes())
    except ValueError as error:
        reason = str(error) if type(error) is ValueError else "it cannot be read"
        raise RefusedError(f"message: the header is not JSON in UTF-8: {reason}.") from error
    if not isinstance(header, dict):
        raise RefusedError("message: the header is not a JSON object.")
    return header


def contents(batch: pa.RecordBatch | None, slots: int = SLOTS) -> list[memoryview]:
    """The bytes of the first slots; of the others nothing is looked at."""
    if batch is None:
        return []
    if batch.schema != MESSAGE_SCHEMA or batch.num_rows != 1:
        raise RefusedError("message: not one row of the exchange schema.")
    return [_content(batch.column(at)) for at in range(min(slots, SLOTS))]


def _content(column: pa.Array) -> memoryview:
    """The bytes of a one-row large_binary array, checked here: Arrow reads offsets unchecked."""
    validity, offsets, data = column.buffers()
    # Counting nulls would read the validity bits, however few bytes there are of them.
    if column.offset or validity is not None:
        raise RefusedError("message: a slot is null.")
    if offsets is None or offsets.size < 16:
        raise RefusedError("message: a slot has no offsets.")
    start, end = struct.unpack_from("<qq", offsets)
    if start == end:
        return memoryview(b"")
    if data is None or not 0 <= start < end <= data.size:
        raise RefusedError("message: a slot has offsets outside its bytes.")
    return memoryview(data)[start:end]


def _parts(header: dict[str, Any]) -> list[tuple[str, str, tuple[int, ...]]]:
    parts = header.get("parts", [])
    if not isinstance(parts, list) or len(parts) > SLOTS:
        raise RefusedError(f"message: `parts` must be a list of at most {SLOTS} entries.")
    by_name: dict[str, tuple[str, str, tuple[int, ...]]] = {}
    for part in parts:
        if not (isinstance(part, list) and len(part) == 3):
            raise RefusedError("message: each part is [name, dtype, shape].")
        name, dtype, shape = part
        if not isinstance(name, str) or name in by_name:
            raise RefusedError("message: part names must be different strings.")
        if dtype not in (*DTYPES, *_TEXTS, _SQUEEZED):
            raise RefusedError(f"message: part {name!r} has an unknown dtype.")
        if not (
            isinstance(shape, list)
            and 1 <= len(shape) <= 2
            and all(type(n) is int and 0 <= n < 2**40 for n in shape)
        ):
            raise RefusedError(f"message: part {name!r} has no valid shape.")
        by_name[name] = (name, dtype, tuple(shape))
    return list(by_name.values())


def _numbers(name: str, kind: str, shape: tuple[int, ...], data: memoryview) -> Array:
    if kind == _SQUEEZED:
        steps = _expanded(np.frombuffer(data, dtype=np.uint8))
        if steps is None:
            raise RefusedError(f"message: part {name!r}: the bytes are not zstd's.")
        return _whole(name, shape, steps)
    dtype = DTYPES[kind]
    if dtype == np.int64:
        return _whole(name, shape, np.frombuffer(data, dtype=np.uint8))
    expected = math.prod(shape) * dtype.itemsize
    if data.nbytes != expected:
        raise RefusedError(
            f"message: part {name!r} has {data.nbytes} bytes; its shape needs {expected}."
        )
    return np.frombuffer(data, dtype=dtype).reshape(shape)


def _whole(name: str, shape: tuple[int, ...], data: Array) -> Array:
    n = math.prod(shape)
    # Each number takes a byte at least, so that few bytes cannot claim much memory.
    if n > data.nbytes:
        raise RefusedError(
            f"message: part {name!r} has {data.nbytes} bytes; its shape needs {n} or more."
        )
    values = np.empty(n, dtype=np.int64)
    wrong = _REASONS.get(_decode_varints(data, values))
    if wrong is not None:
        raise RefusedError(f"message: part {name!r}: {wrong}.")
    return values.reshape(shape)


def _short_text(
    name: str, shape: tuple[int, ...], lengths: memoryview, data: memoryview
) -> pa.Array:
    if len(shape) != 1:
        raise RefusedError(f"message: part {name!r}: words have one dimension.")
    letters = _expanded(np.frombuffer(data, dtype=np.uint8))
    long = _numbers(name, _SQUEEZED, shape, lengths)
    if letters is None or bool((long < 0).any()) or int(long.max(initial=0)) > letters.nbytes:
        raise RefusedError(f"message: part {name!r}: the bytes are not those of words.")
    ends = np.concatenate([[0], np.cumsum(long)])
    if int(ends[-1]) != letters.nbytes or letters.nbytes >= 2**31:
        raise RefusedError(f"message: part {name!r} has lengths that do not fit its bytes.")
    offsets = ends.astype(np.int32).tobytes()
    return _text(name, shape, memoryview(offsets), memoryview(letters.tobytes()))


def _text(name: str, shape: tuple[int, ...], offsets: memoryview, data: memoryview) -> pa.Array:
    n = shape[0]
    if n == 0:
        return pa.array([], pa.string())
    if len(shape) != 1 or offsets.nbytes != 4 * (n + 1):
        raise RefusedError(f"message: part {name!r} has offsets of a wrong length.")
    ends = np.frombuffer(offsets, dtype=np.int32)
    if ends[0] < 0 or ends[-1] > data.nbytes or bool(np.any(np.diff(ends) < 0)):
        raise RefusedError(f"message: part {name!r} has offsets outside its bytes.")
    words = pa.StringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(data))
    try:
        words.validate(full=True)
    except pa.ArrowException as error:
        raise RefusedError(f"message: part {name!r} is not UTF-8.") from error
    return words


def whole(
    header: Mapping[str, Any],
    name: str,
    *,
    least: int = 0,
    most: int = 2**62 - 1,
    of: str = "message",
) -> int:
    """The whole number `name` of a header, from `least` to `most`; `of` names the message."""
    value = header.get(name)
    if type(value) is not int or not least <= value <= most:
        raise RefusedError(f"{of}: {name!r} must be a whole number of at least {least}.")
    return value


def read_json(data: bytes) -> Any:
    """The value of JSON in UTF-8 that can be sent on: no NaN, no infinity, no half of a surrogate
    pair, which Python's reader takes. ValueError for anything else, also when nested too deep.
    """
    text = data.decode("utf-8")
    try:
        value = json.loads(text, parse_constant=_constant, parse_float=_float)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if "\\u" in text:
        # Only an escape can smuggle half a surrogate pair in: such a text cannot be encoded again.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def _constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large")
    return value
