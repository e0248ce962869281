"""Reading a dated corpus: JSON lines in, documents and named faults out."""

from __future__ import annotations

import json
import logging
import lzma
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from embedding.kernel.errors import InputError
from yeoron_simweb.config import PARTS, SimwebConfig

log = logging.getLogger(__name__)

ACCEPTED = 'a JSON object with "date" (YYYY-MM-DD…) and "content" or "text", "title" optional'
_NAMED_FAULTS = 10
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class CorpusDocument:
    """One dated text. `timed` says that `when` (UTC) has a time of day, not only a date.

    `part` is the part of the simulated web that plays it, None where the shares decide; `author`
    is empty where the corpus names none.
    """

    when: datetime
    text: str
    title: str = ""
    category: str = ""
    source: str = ""
    part: str | None = None
    timed: bool = False
    author: str = ""


@dataclass(frozen=True)
class PlaybackCorpus:
    """Documents to play, and how many lines were left out; `name` says where they are from."""

    name: str
    documents: tuple[CorpusDocument, ...]
    malformed: int = 0


def parse_document(record: object) -> CorpusDocument:
    """A document from one decoded JSON value; raises InputError with the reason alone."""
    if not isinstance(record, Mapping):
        raise InputError("not a JSON object")
    text = _text(record, "content") or _text(record, "text")
    if not text:
        raise InputError('no text under "content" or "text"')
    when, timed = _when(record.get("date"))
    part = record.get("part")
    if part is not None and part not in PARTS:
        raise InputError(f'"part" is none of {", ".join(PARTS)}')
    return CorpusDocument(
        when=when,
        text=text,
        title=" ".join(_text(record, "title").split()),
        category=_text(record, "category"),
        source=_text(record, "source"),
        part=part,
        timed=timed,
    )


def parse_lines(lines: Iterable[bytes], name: str, config: SimwebConfig) -> PlaybackCorpus:
    """Documents of a stream of JSON lines; a malformed line is counted and logged by its place."""
    documents: list[CorpusDocument] = []
    malformed = 0
    seen: list[datetime] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            document = parse_document(_decode(line))
        except InputError as error:
            malformed += 1
            if malformed <= _NAMED_FAULTS:
                sentence = "%s:%d: %s; %s is accepted. The line is left out."
                log.warning(sentence, name, number, error, ACCEPTED)
            continue
        seen = [min([*seen, document.when]), max([*seen, document.when])]
        if _within(document.when, config):
            documents.append(document)
    if malformed > _NAMED_FAULTS:
        more = malformed - _NAMED_FAULTS
        log.warning("%s: %d more malformed lines were left out.", name, more)
    if not documents:
        raise InputError(_nothing(name, seen, malformed, config))
    documents.sort(key=lambda d: d.when)
    return PlaybackCorpus(name, tuple(documents), malformed)


def read_corpus(path: Path, config: SimwebConfig) -> PlaybackCorpus:
    """Read a .jsonl or .jsonl.xz file; raises InputError where it is missing or unreadable."""
    try:
        with lzma.open(path) if path.suffix == ".xz" else path.open("rb") as stream:
            return parse_lines(stream, str(path), config)
    except FileNotFoundError as error:
        raise InputError(
            f"{path}: no such corpus; a .jsonl or .jsonl.xz file is expected."
        ) from error
    except (lzma.LZMAError, EOFError) as error:
        raise InputError(
            f"{path}: not a complete xz file ({error}); plain files end in .jsonl."
        ) from error
    except OSError as error:
        raise InputError(
            f"{path}: the corpus cannot be read: {error.strerror or error}."
        ) from error


def write_corpus(corpus: PlaybackCorpus, path: Path) -> int:
    """Write a document a line as `yeoron train --dated` reads it; how many there are.

    The source of a line is the part of the simulated web that plays it, where that is known.
    Raises InputError where the file cannot be written.
    """
    try:
        with path.open("w", encoding="utf-8") as stream:
            for each in corpus.documents:
                line = {
                    "date": each.when.isoformat(),
                    "source": each.part or each.source,
                    "title": each.title,
                    "text": each.text,
                    "author": each.author,
                }
                filled = {key: value for key, value in line.items() if value}
                stream.write(json.dumps(filled, ensure_ascii=False) + "\n")
    except OSError as error:
        raise InputError(
            f"{path}: the corpus cannot be written: {error.strerror or error}."
        ) from error
    return len(corpus.documents)


def _decode(line: bytes) -> object:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise InputError("not JSON") from error


def _text(record: Mapping[str, object], key: str) -> str:
    value = record.get(key)
    if not isinstance(value, str):
        return ""
    # JSON can hold lone surrogates and control characters, which UTF-8 and HTML cannot.
    text = value.encode("utf-8", "replace").decode().replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub(" ", text).strip()


def _when(value: object) -> tuple[datetime, bool]:
    if not isinstance(value, str):
        raise InputError('no "date"')
    try:
        when = datetime.fromisoformat(value.strip())
        when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InputError('"date" is no date') from error
    if not 1970 <= when.year < 2200:
        raise InputError('"date" lies outside 1970–2199')
    return when, len(value.strip()) > len("YYYY-MM-DD")


def _within(when: datetime, config: SimwebConfig) -> bool:
    day = when.date()
    return (config.first_day is None or day >= config.first_day) and (
        config.last_day is None or day <= config.last_day
    )


def _nothing(name: str, seen: list[datetime], malformed: int, config: SimwebConfig) -> str:
    if not seen:
        return f"{name}: no usable document ({malformed} malformed lines); {ACCEPTED} is accepted."
    return (
        f"{name}: no document from {config.first_day or 'the start'} to "
        f"{config.last_day or 'the end'}; the corpus covers {seen[0]:%Y-%m-%d} to "
        f"{seen[-1]:%Y-%m-%d}."
    )


def from_records(records: Iterable[Mapping[str, object]], config: SimwebConfig) -> PlaybackCorpus:
    """A corpus from Python mappings with the keys of a corpus line."""
    lines = (json.dumps(record, ensure_ascii=True).encode() for record in records)
    return parse_lines(lines, "given documents", config)
