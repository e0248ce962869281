"""Records of a stream that is no web page: JSON objects, each with a place in the stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from embedding.sources.base import Inline, Pseudonyms
from embedding.sources.config import SourceConfig
from embedding.sources.dotted import dotted, dotted_text
from embedding.sources.kinds import COMMON_SETTINGS
from embedding.sources.markup import plain_text
from embedding.sources.times import parse_time

STREAM_SETTINGS = (*COMMON_SETTINGS, "url", "stream", "password", "title", "time", "text", "author")
STREAM_FIELDS = {"text": "text", "time": "date", "title": "title", "author": "author"}


def need_stream(source: SourceConfig) -> None:
    """ValueError where `stream` is missing."""
    if not source.stream:
        raise ValueError(f"a {source.kind} source needs `stream`, the name of what is read")


class StreamedRecords:
    """Makes items of the records of one stream."""

    def __init__(self, source: SourceConfig, pseudonyms: Pseudonyms) -> None:
        self._source, self._pseudonyms = source, pseudonyms

    def item(self, place: str, record: Any, arrived: datetime | None) -> Inline | None:
        """A record; `place` is its own in the stream, `arrived` counts where it states no time."""
        source = self._source
        text = plain_text(dotted_text(record, source.text))
        if not text:
            return None
        stated = dotted(record, source.time)
        return Inline(
            key=f"{source.kind}://{source.name}/{place}",
            text=text,
            published_at=parse_time(stated, source.timezone, arrived) if stated else arrived,
            title=dotted_text(record, source.title),
            author=self._pseudonyms.grouped(source.name, dotted_text(record, source.author)),
        )


def decoded_record(value: bytes | str) -> Any:
    """A value that is JSON; None where it is none."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def decoded_fields(fields: Mapping[bytes, bytes]) -> Any:
    """Named values; one alone may be an object in JSON with all of them in it."""
    if len(fields) == 1:
        found = decoded_record(next(iter(fields.values())))
        if isinstance(found, dict):
            return found
    return {
        name.decode(errors="replace"): value.decode(errors="replace")
        for name, value in fields.items()
    }
