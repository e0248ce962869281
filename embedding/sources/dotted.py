"""JSON of answers, and dotted names into its values: `data.items`, `user.name`, `pages.0.url`."""

from __future__ import annotations

import json
from json.scanner import py_make_scanner  # type: ignore[attr-defined]
from typing import Any

from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage

_AT_ONCE = 1 << 18
"""Characters that are parsed in one step; it lets no other thread run, and takes some 10 ms."""


def parse_json(data: str | bytes) -> Any:
    """As `json.loads`, for a thread: much is read in steps, between which the event loop goes on.

    Raises ValueError and RecursionError.
    """
    text = data if isinstance(data, str) else data.decode(json.detect_encoding(data))
    decoder = json.JSONDecoder()
    if len(text) > _AT_ONCE:
        decoder.scan_once = py_make_scanner(decoder)  # type: ignore[attr-defined]
    return decoder.decode(text)


def page_json(page: FetchedPage) -> Any:
    """The JSON of an answer; raises FetchError (`parse`)."""
    try:
        return parse_json(page.text)
    except (ValueError, RecursionError) as error:
        raise FetchError("parse", f"{page.url}: the answer is not JSON.") from error


def dotted(value: Any, name: str | None) -> Any:
    """What `name` points at inside `value`; None when it points at nothing; `` is `value`."""
    if name is None:
        return None
    for part in name.split(".") if name else ():
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def dotted_text(value: Any, name: str | None) -> str:
    """`dotted` as text; empty for anything that is no string or number."""
    inner = dotted(value, name)
    if isinstance(inner, bool) or not isinstance(inner, str | int | float):
        return ""
    return str(inner)
