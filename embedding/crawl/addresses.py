"""Canonical addresses: one key for one page, however it was linked."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

from courlan import clean_url

from embedding.kernel.ports import bracketed

_TRACKING = re.compile(
    r"^(?:utm_\w+|fbclid|gclid|dclid|msclkid|yclid|igshid|mc_[ce]id|n_media|n_query|n_rank|"
    r"n_ad_group|n_ad|n_keyword\w*|napm|rssid|spm|_ga|ref_src|cmpid|kakao_from|sns)$",
    re.IGNORECASE,
)
_DOT = re.compile(r"%2e", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ITEM_MARKS = ("comment-", "item-")
_PREFIXES = ("www.", "m.", "mobile.", "news.")


def plain(url: str) -> str:
    """The address as it goes over the wire: without dot segments, userinfo and fragment.

    What robots.txt is asked about must be what is requested (`/a/../private` is `/private`), also
    where the dots are percent-encoded or the slashes are backslashes (WHATWG URL, section 4.4).
    Raises ValueError for an address that cannot be split.
    """
    parts = urlsplit(url.strip())
    path = _DOT.sub(".", parts.path.replace("\\", "/"))
    netloc = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, netloc, _without_dots(path), parts.query, ""))


def _without_dots(path: str) -> str:
    """RFC 3986 section 5.2.4."""
    if "/." not in path:
        return path or "/"
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def canonical(url: str) -> str:
    """The address without tracking parameters, fragment, default port and odd spelling.

    `#comment-ID` and `#item-ID` are kept: they name an item of a page. An address that is not
    http or https is returned as it is.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return url.strip()
    if parts.scheme.lower() not in _DEFAULT_PORTS or not parts.hostname:
        return url.strip()
    mark = parts.fragment if parts.fragment.startswith(_ITEM_MARKS) else ""
    parts = urlsplit(plain(url))
    pairs = [pair for pair in parts.query.split("&") if pair]
    query = "&".join(pair for pair in pairs if not _TRACKING.match(pair.partition("=")[0]))
    scheme = parts.scheme.lower()
    host = bracketed((parts.hostname or "").rstrip("."))
    if port not in (None, _DEFAULT_PORTS[scheme]):
        host = f"{host}:{port}"
    whole = urlunsplit((scheme, host, parts.path or "/", query, ""))
    cleaned = str(clean_url(whole) or whole)
    if not urlsplit(cleaned).path:
        # courlan takes the root's slash away.
        cleaned = urlunsplit(urlsplit(cleaned)._replace(path="/"))
    return f"{cleaned}#{mark}" if mark else cleaned


def host_of(url: str) -> str:
    """`host:port` of an http address, the unit of politeness; empty when there is none."""
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme.lower(), 0)
    except ValueError:
        return ""
    host = parts.hostname or ""
    return f"{bracketed(host)}:{port}" if host else ""


def origin_of(url: str) -> str:
    """`scheme://host:port`, the unit of robots.txt."""
    return f"{urlsplit(url).scheme.lower()}://{host_of(url)}"


def same_site(left: str, right: str) -> bool:
    """Whether two addresses belong to one site, mobile and desktop edition alike.

    Only a site may say that two of its own pages are one: a foreign `rel=canonical` could hide
    other people's pages from the crawl.
    """
    return _bare(host_of(left)) == _bare(host_of(right)) != ""


def _bare(host: str) -> str:
    for prefix in _PREFIXES:
        if host.startswith(prefix):
            return host[len(prefix) :]
    return host
