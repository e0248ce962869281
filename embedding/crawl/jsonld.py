"""JSON-LD of a page, as sites write it: a description of the page that machines are meant to read.

Sites put comments or CDATA around it, line ends into its strings, commas and semicolons behind it,
and entities in place of quotes. Each is read; a block that still is no JSON says nothing.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Collection, Iterator
from typing import Any

_MOST_CHARACTERS = 200_000
_MOST_CHILDREN = 50
_DEPTH = 6
_OTHER_THINGS = frozenset(
    {
        *("about", "author", "citation", "comment", "creator", "hasPart", "image", "isBasedOn"),
        *("isPartOf", "itemListElement", "mentions", "publisher", "relatedLink", "review"),
        *("sharedContent", "video"),
    }
)
"""Under these names stands what is not the page itself."""
_DECODER = json.JSONDecoder(strict=False)
_WRAPPING = re.compile(r"\s*(?:<!--|//|/\*|\*/|<!\[CDATA\[|\ufeff|;)")
_LAST_COMMA = re.compile(r",(\s{0,200}[}\]])")
_BEGIN = re.compile(r"[\[{]")


def blocks(tree: Any) -> list[Any]:
    """The JSON values of all JSON-LD scripts of a parsed page (lxml), in order."""
    scripts = tree.xpath(
        "//script[starts-with(normalize-space(translate(@type, 'APLICTONJSD', 'aplictonjsd')), "
        "'application/ld+json')]"
    )
    values = (_value(script.text_content()[:_MOST_CHARACTERS]) for script in scripts)
    return [value for value in values if value is not None]


def objects(value: Any, but: Collection[str] = (), depth: int = _DEPTH) -> Iterator[dict[str, Any]]:
    """Every object inside a value, an object before those in it; not what is under `but`."""
    if isinstance(value, dict):
        yield value
        children = [child for name, child in value.items() if name not in but]
    else:
        children = value if isinstance(value, list) else []
    if depth:
        for child in children[:_MOST_CHILDREN]:
            yield from objects(child, but, depth - 1)


def described(value: Any) -> Iterator[dict[str, Any]]:
    """The objects with which a page describes itself: not those it lists, cites or shows."""
    return objects(value, _OTHER_THINGS)


def types_of(value: dict[str, Any]) -> set[str]:
    """Names of an object's types, without an address before them."""
    types = value.get("@type")
    names = types if isinstance(types, list) else [types]
    return {name.rsplit("/", 1)[-1] for name in names if isinstance(name, str)}


def _value(text: str) -> Any:
    while wrapping := _WRAPPING.match(text):
        text = text[wrapping.end() :]
    begin = _BEGIN.search(text)
    if begin is None:
        return None
    text = text[begin.start() :]
    for form in (text, html.unescape(text), _LAST_COMMA.sub(r"\1", html.unescape(text))):
        try:
            return _DECODER.raw_decode(form)[0]
        except (ValueError, RecursionError):
            continue
    return None
