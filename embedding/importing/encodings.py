"""The encoding of a text file, found in its bytes, and its text as UTF-8."""

from __future__ import annotations

import codecs
import io
import math
import re
from pathlib import Path

from embedding.importing.opening import UnpackedFile
from embedding.kernel.errors import ConfigError, InputError

ENCODING_BYTES = 1 << 18
"""Bytes in which an encoding is looked for."""
_GUESSED = 1 << 15
_TAIL = 1 << 21
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_ESCAPED = ("iso2022_kr", "iso2022_jp")
_HANGUL = re.compile(r"[가-힣]")
_HAN = re.compile(r"[㐀-鿿豈-﫿぀-ヿ]")
_MOST_BROKEN, _FEW_BROKEN = 0.05, 0.005
"""Broken places a letter; other encodings pass for UTF-8 seldom, and for CP949 often."""
_KOREAN = 0.9
"""Share of Hangul among Hangul, Chinese and Japanese characters of a text in Korean."""


def check_encoding(name: str) -> str:
    """The codec's name; ConfigError for one that is none of text."""
    try:
        found = codecs.lookup(name)
        b"text".decode(name)
    except (LookupError, ValueError, TypeError) as error:
        raise ConfigError(
            f"--encoding {name}: no such encoding; utf-8, cp949 or utf-16 are examples."
        ) from error
    return found.name


def encoding_of(sample: bytes, path: Path) -> str:
    """The encoding of a file that begins with `sample`; InputError where none fits.

    Marks at the beginning tell it, then zeros of wide characters, then what is valid UTF-8, then
    CP949 (EUC-KR is part of it) where the letters are Hangul. Either may be broken in some places.
    The others are told apart by how frequent their characters would be (charset-normalizer).
    """
    for bom, name in _BOMS:
        if sample.startswith(bom):
            return name
    found = _wide(sample, path) if b"\0" in sample else _narrow(sample)
    return found or _guessed(sample, path)


def _wide(sample: bytes, path: Path) -> str:
    for name in _WIDE:
        text = _decoded(sample, name)
        if text is not None and "\0" not in text and _plausible(text):
            return name
    raise InputError(f"{path}: binary data; a file of text is expected.")


def _narrow(sample: bytes) -> str | None:
    """UTF-8 or an encoding of Korean; None where it is none of them."""
    if b"\x1b$" in sample:
        return next((name for name in _ESCAPED if _decoded(sample, name) is not None), None)
    if _decoded(sample, "utf-8") is not None or _broken(sample, "utf-8") <= _MOST_BROKEN:
        return "utf-8"
    for name in ("cp949", "johab"):
        text = _decoded(sample, name)
        if text is not None and _korean(text):
            return name
    few = _broken(sample, "cp949") <= _FEW_BROKEN
    return "cp949" if few and _korean(sample.decode("cp949", "replace")) else None


def _broken(sample: bytes, name: str) -> float:
    """Places that are no text, for each letter of Chinese, Japanese or Korean."""
    text = sample.decode(name, "replace")
    letters = len(_HANGUL.findall(text)) + len(_HAN.findall(text))
    return text.count("\ufffd") / letters if letters else math.inf


def _decoded(sample: bytes, name: str) -> str | None:
    """The text, whose last character may be cut; None where the bytes are of no such encoding."""
    try:
        return codecs.getincrementaldecoder(name)("strict").decode(sample, False)
    except (UnicodeError, LookupError):
        return None


def _plausible(text: str) -> bool:
    """Whether most characters are such as people write, and space is between them."""
    sample = text[:4096]
    odd = sum(1 for each in sample if not (each.isprintable() or each in "\r\n\t"))
    spaces = sum(1 for each in sample if each.isspace())
    return odd * 20 <= len(sample) <= spaces * 400


def _korean(text: str) -> bool:
    hangul, han = len(_HANGUL.findall(text)), len(_HAN.findall(text))
    return hangul > 0 and hangul >= _KOREAN * (hangul + han)


def _guessed(sample: bytes, path: Path) -> str:
    from charset_normalizer import from_bytes  # slow to load, and seldom needed

    end = sample.rfind(b"\n", 0, _GUESSED) + 1 or _GUESSED
    best = from_bytes(sample[:end]).best()
    if best is None:
        raise InputError(f"{path}: its encoding cannot be found out; name it with --encoding.")
    return str(best.encoding)


class Utf8Text(io.RawIOBase):
    """A text file as UTF-8, for readers of bytes.

    UTF-8 passes as it is, whatever it holds. Of other encodings, bytes that are no character
    become U+FFFD, and `replaced` says so. `tail` holds the last bytes that were read.
    """

    def __init__(self, file: UnpackedFile, encoding: str) -> None:
        self.replaced = False
        self.tail = b""
        self._file = file
        self._plain = encoding in ("utf-8", "utf-8-sig")
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._begun = False

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes, about `size`; none at the end alone."""
        wanted = size if size and size > 0 else 1 << 20
        while True:
            data = self._file.read(wanted)
            if self._plain:
                text = data if self._begun else data.removeprefix(codecs.BOM_UTF8)
            else:
                decoded = self._decoder.decode(data, not data)
                decoded = decoded if self._begun else decoded.removeprefix("﻿")
                self.replaced = self.replaced or "�" in decoded
                text = decoded.encode(errors="replace")
            self._begun = self._begun or bool(text)
            if text or not data:
                self.tail = (self.tail + text)[-max(len(text), _TAIL) :] if text else self.tail
                return text
