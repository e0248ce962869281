"""Bytes → text for pages that may lie about their encoding (EUC-KR, CP949, wrong meta)."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence

from embedding.kernel.errors import FetchError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(
    rb"""<meta[^>]{0,300}?charset\s*=\s*["']?\s*([\w-]{2,30})"""
    rb"""|^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w-]{2,30})""",
    re.IGNORECASE,
)
_HEADER = re.compile(r"charset\s*=\s*[\"']?([\w-]{2,30})", re.IGNORECASE)
# Python's euc_kr refuses the extended Hangul that browsers (and so all Korean sites) write.
_WIDER = {
    "euc_kr": "cp949",
    "johab": "johab",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "ascii": "utf-8",
}
_SINGLE_BYTE = re.compile(r"^(?:iso8859|cp125|latin|koi8)")
_TOO_BROKEN = 0.02
# Codecs of Python that no page is written in; some raise whatever they are given.
_NEVER = frozenset({"undefined", "idna", "punycode", "unicode-escape", "raw-unicode-escape"})


def decode(body: bytes, headers: Mapping[str, str]) -> str:
    """Text of an answer; see `decode_named`."""
    return decode_named(body, headers)[0]


def decode_named(body: bytes, headers: Mapping[str, str]) -> tuple[str, str]:
    """Text of an answer and its encoding; raises FetchError (`bad_encoding`) when none fits.

    Valid UTF-8 wins over any declaration: bytes of another encoding are almost never valid
    UTF-8. Then come the declared encodings, then CP949; a declared single-byte encoding, which
    fits anything, only counts when CP949 does not fit.
    """
    for bom, name in _BOMS:
        if body.startswith(bom):
            return body.decode(name, errors="replace"), name
    declared = _declared(body, headers)
    if wide := _wide(body, declared):
        return body.decode(wide, errors="replace"), wide
    if not (b"\x1b$" in body[:4096] and "iso2022_kr" in declared):
        declared = ["utf-8", *(name for name in declared if name != "utf-8")]
    strong = [name for name in declared if not _SINGLE_BYTE.match(name)]
    weak = [name for name in declared if _SINGLE_BYTE.match(name)]
    for name in [*strong, "cp949", *weak]:
        try:
            return body.decode(name), name
        except (UnicodeError, LookupError):
            continue
    return _least_broken(body, [*declared, "cp949"])


def _wide(body: bytes, declared: Sequence[str]) -> str:
    """The encoding of two or four bytes a letter; "" where it is none.

    ASCII in UTF-16 is valid UTF-8 with a NUL beside each letter, which no page has.
    """
    begin = body[:1024]
    if begin.count(0) * 4 < len(begin):
        return ""
    for name in declared:
        if name.startswith(("utf-16", "utf-32")):
            end = "-le" if begin[1:2] == b"\0" else "-be"
            return name if name[-2:] in ("le", "be") else name + end
    return "utf-16-le" if begin[1::2].count(0) >= begin[::2].count(0) else "utf-16-be"


def _declared(body: bytes, headers: Mapping[str, str]) -> list[str]:
    """Known encodings that the header and the document name, in that order."""
    names: list[str] = []
    if header := _HEADER.search(headers.get("content-type", "")):
        names.append(header.group(1))
    if inside := _DECLARED.search(body[:4096]):
        names.append((inside.group(1) or inside.group(2)).decode("ascii", "replace"))
    known: list[str] = []
    for name in names:
        try:
            codec = codecs.lookup(name).name
        except LookupError:
            continue
        if codec not in _NEVER:
            known.append(_WIDER.get(codec, codec))
    return list(dict.fromkeys(known))


def _least_broken(body: bytes, names: list[str]) -> tuple[str, str]:
    """The reading with the fewest unreadable places, if they are few enough."""
    best, best_name, fewest = "", "", len(body) + 1
    for name in dict.fromkeys(names):
        try:
            text = body.decode(name, errors="replace")
        except (UnicodeError, LookupError):
            continue
        broken = text.count("\ufffd")
        if broken < fewest:
            best, best_name, fewest = text, name, broken
    if fewest > max(3, _TOO_BROKEN * len(best)):
        raise FetchError("bad_encoding", "the text fits none of its declared encodings.")
    return best, best_name
