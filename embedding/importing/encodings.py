"""The encoding of a text file, found in its bytes, and its text as UTF-8."""

from __future__ import annotations

import codecs
import io
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from embedding.importing.opening import UnpackedFile, opened
from embedding.kernel.errors import ConfigError, InputError

ENCODING_BYTES = 1 << 18
"""Bytes in which an encoding is looked for."""
NO_TEXT = "\ufdd0"
"""Stands for bytes that are no character. Unicode reserves it for such use inside of programs; a
record of a file that holds it all the same is left out as broken. U+FFFD is what people write."""
MARKED = "yeoron.marked"
codecs.register_error(MARKED, lambda error: (NO_TEXT, codecs.replace_errors(error)[1]))
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
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff]")
_MOST_BROKEN = 0.05
"""Broken places a letter of Korean, Chinese or Japanese in UTF-8."""
_LEGACY = (
    *("cp1252", "cp1250", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256", "tis_620"),
    *("shift_jis", "euc_jp", "gb18030", "big5"),
)
"""What pages and tables are written in that are neither UTF-8 nor Korean, the likeliest first
(encoding.spec.whatwg.org: defaults by language)."""
_COMMON = "이다는을의가에고하지은로기사를한리서인도어나자시대아정스그라수부있해일전보들만과"
_USUAL = 0.15
"""Share of these syllables among all: a third in Korean text, a hundredth in others' bytes."""
_MOST_ODD = 0.05
_FEW = 20
"""One zero among so many bytes may have strayed into a text."""
_KOREAN = 0.9
"""Share of Hangul among Hangul, Chinese and Japanese characters of a text in Korean."""


def check_encoding(name: str) -> str:
    """The codec's name; ConfigError for one that is none of text."""
    try:
        codec = codecs.lookup(name)
        b"text".decode(name)
    except (LookupError, ValueError, TypeError) as error:
        raise ConfigError(
            f"--encoding {name}: no such encoding; utf-8, cp949 or utf-16 are examples."
        ) from error
    return codec.name


@dataclass(frozen=True)
class FoundEncoding:
    """The name of a codec. `guessed`: frequencies of characters alone speak for it."""

    name: str
    guessed: bool = False

    @property
    def note(self) -> str:
        """A sentence for whoever imports, where a person should look at it."""
        guess = f"its encoding is probably {self.name}; name another with --encoding"
        return guess if self.guessed else ""


def encoding_of(file: UnpackedFile, path: Path, named: str | None = None) -> FoundEncoding:
    """The encoding of a file that nobody has read from yet; InputError where none fits.

    named  what a person said, which counts

    Marks at the beginning tell it, then zeros of wide characters, then what most lines are that
    are not ASCII: valid UTF-8, or CP949 (EUC-KR is part of it) with Hangul. Some lines may be
    broken. The others are told apart by how frequent their characters would be.
    """
    if named is not None:
        return FoundEncoding(named)
    sample = file.head(ENCODING_BYTES)
    for bom, name in _BOMS:
        if sample.startswith(bom):
            return FoundEncoding(name)
    if wide := _wide(sample):
        return FoundEncoding(wide)
    sample = sample.replace(b"\0", b"")
    if sample.isascii() and b"\x1b$" not in sample:
        if _odd(sample.decode("ascii")) > _MOST_ODD:
            raise InputError(f"{path}: binary data; a file of text is expected.")
        sample = _beyond_ascii(path)
    probable = korean_or_utf8(sample)
    return FoundEncoding(probable or _guessed(sample, path), guessed=probable is None)


def _beyond_ascii(path: Path) -> bytes:
    """Lines of a file from the first one on that is not ASCII; empty where all are."""
    with suppress(InputError), opened(path) as file:
        rest = b""
        while data := file.read(1 << 20):
            if not data.isascii():
                head, _, tail = (rest + data).rpartition(b"\n")
                first = next((i for i, byte in enumerate(head or tail) if byte > 127), 0)
                begin = (head or tail).rfind(b"\n", 0, first) + 1
                return ((head or tail)[begin:] + file.read(ENCODING_BYTES))[:ENCODING_BYTES]
            rest = data[data.rfind(b"\n") + 1 :]
    return b""


def _wide(sample: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark: nearly every letter has a zero, or each line end has.

    A few zeros in what is text without them are none of its characters.
    """
    zeros, narrow = sample.count(0), sample.replace(b"\0", b"")
    if not zeros or (4 * zeros < len(sample) and _decoded(narrow, "utf-8") is not None):
        return None
    if _FEW * zeros < len(sample) and korean_or_utf8(narrow) is not None:
        return None
    for name in _WIDE:
        text = _decoded(sample, name)
        if text is None or _FEW * text.count("\0") >= len(text) or _odd(text) > _MOST_ODD:
            continue
        begin = text[:4096]
        if len(begin) <= 400 * sum(map(str.isspace, begin)):  # people write, with space between
            return name
    return None


def korean_or_utf8(sample: bytes) -> str | None:
    """UTF-8 or an encoding of Korean; None where it is none of them."""
    if b"\x1b$" in sample:
        return next((name for name in _ESCAPED if _decoded(sample, name) is not None), None)
    if _decoded(sample, "utf-8") is not None:
        return "utf-8"
    lines = [line for line in sample.split(b"\n") if not line.isascii()]
    cut = len(sample) >= ENCODING_BYTES and len(lines) > 1
    lines = lines[:-1] if cut else lines
    for name in ("cp949", "johab"):
        text = _decoded(sample, name)
        if text is not None and _korean(text):
            return name
    for name in ("utf-8", "cp949"):
        texts = [text for line in lines if (text := _decoded(line, name)) is not None]
        enough = 2 * len(texts) + (name == "utf-8") > len(lines)
        if enough and texts and (name == "utf-8" or _korean("".join(texts))):
            return name
    # A file may be one long line.
    broken = sample.decode("utf-8", "replace")
    letters = len(_HANGUL.findall(broken)) + len(_HAN.findall(broken))
    return "utf-8" if broken.count("\ufffd") < _MOST_BROKEN * letters else None


def _decoded(sample: bytes, name: str) -> str | None:
    """The text, whose last character may be cut; None where the bytes are of no such encoding."""
    try:
        return codecs.getincrementaldecoder(name)("strict").decode(sample, False)
    except (UnicodeError, LookupError):
        return None


def _odd(text: str) -> float:
    """Share of characters that nobody writes, among the first."""
    sample = text[:4096]
    odd = sum(not (letter.isprintable() or letter in "\r\n\t") for letter in sample)
    return odd / max(len(sample), 1)


def _korean(text: str) -> bool:
    """Whether letters are Hangul, and the syllables that Koreans write most are among them.

    Japanese and Chinese bytes are Hangul in CP949, too, of syllables that hardly any word has.
    """
    hangul, han = len(_HANGUL.findall(text)), len(_HAN.findall(text))
    common = sum(map(text.count, _COMMON))
    return hangul > 0 and hangul >= _KOREAN * (hangul + han) and common >= _USUAL * hangul


def _guessed(sample: bytes, path: Path) -> str:
    from charset_normalizer import from_bytes  # slow to load, and seldom needed

    end = sample.rfind(b"\n", 0, _GUESSED) + 1 or _GUESSED
    matches = from_bytes(sample[:end], cp_isolation=list(_LEGACY))
    best = matches.best()
    if best is None:
        raise InputError(f"{path}: its encoding cannot be determined; name it with --encoding.")
    # As likely as another, it is the one that most files are in that name none.
    likeness = (best.chaos, best.coherence)
    equal = [it.encoding for it in matches if (it.chaos, it.coherence) == likeness]
    return min(equal, key=_LEGACY.index, default=str(best.encoding))


class Utf8Text(io.RawIOBase):
    """A text file as UTF-8, for readers of bytes.

    Bytes that are no character become `NO_TEXT` where `errors` is `MARKED`, and U+FFFD where it is
    "replace". NUL, which no text has, is left out. `tail` holds the last bytes that were read.
    Empty lines that it begins with, and `above` lines behind them, are passed over.
    """

    def __init__(self, file: UnpackedFile, encoding: str, errors: str, above: int = 0) -> None:
        self.tail = b""
        self._file, self._above = file, above
        self._plain = encoding in ("utf-8", "utf-8-sig")
        self._rest = b""
        self._decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._begun = self._alone = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes, about `size`; none at the end alone."""
        wanted = size if size and size > 0 else 1 << 20
        while True:
            data = self._file.read(wanted)
            text = self._valid(data) if self._plain else None
            if text is None:
                decoded = self._decoder.decode(self._rest + data, not data)
                self._rest = b""
                text = decoded.encode(errors="replace")
            text = text if self._begun else text.removeprefix(codecs.BOM_UTF8)
            text = text.replace(b"\0", b"") if b"\0" in text else text
            # Of a file that has no other line end: so old programs of Macs write.
            self._alone = b"\r" in text and b"\n" not in text if not self._begun else self._alone
            text = text.replace(b"\r", b"\n") if self._alone else text
            text = text if self._begun else text.lstrip(b"\r\n").split(b"\n", self._above)[-1]
            self._begun = self._begun or bool(text)
            if text or not data:
                self.tail = (self.tail + text)[-max(len(text), _TAIL) :] if text else self.tail
                return text

    def _valid(self, data: bytes) -> bytes | None:
        """The bytes themselves where they are UTF-8, up to a character that is cut; else None."""
        whole = self._rest + data
        end = len(whole)
        while data and end and end > len(whole) - 4 and whole[end - 1] & 0xC0 == 0x80:
            end -= 1
        if data and end and whole[end - 1] >= 0xC0:
            end -= 1
        else:
            end = len(whole)
        try:
            # Some five times as quick as to decode it.
            ends = pa.py_buffer(np.array([0, end], np.int32))
            pa.StringArray.from_buffers(1, ends, pa.py_buffer(whole)).validate(full=True)
        except pa.ArrowInvalid:
            self._plain = False
            return None
        self._rest = whole[end:]
        return whole[:end]
