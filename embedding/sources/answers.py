"""Items in the JSON that a rendered page fetches for itself."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from embedding.sources.base import Found
from embedding.sources.config import AUTO, SourceConfig
from embedding.sources.dotted import dotted, dotted_text, parse_json
from embedding.sources.links import join
from embedding.sources.markup import LONGEST_FIELD, plain_text
from embedding.sources.times import parse_time

ANSWER_FIELDS = ("id", "link", "title", "time", "text", "author")
_LARGEST = 4 * 1024 * 1024
"""Bytes of an answer that is looked into."""

_DEEPEST = 6
_MOST = 2_000
"""Values of one answer that are looked at."""
_SAMPLE = 20
_SHORTEST = 4
"""Fewest characters that the texts of a list have on average."""
_PRESENT = 0.5
"""Share of a list's objects that must have a field."""
_LONGEST_NAME = 200
"""Characters of a field's name that are looked at."""
_HINTS: dict[str, re.Pattern[str]] = {
    "text": re.compile(r"body|contents?$|text|message|comment$|memo|desc|article", re.IGNORECASE),
    "id": re.compile(r"(?:^|[._a-z])(?:id|no|seq|idx|key|uid|srl)$", re.IGNORECASE),
    "time": re.compile(r"time|date|created|published|updated|_at$|At$", re.IGNORECASE),
    "author": re.compile(r"(?:author|writer|nick|name)[^.]*$|^(?:user|owner)$", re.IGNORECASE),
    "title": re.compile(r"title|subject|headline", re.IGNORECASE),
    "link": re.compile(r"url|link|href|permalink|path", re.IGNORECASE),
}
_ADDRESS = re.compile(r"^(?:https?:)?/[^\s]*$")


@dataclass(frozen=True)
class Shape:
    """Where the items of an answer are, all as dotted names; None where there is no such field."""

    items: str
    fields: Mapping[str, str]
    size: int
    """Characters of text under it; of several lists the one with most holds the posts."""


def find_shape(answer: Any, *, wants_text: bool = True) -> Shape | None:
    """The list in `answer` that looks most like posts or comments; None when none does.

    With `wants_text` its objects must have a text, without it an address; in both cases an id, a
    time or an address by which they are told apart.
    """
    shapes = [
        shape
        for path, rows in object_lists(answer)
        if (shape := _shape(path, rows, wants_text)) is not None
    ]
    return max(shapes, key=lambda shape: shape.size, default=None)


def object_lists(answer: Any) -> Iterator[tuple[str, Sequence[dict[str, Any]]]]:
    """Lists of objects with their dotted names, outermost first."""
    waiting: list[tuple[str, Any, int]] = [("", answer, 0)]
    looked = 0
    while waiting and looked < _MOST:
        path, value, depth = waiting.pop(0)
        looked += 1
        if isinstance(value, list):
            rows = [row for row in value if isinstance(row, dict)]
            if rows and len(rows) == len(value):
                yield path, rows
        if depth < _DEEPEST:
            inner = value.items() if isinstance(value, dict) else ()
            waiting += [
                (f"{path}.{key}" if path else key, child, depth + 1)
                for key, child in inner
                if isinstance(child, dict | list) and "." not in key
            ]


