"""Which columns of a file hold date, text, title, source and author: by name, then by value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from embedding.importing.dates import DateReading
from embedding.importing.readers import RECORD_FIELDS
from embedding.kernel.errors import ConfigError, InputError

_KNOWN: tuple[tuple[str, Mapping[str, str]], ...] = (
    (
        "BigKinds",
        {
            "date": "일자",
            "source": "언론사",
            "author": "기고자",
            "title": "제목",
            "text": "본문",
        },
    ),
    ("Media Cloud", {"date": "publish_date", "source": "media_name", "text": "title"}),
    ("GDELT", {"date": "seendate", "source": "domain", "text": "title"}),
)
"""Exports whose columns have names of their own; all of them must be there."""
_NAMES = {
    "date": """date publishedat publishdate published pubdate createdat created datetime timestamp
        time 일자 날짜 작성일 작성일시 작성일자 작성시간 등록일 등록일시 등록일자
        게시일 게시일시 게시일자 발행일 입력일 보도일자 일시 updated updatedat""",
    "text": """text content contents body fulltext article message comment description
        본문 내용 글 원문 기사내용 기사본문 게시글 댓글 댓글내용 요약""",
    "title": "title headline subject 제목 기사제목 청원제목",
    "source": """source media medianame publisher outlet newspaper site domain channel forum board
        출처 언론사 매체 매체명 신문사 사이트 게시판 채널""",
    "author": """author writer user username userid nickname byline creator journalist
        작성자 글쓴이 기고자 기자 기자명 닉네임 아이디""",
}
"""How columns are called, the likeliest first; without spaces, points and lines."""
_HINTS = {
    "date": re.compile(r"date|time|일자|날짜|일시|작성일|등록일|게시일"),
    "text": re.compile(r"text|content|body|본문|내용"),
}
_FITS = 0.6
"""Share of a column's values that must be dates."""
_LEAST = 4
"""Characters that values of a text have on average, at least."""


def find_columns(
    columns: Mapping[str, pa.StringArray], dates: DateReading, given: Mapping[str, str]
) -> dict[str, str]:
    """The column of each field, in the order of `RECORD_FIELDS`; those that none has are left out.

    columns  a sample of the file
    given    what a person said, which counts
    """
    for _, known in _KNOWN:
        if set(known.values()) <= set(columns) and not given:
            return {name: known[name] for name in RECORD_FIELDS if name in known}
    columns = {key: each for key, each in columns.items() if key.strip()}
    found = dict(given)
    for name in ("date", "source", "author", "title", "text"):
        if name not in found:
            free = {key: each for key, each in columns.items() if key not in found.values()}
            column = _by_name(name, free, dates) or _by_value(name, free, dates)
            if column is not None:
                found[name] = column
    if "text" not in found and "title" in found:
        found["text"] = found.pop("title")
    return {name: found[name] for name in RECORD_FIELDS if name in found}


def check_columns(path: Path, mapping: Mapping[str, str], columns: Sequence[str]) -> None:
    """Raises InputError where date or text is missing, or a column is not in the file."""
    shown = ", ".join(columns) or "none"
    for name, column in mapping.items():
        if column not in columns:
            raise InputError(f"{path}: --map {name}={column}: no such column; there are {shown}.")
    for name, example in (("date", "date=작성일"), ("text", "text=본문")):
        if name not in mapping:
            raise InputError(
                f"{path}: no column of {name}s is found among {shown}; name it, as in "
                f"--map {example}."
            )


def parse_mapping(given: Sequence[str]) -> dict[str, str]:
    """FIELD=COLUMN of --map; ConfigError for what is none."""
    mapping: dict[str, str] = {}
    for each in given:
        name, _, column = each.partition("=")
        if name not in RECORD_FIELDS or not column or name in mapping:
            raise ConfigError(
                f"--map {each}: FIELD=COLUMN is accepted, as in date=작성일, once for each of "
                f"{', '.join(RECORD_FIELDS)}."
            )
        mapping[name] = column
    return mapping


def _by_name(name: str, columns: Mapping[str, pa.StringArray], dates: DateReading) -> str | None:
    plain = {re.sub(r"[\s_.\-]+", "", key).lower(): key for key in reversed(list(columns))}
    for known in _NAMES[name].split():
        key = plain.get(known)
        if key is not None and (name != "date" or _are_dates(columns[key], dates)):
            return key
    return None


def _by_value(name: str, columns: Mapping[str, pa.StringArray], dates: DateReading) -> str | None:
    hint = _HINTS.get(name)
    if hint is None:
        return None
    ranked = sorted(columns, key=lambda key: not hint.search(key.lower()))
    if name == "date":
        return next((key for key in ranked if _are_dates(columns[key], dates)), None)
    best = max(ranked, key=lambda key: _length(columns[key]), default=None)
    return best if best is not None and _length(columns[best]) >= _LEAST else None


def _are_dates(column: pa.StringArray, dates: DateReading) -> bool:
    values = column.drop_null()
    if not len(values):
        return False
    when = dates.times(values).when
    return bool(len(when) - when.null_count >= _FITS * len(values))


def _length(column: pa.StringArray) -> float:
    """Mean length of values that hold spaces or letters beyond ASCII, as texts do."""
    values = [value for value in column.to_pylist() if value]
    spoken = [value for value in values if not value.isascii() or len(value.split()) > 1]
    return sum(map(len, spoken)) / len(values) if values else 0.0
