"""Items in the JSON that a rendered page fetches for itself."""

from __future__ import annotations

import re
import threading
from typing import Any
from urllib.parse import urlsplit

from embedding.sources.base import Found
from embedding.sources.config import AUTO, SourceConfig
from embedding.sources.dotted import dotted, dotted_text, parse_json
from embedding.sources.links import join
from embedding.sources.markup import LONGEST_FIELD, plain_text
from embedding.sources.shapes import Shape, find_shape

ANSWER_FIELDS = ("id", "link", "title", "time", "text", "author")
_LARGEST = 4 * 1024 * 1024
"""Bytes of an answer that is looked into."""


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
        if (
            not self._source.answers
            or len(body) > _LARGEST
            or body.lstrip()[:1] not in (b"{", b"[")
        ):
            return
        if self._wanted is not None and not self._wanted.search(url):
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
        found = [_found(item, shape, url) for item in items]
        keys = [one.link or one.id or f"{one.author}\0{one.time}\0{one.text}" for one in found]
        with self._lock:
            seen = self._groups.setdefault(group, {})
            for key, one in zip(keys, found, strict=True):
                seen.setdefault(key, one)
            self._sizes[group] = self._sizes.get(group, 0) + shape.size

    def found(self) -> list[Found]:
        """The items so far."""
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


def _found(item: Any, shape: Shape, url: str) -> Found:
    values = {
        name: dotted_text(item, shape.fields[name])[:LONGEST_FIELD] if name in shape.fields else ""
        for name in ANSWER_FIELDS
    }
    link = join(url, values["link"])
    return Found(**{**values, "link": link, "text": plain_text(values["text"])})
