"""Decompression that stops at a limit: a small answer must not unpack into all memory."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import brotli
import zstandard

from embedding.kernel.errors import FetchError

_SLICE = 256
"""Bytes fed to decoders that cannot bound their output (zstd blocks hold at most 128 KiB)."""

_GZIP = b"\x1f\x8b"
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_LOOK = 512
"""Bytes in which text of any encoding for the web has no such control character."""
_MOST = 4
"""Encodings over each other that are taken off."""

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
    """gzip of one member or several (RFC 1952, 2.2), zlib and raw deflate.

    Which it is, the first bytes say: a server may call each by the name of another.
    """

    def __init__(self, *, raw: bool = False) -> None:
        """raw: deflate without any header is accepted."""
        self._raw = raw
        self._inner: Any = None

    def feed(self, data: bytes, room: int) -> bytes:
        parts: list[bytes] = []
        while data and room > 0:
            if self._inner is None and data.startswith(_GZIP):
                self._inner = zlib.decompressobj(16 + zlib.MAX_WBITS)
            elif self._inner is None:
                headed = (data[0] & 0x0F) == 8 and int.from_bytes(data[:2]) % 31 == 0
                if not headed and not self._raw:
                    raise zlib.error("no header")
                self._inner = zlib.decompressobj(zlib.MAX_WBITS if headed else -zlib.MAX_WBITS)
            parts.append(self._inner.decompress(data, room))
            room -= len(parts[-1])
            if not self._inner.eof:
                break
            data = self._inner.unused_data
            # Zeros and other rubbish may follow the last member.
            if not data.startswith(_GZIP):
                break
            self._inner = None
        return b"".join(parts)

    def finished(self) -> bool:
        return self._inner is None or bool(self._inner.eof)


class _Brotli:
    def __init__(self) -> None:
        self._inner = brotli.Decompressor()

    def feed(self, data: bytes, room: int) -> bytes:
        return bytes(self._inner.process(data, output_buffer_limit=room))

    def finished(self) -> bool:
        return bool(self._inner.is_finished())


class _Zstd:
    def __init__(self) -> None:
        self._unpacking = zstandard.ZstdDecompressor(max_window_size=1 << 23)
        self._frame = self._unpacking.decompressobj()

    def feed(self, data: bytes, room: int) -> bytes:
        parts: list[bytes] = []
        begin = 0
        while begin < len(data) and room > 0:
            if self._frame.eof:  # another follows
                self._frame = self._unpacking.decompressobj()
            parts.append(self._frame.decompress(data[begin : begin + _SLICE]))
            begin = min(begin + _SLICE, len(data)) - len(self._frame.unused_data)
            room -= len(parts[-1])
        return b"".join(parts)

    def finished(self) -> bool:
        return bool(self._frame.eof)


_DECODERS: Mapping[str, Callable[[], _Decoder]] = {
    "gzip": _Zlib,
    "x-gzip": _Zlib,
    "deflate": partial(_Zlib, raw=True),
    "br": _Brotli,
    "zstd": _Zstd,
}
_MAGIC: Mapping[bytes, Callable[[], _Decoder]] = {b"\x1f\x8b\x08": _Zlib, b"(\xb5/\xfd": _Zstd}
"""How packed answers begin, whatever their header says."""
_BROKEN = (zlib.error, brotli.error, zstandard.ZstdError)


class _Lenient:
    """A decoder for an answer that may be packed in another way than its header says, or not at
    all: what is fed first, tells. That is `_LOOK` bytes or all."""

    def __init__(self, decoder: _Decoder) -> None:
        self._decoder = decoder
        self._begun = False

    def feed(self, data: bytes, room: int) -> bytes:
        if self._begun:
            return self._decoder.feed(data, room)
        self._begun = True
        known = (decoder() for magic, decoder in _MAGIC.items() if data.startswith(magic))
        self._decoder = next(known, self._decoder)
        try:
            return self._decoder.feed(data, room)
        except _BROKEN:
            if data.startswith(_GZIP):
                raise
            self._decoder = _Zlib(raw=True) if _CONTROL.search(data[:_LOOK]) else _Plain()
            return self._decoder.feed(data, room)

    def finished(self) -> bool:
        return not self._begun or self._decoder.finished()


class Unpacker:
    """Collects an answer, part by part, up to `limit` bytes packed and unpacked alike.

    encoding  the Content-Encoding: names of encodings in the order in which they were applied;
              others than those asked for are taken for none, as browsers do
    """

    def __init__(self, encoding: str, limit: int, *, truncate: bool = False) -> None:
        names = re.split(r'[\s,;"]+', encoding.lower())
        known = [_DECODERS[name] for name in names if name in _DECODERS]
        self._decoders: list[_Decoder] = [_Lenient(decoder()) for decoder in known[-_MOST:][::-1]]
        self._limit = limit
        self._truncate = truncate
        self._packed = 0
        self._begin = b""
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> bool:
        """Add a part; False when enough was read. Raises FetchError (too_large, bad_encoding)."""
        data = self._begin + data
        waits = bool(self._decoders) and not self._parts and len(data) < _LOOK
        self._begin = data if waits else b""
        return waits or not data or self._unpack(data)

    def _unpack(self, data: bytes) -> bool:
        self._packed += len(data)
        room = self._limit - self._size + 1
        try:
            for decoder in self._decoders:
                data = decoder.feed(data, self._limit + 1) if data else data
        except _BROKEN as error:
            raise FetchError("bad_encoding", "the compressed answer is broken.") from error
        part = data[:room]
        self._parts.append(part)
        self._size += len(part)
        if max(self._size, self._packed) <= self._limit:
            return True
        if self._truncate:
            return False
        raise FetchError("too_large", f"the answer is larger than {self._limit} bytes.")

    def body(self, *, whole: bool = True) -> bytes:
        """All that was read; raises FetchError when a compressed answer ends in the middle."""
        if self._begin:
            self._unpack(self._begin)
            self._begin = b""
        if whole and not all(decoder.finished() for decoder in self._decoders):
            raise FetchError("bad_encoding", "the compressed answer ends in the middle.")
        return b"".join(self._parts)[: self._limit]
