"""Fetching one address: robots, politeness, limits, redirects by hand, named failures."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urljoin, urlsplit

import httpcore
import httpx

from embedding.crawl.addresses import host_of, plain
from embedding.crawl.charset import decode_named
from embedding.crawl.config import CrawlConfig
from embedding.crawl.guard import AddressGuard, GuardedBackend, Resolver
from embedding.crawl.limiter import LONGEST_ASKED, Gate
from embedding.crawl.robots import MAX_BYTES, Robots
from embedding.crawl.unpack import ENCODINGS, Unpacker
from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage

_ROBOTS_REDIRECTS = 5
"""RFC 9309 section 2.3.1.2: at least five redirects of a robots.txt are followed."""
_SLOW = 1.0
"""A site whose Crawl-delay is at least this many seconds gets one request at a time."""
_REDIRECTS = (301, 302, 303, 307, 308)
_LATER = (408, 425, 429)
_TIMEOUTS = (httpcore.TimeoutException, httpx.TimeoutException, TimeoutError)
_NETWORK = (httpcore.NetworkError, httpx.NetworkError, OSError)
_BROKEN_OFF = (httpcore.RemoteProtocolError, httpx.RemoteProtocolError)
"""Also of a connection that the site closed while a request was on its way: worth another try."""
_PROTOCOL = (
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
    httpcore.ProxyError,
    httpx.HTTPError,
    httpx.InvalidURL,
    ValueError,
)


class _ResponseStream(httpx.AsyncByteStream):
    """httpcore's byte stream in httpx's clothes."""

    def __init__(self, inner: object) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._inner:  # type: ignore[attr-defined]
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()  # type: ignore[attr-defined]


class GuardedTransport(httpx.AsyncBaseTransport):
    """HTTP/1.1 and HTTP/2 over one pool; raises FetchError for refused addresses.

    Network failures come out as httpcore's own exceptions.
    """

    def __init__(self, guard: AddressGuard, connections: int) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=httpx.create_ssl_context(trust_env=True),
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=15.0,
            http1=True,
            http2=True,
            network_backend=GuardedBackend(guard),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request."""
        url = request.url
        answer = await self._pool.handle_async_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(
            status_code=answer.status,
            headers=answer.headers,
            stream=_ResponseStream(answer.stream),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class ProxiedTransport(httpx.AsyncBaseTransport):
    """Requests by way of a proxy, which resolves names itself.

    So the name is judged here first: a private address, or a name that is private as seen from
    here, is refused. What the proxy makes of a name that only it knows is the proxy's to guard.
    """

    def __init__(self, guard: AddressGuard, proxy: str, connections: int) -> None:
        self._guard = guard
        self._inner = httpx.AsyncHTTPTransport(
            proxy=proxy,
            http2=True,
            trust_env=False,
            limits=httpx.Limits(max_connections=connections, keepalive_expiry=15.0),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request."""
        url = request.url
        await self._guard.judge_named(url.host, url.port or (443 if url.scheme == "https" else 80))
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


@dataclass(frozen=True)
class Request:
    """What to fetch and how. `rate` is requests/s to one host; None: the crawler's."""

    url: str
    accept: str = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"
    rate: float | None = None
    patience: float = float("inf")
    """Seconds to wait for the host's next turn; beyond it FetchError (`host_busy`) is raised."""
    proxy: str | None = field(default=None, repr=False)
    cookies: Mapping[str, str] = field(default_factory=dict, repr=False)
    source: str = ""
    """Address of the source that asks: only its host gets `cookies`; empty: a person asks."""
    etag: str | None = None
    last_modified: str | None = None
    method: str = "GET"
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Further headers; never ones that are set from the fields above."""


@dataclass(frozen=True)
class Response:
    """What came back: final address, status (200 or 304), lower-case headers, unpacked body."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes

    def text(self) -> str:
        """The body decoded; raises FetchError (`bad_encoding`)."""
        return self._decoded()[0]

    def page(self, read_at: datetime) -> FetchedPage:
        """What an adapter sees of it; raises FetchError (`bad_encoding`)."""
        # A listing file that is itself gzip (sitemap.xml.gz) has no text yet.
        packed = self.body.startswith(b"\x1f\x8b")
        text, encoding = ("", "utf-8") if packed else self._decoded()
        return FetchedPage(self.url, text, self.body, self.headers, self.status, read_at, encoding)

    def _decoded(self) -> tuple[str, str]:
        try:
            return decode_named(self.body, self.headers)
        except FetchError as error:
            raise _located(error, self.url) from error


class Fetcher:
    """One pool of connections for all sources, inside one event loop; `close` it at the end."""

    def __init__(self, config: CrawlConfig, resolver: Resolver | None = None) -> None:
        self._config = config
        self._guard = AddressGuard(config.allow_private_hosts, resolver)
        self._gate = Gate(config.per_host, config.concurrency)
        self._transports: dict[str | None, httpx.AsyncBaseTransport] = {}
        self.robots = Robots(config.robots_agent, config.robots_ttl, self._robots_txt)

    async def fetch(self, request: Request) -> Response:
        """Fetch, following redirects; each hop passes robots, rate and address checks.

        Raises FetchError whose `retry_after` is None when trying again cannot help.
        """
        request = replace(request, url=_plain(request.url))
        seen: set[str] = set()
        for _ in range(self._config.max_redirects + 1):
            seen.add(request.url)
            answer = await self._polite(request)
            following = self._redirect(answer)
            if following is None:
                return answer
            if following in seen:
                break
            request = _follow(request, following, answer.status)
        raise FetchError(
            "redirect_loop",
            f"{request.url}: a circle, or more than {self._config.max_redirects} redirects.",
        )

    async def _polite(self, request: Request) -> Response:
        """One hop with robots and rate."""
        self._guard.check_exception(request.url, request.source)
        verdict = await self.robots.verdict(request.url, request.proxy)
        if verdict.trouble:
            raise FetchError(
                "robots_unreadable",
                f"{request.url}: robots.txt cannot be read ({verdict.trouble}), so nothing may be.",
                retry_after=verdict.retry_after,
            )
        if not verdict.allowed:
            raise FetchError("robots", f"{request.url}: robots.txt forbids it.")
        interval = max(1.0 / (request.rate or self._config.rate), verdict.crawl_delay)
        async with self._gate.slot(
            host_of(request.url),
            interval,
            single=verdict.crawl_delay >= _SLOW,
            patience=request.patience,
        ):
            return await self._once(request, self._config.max_bytes)

    async def _robots_txt(self, url: str, proxy: str | None) -> tuple[int, str]:
        """A robots.txt with its redirects, whatever the status."""
        request = Request(url, accept="text/plain,*/*;q=0.5", proxy=proxy)
        for _ in range(max(_ROBOTS_REDIRECTS, self._config.max_redirects) + 1):
            async with self._gate.slot(host_of(request.url), 0.0):
                answer = await self._once(request, MAX_BYTES, truncate=True, any_status=True)
            following = self._redirect(answer)
            if following is None:
                return answer.status, answer.body.decode("utf-8-sig", errors="replace")
            request = replace(request, url=following)
        raise FetchError("redirect_loop", f"{url}: robots.txt redirects too often.")

    @staticmethod
    def _redirect(answer: Response) -> str | None:
        """Where a redirect leads, without fragment; None when the answer is none."""
        location = answer.headers.get("location", "").strip()
        if answer.status not in _REDIRECTS:
            return None
        if not location:
            raise FetchError("protocol", f"{answer.url}: redirects without saying where.")
        try:
            target = plain(urljoin(answer.url, location))
            parts = urlsplit(target)
        except ValueError:
            parts, target = urlsplit(""), location
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise FetchError("redirect_loop", f"{answer.url}: redirects to no web address.")
        return target

    async def _once(
        self, request: Request, limit: int, *, truncate: bool = False, any_status: bool = False
    ) -> Response:
        """One request within the time limit, its answer within the size limit."""
        try:
            async with (
                asyncio.timeout(self._config.timeout),
                self._stream(request) as response,
            ):
                headers = {key.lower(): value for key, value in response.headers.items()}
                if not any_status and response.status_code not in _REDIRECTS:
                    _refuse_status(request.url, response.status_code, headers)
                packed = Unpacker(headers.get("content-encoding", ""), limit, truncate=truncate)
                whole = await _read(response, packed, headers, 0 if truncate else limit)
                body = packed.body(whole=whole)
                return Response(request.url, response.status_code, headers, body)
        except FetchError as error:
            raise _located(error, request.url) from error
        except _TIMEOUTS as error:
            raise FetchError(
                "timeout",
                f"{request.url}: no full answer within {self._config.timeout:g} s.",
                retry_after=0,
            ) from error
        except _NETWORK as error:
            raise FetchError(
                "connect", f"{request.url}: the connection failed.", retry_after=0
            ) from error
        except _PROTOCOL as error:
            raise FetchError(
                "protocol",
                f"{request.url}: not a valid HTTP exchange.",
                retry_after=0 if isinstance(error, _BROKEN_OFF) else None,
            ) from error

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncIterator[httpx.Response]:
        # The transport is used without httpx's client, which would keep cookies and judge
        # redirects before they can be judged here.
        response = await self._transport(request.proxy).handle_async_request(
            httpx.Request(
                request.method, request.url, headers=self._headers(request), content=request.body
            )
        )
        try:
            yield response
        finally:
            await response.aclose()

    def _headers(self, request: Request) -> dict[str, str]:
        headers = {
            **request.headers,
            "accept": request.accept,
            "accept-encoding": ENCODINGS,
            "user-agent": self._config.user_agent,
        }
        if request.etag:
            headers["if-none-match"] = request.etag
        if request.last_modified:
            headers["if-modified-since"] = request.last_modified
        if request.cookies and host_of(request.url) == host_of(request.source):
            headers["cookie"] = "; ".join(f"{k}={v}" for k, v in request.cookies.items())
        return headers

    def _transport(self, proxy: str | None) -> httpx.AsyncBaseTransport:
        """The guarded transport, or one for each proxy."""
        if proxy not in self._transports:
            connections = max(self._config.concurrency, self._config.per_host)
            self._transports[proxy] = (
                GuardedTransport(self._guard, connections)
                if proxy is None
                else ProxiedTransport(self._guard, proxy, connections)
            )
        return self._transports[proxy]

    async def close(self) -> None:
        """Close all connections."""
        for transport in self._transports.values():
            await transport.aclose()
        self._transports.clear()
        self._guard.close()


async def _read(
    response: httpx.Response, packed: Unpacker, headers: Mapping[str, str], limit: int
) -> bool:
    """Read the raw answer into `packed`; False when reading stopped at the limit."""
    length = headers.get("content-length", "")
    if limit and length.isdigit() and int(length) > limit:
        raise FetchError("too_large", f"the answer is larger than {limit} bytes.")
    async for part in response.aiter_raw():
        if not packed.feed(part):
            return False
    return True


def _plain(url: str) -> str:
    try:
        return plain(url)
    except ValueError as error:
        raise FetchError("protocol", f"{url}: not a web address.") from error


def _follow(request: Request, url: str, status: int) -> Request:
    """The request of the next hop; validators belong to the first address only."""
    keep = status in (307, 308)
    return replace(
        request,
        url=url,
        etag=None,
        last_modified=None,
        method=request.method if keep else "GET",
        body=request.body if keep else None,
    )


def _refuse_status(url: str, status: int, headers: Mapping[str, str]) -> None:
    """Raise FetchError for anything but success and 304."""
    if 200 <= status < 300 or status == 304:
        return
    reason = f"http_{status // 100}xx" if 100 <= status < 600 else "protocol"
    again = status >= 500 or status in _LATER
    login = "; it wants a login" if status in (401, 407) else ""
    raise FetchError(
        reason,
        f"{url}: answered with status {status}{login}.",
        retry_after=_retry_after(headers) if again else None,
        status=status,
    )


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that Retry-After asks for, at most a day; 0 when it says nothing usable.

    RFC 9110 section 10.2.3.
    """
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return min(float(value[:12]), LONGEST_ASKED)
    try:
        asked = parsedate_to_datetime(value).timestamp() - time.time()
        return min(max(0.0, asked), LONGEST_ASKED)
    except (ValueError, TypeError, IndexError, OverflowError):
        return 0.0


def _located(error: FetchError, url: str) -> FetchError:
    """The same error with the address in its sentence."""
    text = str(error)
    message = text if url in text else f"{url}: {text}"
    return FetchError(error.reason, message, retry_after=error.retry_after, status=error.status)
