"""A corpus file in lines: whole stretches of text, or dated lines of JSONL; plain or .xz."""

from __future__ import annotations

import json
import lzma
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import IO, Any

import numpy as np

from embedding.kernel.calendar import fixed
from embedding.kernel.errors import InputError
from embedding.kernel.records import IntArray
from embedding.worker.corpus.authors import name_marks
from embedding.worker.spec import CorpusShare

STRETCH_BYTES = 1 << 16
"""The nodes read a file in stretches of so many bytes, up to the next line end."""
FIRST_YEAR, LAST_YEAR = 1600, 2300
"""A date before or behind these stands for none."""
MOST_NAME = 80
"""Characters of a source's name, at most, as in sources.toml."""
Fault = Callable[[int, str], None]
"""Is told the number (0, 1, …) of a line that is left out, and why."""
NOT_UTF8 = "not UTF-8 text"
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def document_key(source: str, line: int) -> str:
    """The key of a document that begins in a line (0, 1, …) of a corpus."""
    return f"{source}#{line + 1}"


def line_units(keys: Sequence[str], lines: int) -> IntArray:
    """int64 [n], not negative: alike for keys of `lines` lines in a row, the same in each run."""
    numbers = (int(key.rpartition("#")[2]) - 1 for key in keys)
    marks = name_marks([str(number // lines) for number in numbers]) >> np.uint64(1)
    return marks.astype(np.int64)


@dataclass(frozen=True)
class CorpusStretch:
    """Some whole lines of a corpus, from line `first` (0, 1, …).

    begun, done  share of the reading that is done before and with them
    """

    first: int
    text: str
    done: float
    begun: float = 0.0

    @property
    def end(self) -> int:
        """Number of the line behind the last one."""
        return self.first + self.text.count("\n") + (not self.text.endswith("\n"))

    def since(self, line: int) -> CorpusStretch:
        """The lines from `line` on."""
        text = self.text
        for _ in range(self.first, min(line, self.end)):
            text = text[text.find("\n") + 1 or len(text) :]
        begun = self.share(len(self.text) - len(text))
        return CorpusStretch(max(self.first, line), text, self.done, begun)

    def pieces(self, enough: float) -> tuple[CorpusStretch, CorpusStretch]:
        """Whole lines of at least `enough` characters, if there are, and the rest."""
        at = self.text.find("\n", int(min(max(enough - 1, 0), len(self.text)))) + 1 or len(
            self.text
        )
        head = CorpusStretch(self.first, self.text[:at], self.share(at), self.begun)
        return head, CorpusStretch(head.end, self.text[at:], self.done, head.done)

    def share(self, at: int) -> float:
        """Share of the reading that is done behind the first `at` characters."""
        whole = len(self.text)
        return self.begun + (self.done - self.begun) * at / whole if at < whole else self.done


@dataclass(frozen=True)
class CorpusLine:
    """One dated line of a corpus.

    when    Unix seconds
    done    share of the reading that is done with it
    source  name of its source, "" where it names none
    author  who wrote it, "" where it does not say
    """

    number: int
    text: str
    when: float
    done: float
    source: str = ""
    author: str = ""


def open_corpus(path: Path) -> IO[bytes]:
    """Open a corpus file as it lies on the disk, plain or .xz.

    Raises InputError naming the file and what is accepted.
    """
    if path.exists() and not path.is_file():
        raise InputError(
            f"{path}: not a regular file, and a corpus is read more than once; write it to a text "
            "or JSONL file (plain or .xz)."
        )
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; a text or JSONL corpus (plain or .xz) is expected."
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; a corpus with at least one line is expected.")
    if path.suffix != ".xz":
        with path.open("rb") as probe:
            if b"\0" in probe.read(4096):
                raise InputError(
                    f"{path}: binary data; UTF-8 text, one sentence a line, is expected."
                )
    return path.open("rb")


def unsaid(number: int, reason: str) -> None:
    """A `Fault` for who does not ask."""


def stretches(share: CorpusShare, fault: Fault = unsaid) -> Iterator[CorpusStretch]:
    """The stretches of one share, in order; a line that is not UTF-8 text is empty in them."""
    path = Path(share.path)
    line = number = 0
    last: CorpusStretch | None = None
    with open_corpus(path) as stored:
        size = path.stat().st_size
        file: IO[bytes] = lzma.open(stored) if path.suffix == ".xz" else stored  # noqa: SIM115
        try:
            while data := file.read(STRETCH_BYTES):
                data += file.readline()
                if number % share.count == share.index:
                    if last is not None:
                        yield last
                    begun = 0.0 if last is None else last.done
                    data = data if line else data.removeprefix(BOM_UTF8)
                    text = _decoded(data, line, fault)
                    last = CorpusStretch(line, text, stored.tell() / size, begun)
                number += 1
                line += data.count(b"\n")
        except (lzma.LZMAError, EOFError) as error:
            raise InputError(f"{path}: a damaged .xz file: {error}.") from error
    if last is not None:  # the share may end before the file does
        yield replace(last, done=1.0)


def _decoded(data: bytes, first: int, fault: Fault) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        lines = data.split(b"\n")
    for at, line in enumerate(lines):
        try:
            line.decode()
        except UnicodeDecodeError:
            fault(first + at, NOT_UTF8)
            lines[at] = b""
    return b"\n".join(lines).decode()


def dated_line(number: int, text: str, done: float, zone: tzinfo = UTC) -> CorpusLine:
    """A line of JSONL; raises InputError for what is none with a date and a text.

    zone  of a date without a time, and of a time without a zone
    """
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("not valid JSON; an object with date and text is accepted.") from error
    if not isinstance(record, Mapping):
        raise InputError("not a JSON object; an object with date and text is accepted.")
    body = record.get("content") or record.get("text")
    when = _when(record.get("date"), zone)
    if not isinstance(body, str) or when is None:
        raise InputError('needs "date" (ISO, 1600 to 2300) and "text" or "content".')
    title, author = record.get("title"), record.get("author")
    text = f"{title}\n{body}" if title else body
    who = author if isinstance(author, str) else ""
    return CorpusLine(number, text, when, done, _source_of(record), who)


def _source_of(record: Mapping[str, object]) -> str:
    """The name of a line's source, "" for none; a number is a name, too."""
    source = record.get("source")
    if source is None:
        return ""
    if isinstance(source, bool) or not isinstance(source, str | int):
        raise InputError(
            f'"source" is no text; a name of at most {MOST_NAME} characters is accepted, or none.'
        )
    name = str(source).strip()
    if not fits_source(name):
        raise InputError(
            f'"source" {name[:40]!r}: a name of at most {MOST_NAME} characters without control '
            "characters is accepted, or none."
        )
    return name


def fits_source(name: str) -> bool:
    """Whether it can be the name of a source."""
    return len(name) <= MOST_NAME and not _UNFIT.search(name)


def _when(value: Any, zone: tzinfo) -> float | None:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        return None
    return (moment if moment.tzinfo else fixed(moment.replace(tzinfo=zone))).timestamp()


@dataclass(frozen=True)
class Offset:
    """Where the reading of a share goes on.

    A process that starts again asks the server for the offset behind the last push that it has
    taken, so that nothing is learnt twice and nothing is left out, whatever size the blocks were
    cut to.

    epoch       how often the share was read to its end, 0, 1, …
    line        number of the next line in the file, from 0
    tokens      tokens read so far, in all epochs
    characters  characters a token took of late, by which the next block is cut; 0: not known
    """

    epoch: int = 0
    line: int = 0
    tokens: int = 0
    characters: float = 0.0

    def __str__(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, text: str) -> Offset:
        """Inverse of `str`, "" is the beginning; InputError for anything else."""
        if not text:
            return cls()
        try:
            offset = cls(**json.loads(text))
            whole = (offset.epoch, offset.line, offset.tokens)
            if not all(type(n) is int and n >= 0 for n in whole) or offset.characters < 0:
                raise ValueError
        except (ValueError, TypeError) as error:
            raise InputError(f"{text[:80]!r} is not an offset in a corpus.") from error
        return offset
