"""mbox: mails one after the other, as mailing lists and mail programs keep them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import EmailPolicy
from email.utils import parseaddr
from itertools import islice
from pathlib import Path

from embedding.crawl.charset import decode
from embedding.importing.opening import UnpackedFile, opened
from embedding.importing.readers import READERS, RawRecords, ReaderTraits, ReadOptions, in_columns
from embedding.kernel.errors import FetchError, InputError
from embedding.sources.markup import plain_text

_BLOCK = 1 << 20
_LONGEST = 1 << 25
"""Bytes of one mail; what is behind them, as large files in it, is not looked at."""
_LONGEST_HEADER = 2_000
"""Characters of a header that are read: the standard library takes the square of them."""
_MULTIPARTS = 100
"""Parts with parts in them that a mail may have: each line is compared with the ends of all."""
_START = b"From "
_BETWEEN = b"\n" + _START
_HEADER = re.compile(rb"[A-Za-z-]{2,40}:")
_DEFECTS = (HeaderParseError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What the standard library raises for some mails instead of reading what it can."""


class _ShortHeaders(EmailPolicy):
    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:_LONGEST_HEADER]


@READERS.register(
    "mbox",
    ReaderTraits(
        noun="a mailbox", suffixes=(".mbox", ".mbx", ".eml"), begins=(_START,), named=True
    ),
)
def read_mailbox(path: Path, options: ReadOptions, since: int) -> Iterator[RawRecords]:
    """Date, subject, text, list or file, and sender of each mail; quoted lines are left out.

    A file that begins with the header of a mail is one mail.
    """
    del options  # each mail says how it is written
    with opened(path) as file:
        begin = file.head(_LONGEST_HEADER)
        if not begin.startswith(_START) and not _HEADER.match(begin):
            raise InputError(f'{path}: not a mailbox; its first line begins with "From ".')
        mailbox = begin.startswith(_START)
        mails = _mails(file) if mailbox else iter([b"\n" + file.head(_LONGEST)])
        numbered = islice(enumerate(mails), since, None)
        records = ((number, _record(mail, path.stem)) for number, mail in numbered)
        yield from in_columns(records, lambda: file.done)


def _mails(file: UnpackedFile) -> Iterator[bytes]:
    """Each mail without the "From " before it; of a very long one the beginning."""
    rest = b"\n"
    while data := file.read(_BLOCK):
        *whole, rest = (rest + data).split(_BETWEEN)
        yield from (mail for mail in whole if mail.strip())
        if len(rest) > _LONGEST:
            rest = rest[: _LONGEST - _BLOCK] + rest[-len(_BETWEEN) :]
    if rest.strip():
        yield rest


def _record(mail: bytes, name: str) -> Mapping[str, str | None] | str:
    try:
        # Its first line says who sent it when, in no form that all programs share.
        _, _, written = mail.partition(b"\n")
        if written.lower().count(b"multipart/") > _MULTIPARTS:
            return f"a mail of more than {_MULTIPARTS} parts in parts"
        message = BytesParser(policy=_ShortHeaders()).parsebytes(written)
        if not isinstance(message, EmailMessage):
            return "a mail that cannot be read"
        text = _body(message)
        if not text:
            return "a mail without text"
        sender = parseaddr(_header(message, "From"))
        return {
            "date": _header(message, "Date") or _header(message, "Received").rpartition(";")[2],
            "text": text,
            "title": _header(message, "Subject") or None,
            "source": parseaddr(_header(message, "List-Id"))[1].partition(".")[0] or name,
            "author": sender[1] or sender[0] or None,
        }
    except _DEFECTS:
        return "a mail that cannot be read"


def _body(message: EmailMessage) -> str:
    """Its text in plain; where there is none, that in HTML."""
    for kind in ("plain", "html"):
        part = message.get_body(preferencelist=(kind,))
        payload = part.get_payload(decode=True) if part is not None else None
        if part is not None and isinstance(payload, bytes):
            content = _decoded(payload, part.get_content_charset())
            text = plain_text(content) if kind == "html" else content
            lines = (line for line in text.splitlines() if not line.startswith(">"))
            if body := "\n".join(lines).strip():
                return body
    return ""


def _decoded(data: bytes, charset: str | None) -> str:
    """Text of a mail, read as that of a page: many say nothing or another encoding."""
    try:
        return decode(data, {"content-type": f"text/plain; charset={charset}"})
    except FetchError:
        return data.decode(errors="replace")


def _header(message: EmailMessage, name: str) -> str:
    """A header as it is written; bytes in it, packed or against all rules, are read as a text's."""
    raw = next((str(v) for key, v in message.raw_items() if key.lower() == name.lower()), "")
    if not raw.isascii():
        return " ".join(_decoded(raw.encode("utf-8", "surrogateescape"), None).split())
    parts = decode_header(raw)
    words = (it if isinstance(it, str) else _decoded(it, charset) for it, charset in parts)
    return " ".join("".join(words).split())
