"""JSON-LD of a page, as sites write it: a description of the page that machines are meant to read.

Sites wrap it in comments or CDATA, put several values into one block, leave line ends, quotes and
wrong escapes in strings, forget commas or write one too many, cut it off, and write entities in
place of quotes. Whatever can be made out of a block is read.
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
_NEST = 40
"""Values in values that are looked at; what is deeper is passed over."""
_DECODER = json.JSONDecoder(strict=False)
_WRAPPING = re.compile(r"(?:\s|<!--|//|/\*|\*/|<!\[CDATA\[|\ufeff|;)*+")
_QUOTE = re.compile(r'\\"|[“”„]')
_BEGIN = re.compile(r"[\[{]")
_STRINGS_END = (
    r"""\s*(?:[:}\]]|//|/\*|\Z|"[^"\n]{1,80}"\s*:|[,;]\s*(?:[\[{}\]',;<]|//|/\*|-?\d|null|true|false|"""
    r"""[\w$@-]{1,40}\s*:|"(?:[^"\\]|\\.){0,200}+"?\s*[:,;\]}]))"""
)
"""What is behind the quote that ends a string; one within it that was not escaped has other text
behind it."""
_TOKEN = re.compile(
    r"/\*(?:[^*]|\*(?!/))*+(?:\*/)?|//[^\n]*|<!--|-->|<br ?/?>|<!\[CDATA\[|\]\]>"
    r"|(?P<mark>[{}\[\]])"
    rf"""|(?:"(?P<string>(?:[^"\\]|\\.|"(?!{_STRINGS_END}))*+)"?"""
    r"""|'(?P<single>(?:[^'\\]|\\.)*+)'?"""
    r"""|(?P<word>[A-Za-z_$@][\w$@-]*+(?=\s*:(?!//))|(?:(?!//|/\*)[^,;{}\[\]"'\n])++))"""
    r"(?P<name>\s*:)?",
    re.DOTALL,
)
_ESCAPE = re.compile(r'\\(?P<known>["\\/bfnrt]|u[0-9a-fA-F]{4})|\\|(?P<quote>")')


def blocks(tree: Any) -> list[Any]:
    """The JSON values of all JSON-LD scripts of a parsed page (lxml), in order."""
    scripts = tree.xpath(
        "//script[starts-with(normalize-space(translate(@type, 'APLICTONJSD', 'aplictonjsd')), "
        "'application/ld+json')]"
    )
    texts = (script.text_content()[:_MOST_CHARACTERS] for script in scripts)
    return [value for text in texts for value in _values(text)]


def texts_of(value: Any) -> Iterator[str]:
    """The texts that a property has: its own, those of a list, or that of `{"@value": …}`."""
    if isinstance(value, str):
        yield html.unescape(value)
    elif isinstance(value, dict):
        yield from texts_of(value.get("@value"))
    elif isinstance(value, list):
        for child in value[:_MOST_CHILDREN]:
            yield from texts_of(child) if not isinstance(child, list) else ()


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


def _values(text: str) -> Iterator[Any]:
    """The JSON values of one script; from a fault on what can be made out of it."""
    text = text[_WRAPPING.match(text).end() :]  # type: ignore[union-attr]
    if not re.search(r"[\[{]\s*[\"'\[{]", text):
        text = _QUOTE.sub('"', html.unescape(text))
    end = 0
    while begin := _BEGIN.search(text, end):
        try:
            value, end = _DECODER.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            yield from _made_out(text[begin.start() :])
            return
        yield value


def _made_out(text: str) -> list[Any]:
    """Values with comments, wrong escapes or open quotes in them, with commas, quotes of names or
    an end that are missing: commas say nothing, and a name is what has a colon behind it."""
    values: list[Any] = []
    around: list[Any] = []
    inside: Any = values
    name: str | None = None
    for token in _TOKEN.finditer(text):
        mark, string = token["mark"], token["string"]
        string = token["single"] if string is None else string
        if mark in ("}", "]"):
            inside, name = around.pop() if around else values, None
            continue
        if mark:
            value: Any = {} if mark == "{" else []
        elif string is None and not (token["word"] or "").strip(" \t\r:"):
            continue
        else:
            value = _plain(token["word"]) if string is None else _unescaped(string)
            if token["name"]:
                name = str(value)
                continue
        if isinstance(inside, dict) and name is not None:
            inside[name] = value
        elif isinstance(inside, list) and (mark or around):
            inside.append(value)
        if mark:
            around.append(inside)
            inside = value if len(around) <= _NEST else []
        name = None
    return [value for value in values if any(objects(value))]


def _plain(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:
        return word.strip()


def _unescaped(string: str) -> str:
    """What a string of JSON says; a backslash before another character than JSON knows is none."""
    valid = _ESCAPE.sub(
        lambda escape: escape[0] if escape["known"] else '\\"' if escape["quote"] else "", string
    )
    return str(json.loads(f'"{valid}"', strict=False))
