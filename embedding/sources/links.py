"""Links as pages, feeds and answers write them, made whole as browsers do (url.spec.whatwg.org)."""

from __future__ import annotations

import re
from urllib.parse import quote, quote_from_bytes, urlsplit, urlunsplit

_DROPPED = re.compile(r"[\t\n\r]")
_ENDS = "".join(map(chr, range(33)))
"""Control characters and space, which count for nothing at the ends of a link."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_KEPT = "%!$&()*+,;=:@/[]^|~"
_IN_PATH, _IN_QUERY, _IN_FRAGMENT = _KEPT + "'", _KEPT + "?{}`\\", _KEPT + "'?#{}\\"
"""What stays as it is written (WHATWG URL, section 1.3)."""
_DOT = re.compile(r"%2e", re.IGNORECASE)


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
        sound = parts.scheme in ("http", "https") and bool(parts.hostname)
        return whole if sound and (parts.port is None or parts.port > 0) else ""
    except (ValueError, UnicodeError):
        return ""


def without_dots(path: str) -> str:
    """A path without `.` and `..` (RFC 3986, section 5.2.4), also where they are encoded."""
    if "." not in path and "%2" not in path:
        return path or "/"
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        plain = _DOT.sub(".", segment)
        if plain == "..":
            del kept[-1:]
        elif plain != ".":
            kept.append(segment)
    if _DOT.sub(".", segments[-1]) in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


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
        if name == root.scheme and not rest.startswith("/"):
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
    query = quote_from_bytes(_sent(query, encoding), safe=_IN_QUERY)
    user, at, host = netloc.rpartition("@")
    netloc = f"{user}{at}{host.lower()}"
    whole = urlunsplit((name, netloc, path, query, quote(fragment, safe=_IN_FRAGMENT)))
    # A `?` with nothing behind it is another address than none, to some servers.
    return whole if query or not asks else whole.replace("#", "?#", 1) if fragment else f"{whole}?"


def _beside(path: str, link: str) -> str:
    return link if link.startswith("/") else f"{path.rpartition('/')[0]}/{link}"


def _sent(query: str, encoding: str) -> bytes:
    """The bytes of a query; letters that the encoding lacks become character references.

    A page in UTF-16 sends UTF-8.
    """
    try:
        name = "utf-8" if encoding.startswith("utf") else encoding
        return query.encode(name, "xmlcharrefreplace")
    except LookupError:
        return query.encode(errors="replace")
