"""mbox: mails one after the other, as mailing lists and mail programs keep them."""

from __future__ import annotations

import email.policy
from collections.abc import Iterator, Mapping
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import parseaddr
from pathlib import Path

from embedding.importing.opening import UnpackedFile, opened
from embedding.importing.readers import READERS, RawRecords, ReaderTraits, ReadOptions, in_columns
from embedding.kernel.errors import InputError
from embedding.sources.markup import plain_text

_BLOCK = 1 << 20
_LONGEST = 1 << 25
"""Bytes of one mail; what is behind them, as large files in it, is not looked at."""
_START = b"From "
_BETWEEN = b"\n" + _START
_DEFECTS = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What the standard library raises for some mails instead of reading what it can."""


@READERS.register(
    "mbox",
    ReaderTraits(noun="a mailbox", suffixes=(".mbox", ".mbx"), begins=(_START,), named=True),
)
def read_mailbox(path: Path, options: ReadOptions, since: int) -> Iterator[RawRecords]:
    """Date, subject, text, list or file, and sender of each mail; quoted lines are left out."""
    del options  # each mail says how it is written
    with opened(path) as file:
        if not file.head(len(_START)).startswith(_START):
            raise InputError(f'{path}: not a mailbox; its first line begins with "From ".')
        numbered = enumerate(_mails(file))
        records = (
            (number, _record(mail, path.stem)) for number, mail in numbered if number >= since
        )
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
        message = BytesParser(policy=email.policy.default).parsebytes(written)
        if not isinstance(message, EmailMessage):
            return "a mail that cannot be read"
        text = _body(message)
        if not text:
            return "a mail without text"
        sender = parseaddr(str(message.get("From", "")))
        return {
            "date": str(message.get("Date", "")) or None,
            "text": text,
            "title": str(message.get("Subject", "")) or None,
            "source": parseaddr(str(message.get("List-Id", "")))[1].partition(".")[0] or name,
            "author": sender[1] or sender[0] or None,
        }
    except _DEFECTS:
        return "a mail that cannot be read"


def _body(message: EmailMessage) -> str:
    part = message.get_body(preferencelist=("plain", "html"))
    if part is None:
        return ""
    content = part.get_content()
    if not isinstance(content, str):
        return ""
    text = plain_text(content) if part.get_content_subtype() == "html" else content
    return "\n".join(line for line in text.splitlines() if not line.startswith(">")).strip()
