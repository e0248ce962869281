"""Frames on the pipe between two processes: one kind byte, eight bytes of number, a payload.

Only bytes cross: Arrow IPC for blocks, JSON for keys and reports, never a pickle.
"""

from __future__ import annotations

import json
import struct
from enum import IntEnum
from typing import Any

from embedding.kernel.errors import InputError

_HEAD = struct.Struct("<Bq")


class FrameKind(IntEnum):
    """What a frame carries; the number is tokens for BLOCK and CREDIT, else 0."""

    BLOCK = 1
    CREDIT = 2
    KEYS = 3
    REPORT = 4
    CLOSE = 5


def encode(kind: FrameKind, number: int = 0, payload: bytes | memoryview = b"") -> bytes:
    """One frame as bytes."""
    return b"".join((_HEAD.pack(kind, number), payload))


def decode(frame: bytes) -> tuple[FrameKind, int, bytes]:
    """Inverse of `encode`; raises InputError when the bytes are not a frame."""
    try:
        kind, number = _HEAD.unpack_from(frame)
        return FrameKind(kind), number, frame[_HEAD.size :]
    except (struct.error, ValueError) as error:
        raise InputError(f"queue: {len(frame)} bytes arrived that are not a frame.") from error


def encode_json(value: object) -> bytes:
    """Document keys or a report as bytes; raises InputError when it is not JSON-safe."""
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError) as error:
        raise InputError(f"queue: a report must be JSON-safe: {error}.") from error


def decode_keys(payload: bytes) -> list[str]:
    """The list of strings in a frame of keys; raises InputError."""
    value = _json(payload, "a list of keys")
    if not isinstance(value, list) or not all(isinstance(key, str) for key in value):
        raise InputError("queue: a frame of keys holds something else than a list of strings.")
    return value


def decode_report(payload: bytes) -> dict[str, Any]:
    """The object in a frame of a report; raises InputError."""
    value = _json(payload, "a report")
    if not isinstance(value, dict):
        raise InputError("queue: a report frame holds something else than a JSON object.")
    return value


def _json(payload: bytes, what: str) -> object:
    try:
        value: object = json.loads(payload.decode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise InputError(f"queue: {what} arrived that is not JSON.") from error
    return value