def _shape(path: str, rows: Sequence[dict[str, Any]], wants_text: bool) -> Shape | None:
    columns = _columns(rows[:_SAMPLE])
    least = _PRESENT * min(len(rows), _SAMPLE)
    full = {name: values for name, values in columns.items() if len(values) >= least}
    fields = _fields(full)
    identifying = {"id", "time", "link"} & set(fields)
    needed = "text" if wants_text else "link"
    if needed not in fields or not identifying:
        return None
    size = sum(len(str(value)) for value in full[fields[needed]])
    return Shape(path, fields, size * len(rows) // min(len(rows), _SAMPLE))


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """Strings and numbers of the objects, and of the objects in them, by dotted name."""
    columns: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in row.items():
            inner = value.items() if isinstance(value, dict) else ()
            for key, cell in [(name, value), *((f"{name}.{k}", v) for k, v in inner)]:
                plain = isinstance(cell, str | int | float) and not isinstance(cell, bool)
                if plain and "." not in key.replace(f"{name}.", "", 1) and cell != "":
                    columns.setdefault(key, []).append(cell)
    return columns


def _fields(columns: dict[str, list[Any]]) -> dict[str, str]:
    """The name of each field among the columns; a column is used once."""
    fields: dict[str, str] = {}
    for field in ("time", "link", "title", "author", "id"):
        fitting = [
            name
            for name, values in columns.items()
            if name not in fields.values()
            and _HINTS[field].search(name[:_LONGEST_NAME])
            and all(_fits(field, value) for value in values)
        ]
        if fitting:
            # The shallowest name, then the plainest: `id` before `parent_id`.
            fields[field] = min(fitting, key=lambda name: (name.count("."), len(name)))
    left = {name: values for name, values in columns.items() if name not in fields.values()}
    text = max(left, key=lambda name: _weight(name, left[name]), default=None)
    if text is not None and _weight(text, left[text]) >= _SHORTEST:
        fields["text"] = text
    return fields


def _fits(field: str, value: Any) -> bool:
    match field:
        case "time":
            return parse_time(value) is not None
        case "link":
            return isinstance(value, str) and bool(_ADDRESS.match(value))
        case "id":
            return len(str(value)) <= 80 and not any(c.isspace() for c in str(value))
        case "author" | "title":
            return isinstance(value, str) and len(value) <= 300 and not _ADDRESS.match(value)
    return True


def _weight(name: str, values: Sequence[Any]) -> float:
    """How much a column looks like the text: its mean length, three times so with a known name."""
    strings = [value for value in values if isinstance(value, str)]
    if len(strings) < len(values) or all(_ADDRESS.match(value) for value in strings):
        return 0.0
    mean = sum(map(len, strings)) / len(strings)
    spoken = sum(1 for value in strings if any(c.isspace() or ord(c) > 0x7F for c in value))
    hinted = 3.0 if _HINTS["text"].search(name[:_LONGEST_NAME]) else 1.0
    return mean * hinted if spoken * 2 >= len(strings) or hinted > 1 else 0.0


class PageAnswers:
    """Collects the items of one page from its answers, in the order in which they came. Threads may
    take answers meanwhile.

    `source.answers` names the addresses to read, or is `auto`: then lists are found by their
    shape, and of several kinds of answer the one with most text holds the items. Nothing is
    collected without it.
    """

    def __init__(self, source: SourceConfig) -> None:
        self._source = source
        self._auto = source.answers == AUTO
        self._wanted = None if self._auto else re.compile(source.answers or r"(?!)")
        self._named = not self._auto and source.items is not None
        self._groups: dict[str, dict[str, Found]] = {}
        self._sizes: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def exclusive(self) -> bool:
        """Whether items come from answers alone, as `items` names a list in them."""
        return self._wanted is not None and bool(self._source.answers)

    def take(self, url: str, body: bytes) -> None:
        """Look into one answer; what is no JSON, or holds no items, is passed over."""
        wanted = self._source.answers and (self._wanted is None or self._wanted.search(url))
        if not wanted or len(body) > _LARGEST or body.lstrip()[:1] not in (b"{", b"["):
            return
        try:
            answer = parse_json(body)
        except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
            return
        shape = self._shape(answer)
        items = dotted(answer, shape.items) if shape else None
        # The page of one post fetches that post alone.
        items = [items] if self._named and isinstance(items, dict) else items
        if shape is None or not isinstance(items, list):
            return
        # Addresses of one endpoint differ in their query; a list elsewhere is another kind.
        group = f"{urlsplit(url)._replace(query='', fragment='').geturl()} {shape.items}"
        records = [_record(item, shape, url) for item in items]
        with self._lock:
            seen = self._groups.setdefault(group, {})
            for it in records:
                seen.setdefault(it.link or it.id or f"{it.author}\0{it.time}\0{it.text}", it)
            self._sizes[group] = self._sizes.get(group, 0) + shape.size

    def items(self) -> list[Found]:
        with self._lock:
            if not self._groups:
                return []
            largest = max(self._groups, key=lambda group: self._sizes[group])
            return list(self._groups[largest].values())

    def _shape(self, answer: Any) -> Shape | None:
        source = self._source
        if not self._named:
            return find_shape(
                answer, wants_text=not (self._auto and source.items) or bool(source.text)
            )
        names = {name: getattr(source, name) for name in ANSWER_FIELDS}
        return Shape(source.items or "", {k: v for k, v in names.items() if v}, 1)


def _record(item: Any, shape: Shape, url: str) -> Found:
    values = {
        name: dotted_text(item, shape.fields[name])[:LONGEST_FIELD] if name in shape.fields else ""
        for name in ANSWER_FIELDS
    }
    link = join(url, values["link"])
    return Found(**{**values, "link": link, "text": plain_text(values["text"])})
