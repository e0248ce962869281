"""Links as pages, feeds and answers write them, made whole as browsers do (url.spec.whatwg.org)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote, quote_from_bytes, urlsplit, urlunsplit

_DROPPED = re.compile(r"[\t\n\r]")
_ENDS = "".join(map(chr, range(33)))
"""Control characters and space, which count for nothing at the ends of a link."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_KEPT = "%!$&()*+,;=:@/[]^|~"
_IN_PATH, _IN_QUERY, _IN_FRAGMENT = _KEPT + "'", _KEPT + "?{}`\\", _KEPT + "'?#{}\\"
"""What stays as it is written (WHATWG URL, section 1.3)."""
_NO_HOST = re.compile(r"[\s<>^|]")
_DOT = re.compile(r"%2e", re.IGNORECASE)
_PREFIXES = ("www.", "m.", "mobile.", "news.")
LINK_SELECTOR = "a, [data-href], li[data-url], tr[data-url], [onclick]:not(button):not(input)"
"""CSS selector of what may lead to an article. Buttons lead to what a visitor does."""
_HELD = ("data-href", "data-url", "data-link", "data-next", "data-next-page", "data-page")
_GOING = r"(?:\blocation(?:\.href)?\s*=|\blocation\.(?:assign|replace)\s*\(|\bwindow\.open\s*\()"
GOES = re.compile(_GOING + r"""\s*(['"])([^'"\s]+)\1\s*(?:[;,)}]|$)""")
"""A script that goes to an address which is written whole: nothing is added to it."""
_ADDRESS = re.compile(r"(?:https?:/|\.{1,2})?/")
_CALL = re.compile(
    r"""(?:javascript:\s{0,9})?(?:return )?([\w.$]{1,99})"""
    r"""\(\s{0,9}(['"][^'"\s]+['"]\s*[,)]|\d{1,19}\s*[,)])([^()]{0,400})"""
)
"""A script that is called with an address or a number first, as in `goView('/news/12', 7)`."""
_TERM = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|[\w$.]+""")
_VARIABLE = re.compile(r"(?:var|let|const)\s+([\w$]+)\s*=\s*([^;,\n]{1,400})")
_CODED = re.compile(r"\b(?:encodeURI(?:Component)?|escape|String)\b")


def join(base: str, link: str | None, encoding: str = "utf-8") -> str:
    """The http or https address that `link` means on the page `base`; "" when it means none.

    encoding  of the page: letters of a query are sent in it, those of a path always in UTF-8

    Every value that is written stays: also one that is percent-encoded in another encoding, empty,
    or without a name. One link that cannot be read must never cost the others.
    """
    written = _DROPPED.sub("", (link or "").strip(_ENDS))
    if not written:
        return ""
    try:
        whole = _resolved(base, written, encoding)
        parts = urlsplit(whole)
        sound = parts.scheme in ("http", "https") and parts.port != 0 and parts.hostname
        return whole if sound and not _NO_HOST.search(sound) else ""
    except (ValueError, UnicodeError):
        return ""


def linked(node: Any, base: str, encoding: str = "utf-8") -> str:
    """The address that an element of the page `base` leads to; "" where there is none.

    Where it has no `href` of an address, that is what a script holds, if it is written whole and of
    the same site: `onclick="location.href='view.php?no=12'"`, `data-href="/news/12"`.
    """
    href = (node.get("href") or "").strip(_ENDS)
    if not href.startswith("#") and (link := join(base, href, encoding)):
        return link
    written = [value for name in _HELD if re.search("[/?.]", value := node.get(name) or "")]
    for script in (href, node.get("onclick") or ""):
        written += [goes[2]] if (goes := GOES.search(script)) else []
        if call := _CALL.match(script.strip()):
            given = [term.strip("'\"`") for term in _TERM.findall(call[2] + call[3])]
            direct = _ADDRESS.match(given[0])
            written.append(given[0] if direct else _built(call[1], given, node))
    links = (join(base, address, encoding) for address in written)
    return next((link for link in links if link and same_site(link, base)), "")


def _built(name: str, given: Sequence[str], node: Any) -> str:
    """Where the page's function `name` goes when it is called with `given`, if it builds the
    address of that, of texts and of variables that hold such; "" where it does not."""
    scripts = "\n".join(node.getroottree().xpath("//script/text()"))
    parameters, body = _function(name.rpartition(".")[2], scripts)
    known: dict[str, str] = dict(zip(_TERM.findall(parameters), given, strict=False))
    goes = re.search(rf"{_GOING}\s*([^;,\n]{{1,400}})", body)
    for variable, value in [*_VARIABLE.findall(body), ("", goes[1] if goes else "")]:
        terms = _TERM.findall(value)
        known |= {term: term[1:-1] for term in terms if term[0] in "'\"`"}
        if known.keys() >= set(terms):
            known[variable] = "".join(known[term] for term in terms)
    return known.get("", "")


@lru_cache(maxsize=16)
def _function(name: str, scripts: str) -> tuple[str, str]:
    """Parameters and body of a function, which many links of a page may ask for."""
    takes = r"(?:\(([^()]{0,400})\)|([\w$]{1,99})\s*(?==>))\s*(?:{|=>\s*{?)([^{}]{0,2000})"
    scripts = re.sub(r"\${([\w$]+)}", r"`+\1+`", scripts)
    code = re.search(rf"\b{re.escape(name)}\s*(?:[=:]\s*)?(?:function\s*)?{takes}", scripts)
    return (code[1] or code[2], _CODED.sub("", code[3])) if code else ("", "")


def same_site(left: str, right: str) -> bool:
    """Whether two addresses belong to one site, mobile and desktop edition alike."""
    first, second = (
        next((host[len(edition) :] for edition in _PREFIXES if host.startswith(edition)), host)
        for host in (urlsplit(left).hostname or "", urlsplit(right).hostname or "")
    )
    return first == second != ""


def without_dots(path: str) -> str:
    """A path without `.` and `..` (RFC 3986, section 5.2.4), also where they are encoded."""
    if "." not in path and "%2" not in path:
        return path or "/"
    resolved: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        plain = _DOT.sub(".", segment)
        if plain == "..":
            del resolved[-1:]
        elif plain != ".":
            resolved.append(segment)
    if _DOT.sub(".", segments[-1]) in (".", ".."):
        resolved.append("")
    return "/" + "/".join(resolved)


def _resolved(base: str, link: str, encoding: str) -> str:
    root = urlsplit(base)
    link, _, fragment = link.partition("#")
    link, asks, query = link.partition("?")
    link = link.replace("\\", "/")
    if (scheme := _SCHEME.match(link)) is not None:
        name = scheme[0][:-1].lower()
        if name not in ("http", "https"):
            return ""
        rest = link[scheme.end() :]
        if name == root.scheme and not rest.startswith("//"):
            netloc, path = root.netloc, _beside(root.path, rest)
        else:
            netloc, _, path = rest.lstrip("/").partition("/")
            path = f"/{path}"
    elif link.startswith("//"):
        name = root.scheme
        netloc, _, path = link.lstrip("/").partition("/")
        path = f"/{path}"
    else:
        name, netloc = root.scheme, root.netloc
        path = _beside(root.path, link) if link else root.path or "/"
        if not link and not asks:
            query, asks = root.query, "?" if root.query else ""
    path = quote(without_dots(path), safe=_IN_PATH)
    try:  # letters that the encoding lacks become references; a page in UTF-16 sends UTF-8
        codec = "utf-8" if encoding.startswith("utf") else encoding
        sent = query.encode(codec, "xmlcharrefreplace")
    except LookupError:
        sent = query.encode(errors="replace")
    query = quote_from_bytes(sent, safe=_IN_QUERY)
    user, mark, host = netloc.rpartition("@")
    netloc = f"{user}{mark}{host.lower()}"
    whole = urlunsplit((name, netloc, path, query, quote(fragment, safe=_IN_FRAGMENT)))
    # A `?` with nothing behind it is another address than none, to some servers.
    return whole if query or not asks else whole.replace("#", "?#", 1) if fragment else f"{whole}?"


def _beside(path: str, link: str) -> str:
    return link if link.startswith("/") else f"{path.rpartition('/')[0]}/{link}"
