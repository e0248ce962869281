"""Canonical addresses: one key for one page, however it was linked."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import urlsplit, urlunsplit

from embedding.kernel.ports import bracketed
from embedding.sources.links import join, same_site, without_dots

LONGEST_KEY = 2_500
"""Bytes of a key. An index of PostgreSQL holds no more than 2,704 in an entry."""


def storable(key: str) -> bool:
    """Whether every database can hold it: it is not too long, and without NUL and half characters.

    No site needs others; one that names them would be stopped by an error of the database.
    """
    try:
        return len(key.encode()) <= LONGEST_KEY and "\0" not in key
    except UnicodeEncodeError:
        return False


def item_key(key: str, source_url: str) -> str:
    """The key of an item that the listing of a source held, as a post or a comment.

    An address of another site is not the source's to give away: whoever names it first would have
    it, and the page there would never be read. An item of such a page keeps the page in its key,
    and any other is one of the source's own address.
    """
    key = canonical(key)
    if not key.startswith(("http://", "https://")) or same_site(key, source_url):
        return key
    own = hashlib.blake2b(
        f"{source_url}\0{key}".encode(errors="replace"), digest_size=12
    ).hexdigest()
    page, mark, _ = key.partition("#")
    return f"{page}#comment-{own}" if mark else f"{source_url.partition('#')[0]}#item-{own}"


def key_digest(key: str) -> int:
    """63 bits of BLAKE2b by which a document is named to the parameter server."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") >> 1


_TRACKING = re.compile(
    r"^(?:utm_\w+|fbclid|gclid|dclid|msclkid|yclid|igshid|mc_[ce]id|n_media|n_query|n_rank|"
    r"n_ad_group|n_ad|n_keyword\w*|napm|_ga|kakao_from)$",
    re.IGNORECASE,
)
"""Names that say by which way a reader came, and no server reads for anything else."""
_SESSION = re.compile(
    r"^(?:phpsessid|jsessionid|aspsessionid\w{0,20}|asp\.net_sessionid|cfid|cftoken|"
    r"(?:s|sess|session)_?id)$",
    re.IGNORECASE,
)
_SESSION_VALUE = re.compile(r"^(?=[^=]{0,200}\d)[\w.!-]{16,200}$")
_SESSION_PATH = re.compile(r";jsessionid=[\w.!-]{1,200}", re.IGNORECASE)
_ENCODED = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")
_INDEX = re.compile(r"(?<=/)index\.\w{3,5}$")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_ITEM_MARKS = ("comment-", "item-")


def plain(url: str) -> str:
    """The address as it goes over the wire: without dot segments, userinfo and fragment.

    What robots.txt is asked about must be what is requested (`/a/../private` is `/private`), also
    where the dots are percent-encoded or the slashes are backslashes (WHATWG URL, section 4.4).
    Raises ValueError for an address that cannot be split.
    """
    parts = urlsplit(url.strip())
    path = without_dots(parts.path.replace("\\", "/"))
    netloc = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, netloc, path, parts.query, ""))


def canonical(url: str) -> str:
    """The key of a page: its address without what no server tells pages apart by.

    That is tracking parameters, the id of a session, the fragment, a default port, and spellings of
    percent-encoding. Every other value stays. `#comment-ID` and `#item-ID` name an item of a page.
    A key recognises a page; what is asked for is the address as it was linked. An address that is
    not http or https is returned as it is.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return url.strip()
    if parts.scheme.lower() not in _DEFAULT_PORTS or not parts.hostname:
        return url.strip()
    mark = parts.fragment if parts.fragment.startswith(_ITEM_MARKS) else ""
    parts = urlsplit(join(url, plain(url)) or plain(url))
    telling = []
    for pair in filter(None, parts.query.split("&")):
        name, _, value = pair.partition("=")
        session = _SESSION.match(name) and _SESSION_VALUE.match(value)
        if not session and not _TRACKING.match(name):
            telling.append(pair)
    query = "&".join(telling)
    scheme = parts.scheme.lower()
    host = bracketed((parts.hostname or "").rstrip("."))
    if port not in (None, _DEFAULT_PORTS[scheme]):
        host = f"{host}:{port}"
    path = _SESSION_PATH.sub("", parts.path) or "/"
    whole = urlunsplit((scheme, host, _spelt(path), _spelt(query), ""))
    return f"{whole}#{mark}" if mark else whole


def _spelt(text: str) -> str:
    """One spelling of percent-encoding: upper case, and none of letters that need none."""
    return _ENCODED.sub(
        lambda code: (
            letter if _UNRESERVED.match(letter := chr(int(code[1], 16))) else code[0].upper()
        ),
        text,
    )


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


def same_page(left: str, right: str) -> bool:
    """Whether two addresses of one site differ by edition alone: mobile, AMP, http or https.

    Only a site may say that two of its own pages are one: a foreign `rel=canonical` could hide
    other people's pages from the crawl.
    """
    return same_site(left, right) and _page(left) == _page(right)


def _page(url: str) -> tuple[str, str]:
    parts = urlsplit(canonical(url))
    path = _INDEX.sub("", parts.path).rstrip("/").removesuffix(".amp").removesuffix("/amp")
    return path.rstrip("/"), parts.query
