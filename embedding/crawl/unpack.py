"""Decompression that stops at a limit: a small answer must not unpack into all memory."""

from __future__ import annotations

import zlib
from typing import Any, Protocol

import brotli
import zstandard

from embedding.kernel.errors import FetchError

_SLICE = 256
"""Bytes fed to decoders that cannot bound their output (zstd blocks hold at most 128 KiB)."""

ENCODINGS = "gzip, deflate, br, zstd"


class _Decoder(Protocol):
    def feed(self, data: bytes, room: int) -> bytes: ...

    def finished(self) -> bool: ...


class _Plain:
    def feed(self, data: bytes, room: int) -> bytes:
        return data[:room]

    def finished(self) -> bool:
        return True


class _Zlib:
    """gzip, zlib and raw deflate; which of the last two is seen from the first bytes."""

    def __init__(self, bits: int) -> None:
        self._bits = bits
        self._inner: Any = None

    def feed(self, data: bytes, room: int) -> bytes:
        if self._inner is None:
            raw = self._bits == zlib.MAX_WBITS and (data[0] & 0x0F) != 8
            self._inner = zlib.decompressobj(-zlib.MAX_WBITS if raw else self._bits)
        return bytes(self._inner.decompress(data, room))

    def finished(self) -> bool:
        return self._inner is None or bool(self._inner.eof)


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Decompressor()
        self._fed = False

    def feed(self, data: bytes, room: int) -> bytes:
        self._fed = True
        return bytes(self._inner.process(data, output_buffer_limit=room))

    def finished(self) -> bool:
        return not self._fed or bool(self._inner.is_finished())


class _Zstd:
    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor(max_window_size=1 << 23).decompressobj()

    def feed(self, data: bytes, room: int) -> bytes:
        parts: list[bytes] = []
        for at in range(0, len(data), _SLICE):
            parts.append(self._inner.decompress(data[at : at + _SLICE]))
            room -= len(parts[-1])
            if room <= 0:
                break
        return b"".join(parts)

    def finished(self) -> bool:
        return bool(self._inner.eof)


def _decoder(encoding: str) -> _Decoder:
    match encoding:
        case "gzip" | "x-gzip":
            return _Zlib(16 + zlib.MAX_WBITS)
        case "deflate":
            return _Zlib(zlib.MAX_WBITS)
        case "br":
            return _Brotli()
        case "zstd":
            return _Zstd()
        case "" | "identity":
            return _Plain()
    raise FetchError("bad_encoding", f"content-encoding {encoding!r} was not asked for.")


class Unpacker:
    """Collects an answer, part by part, up to `limit` bytes packed and unpacked alike."""

    def __init__(self, encoding: str, limit: int, *, truncate: bool = False) -> None:
        self._decoder = _decoder(encoding.strip().lower())
        self._limit = limit
        self._truncate = truncate
        self._packed = 0
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> bool:
        """Add a part; False when enough was read. Raises FetchError (too_large, bad_encoding)."""
        if not data:
            return True
        self._packed += len(data)
        try:
            part = self._decoder.feed(data, self._limit - self._size + 1)
        except (zlib.error, brotli.error, zstandard.ZstdError) as error:
            raise FetchError("bad_encoding", "the compressed answer is broken.") from error
        self._parts.append(part)
        self._size += len(part)
        if max(self._size, self._packed) <= self._limit:
            return True
        if self._truncate:
            return False
        raise FetchError("too_large", f"the answer is larger than {self._limit} bytes.")

    def body(self, *, whole: bool = True) -> bytes:
        """All that was read; raises FetchError when a compressed answer ends in the middle."""
        if whole and not self._decoder.finished():
            raise FetchError("bad_encoding", "the compressed answer ends in the middle.")
        return b"".join(self._parts)[: self._limit]
