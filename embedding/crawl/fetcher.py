"""Fetching one address: robots, politeness, limits, redirects by hand, named failures."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import partial

import httpcore
import httpx

from embedding.crawl.addresses import host_of, plain
from embedding.crawl.charset import decode_named
from embedding.crawl.config import CrawlConfig
from embedding.crawl.robots import MAX_BYTES, Robots
from embedding.crawl.unpack import ENCODINGS, Unpacker
from embedding.kernel.errors import FetchError
from embedding.sources.base import FetchedPage
from embedding.sources.links import join

# No request leaves for a private address, whatever a name, a redirect or a page says.
#
# The check sits where the connection is made: the name is resolved once, every address is judged,
# and the connection goes to a judged address, so that a name that resolves differently a moment
# later (DNS rebinding) gains nothing.
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")
"""What IANA gives out of IPv6; site-local (fec0::/10) and local NAT64 addresses are outside."""
_PROTOCOLS = ipaddress.ip_network("192.0.0.0/24")
"""Of the protocols' own (RFC 6890), for which Python's `is_global` knows some parts only."""


def is_public(address: str) -> bool:
    """Whether an IP address is globally routable, also when IPv4 hides inside IPv6."""
    try:
        ip: Address = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _NAT64:
            return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
        hidden = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if hidden is not None:
            return is_public(str(hidden))
        return ip in _UNICAST and ip.is_global
    return ip.is_global and not ip.is_multicast and ip not in _PROTOCOLS


class SystemResolver:
    """Names by the system's resolver, in threads of its own.

    A name server that does not answer holds its thread up for many seconds; the threads that all
    other work shares must not wait for it.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(16, thread_name_prefix="resolve")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Addresses of a name; raises OSError."""
        entries = await asyncio.get_running_loop().run_in_executor(
            self._threads, partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(entry[4][0]) for entry in entries))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


_USUAL_PORTS = (80, 443)
_PRIVILEGED = 1024
"""Below it each port belongs to a service, such as mail at 25: of them the web has two."""


class AddressGuard:
    """Resolves names and refuses those with a private, loopback or link-local address."""

    def __init__(self, allowed: Iterable[str] = (), resolver: Resolver | None = None) -> None:
        # [::1]:8080 is the host ::1 at its port 8080.
        self._allowed = frozenset(re.sub(r"[\[\]]", "", host.lower()) for host in allowed)
        self._system = SystemResolver()
        self._resolver = resolver or self._system

    def close(self) -> None:
        self._system.close()

    def trusts(self, host: str, port: int) -> bool:
        """Whether the host is named as an exception, with this port where it is not the usual one.

        A name alone must not open what else its machine runs: on loopback that is the platform.
        """
        name = host.lower()
        return f"{name}:{port}" in self._allowed or (name in self._allowed and port in _USUAL_PORTS)

    def check_exception(self, address: str, source: str) -> None:
        """Refuse an exception to whoever comes from elsewhere; raises FetchError.

        What a page of the public web names must not be asked in a private network. Sources at an
        exception reach all exceptions.

        source  address of the source that wants `address`; empty: no source, a person named it
        """
        if source and self.trusts(*_place(address)) and not self.trusts(*_place(source)):
            raise FetchError(
                "private_address",
                f"{address}: an exception of crawl.allow_private_hosts, which is for sources that "
                "are such exceptions themselves.",
            )

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """Addresses that may be connected to.

        Raises FetchError (`port`, `private_address`, `dns`).
        """
        if port < _PRIVILEGED and port not in _USUAL_PORTS and not self.trusts(host, port):
            raise FetchError("port", f"{host}:{port}: a port of another service than the web.")
        try:
            addresses = await self._resolver(host, port)
        except (OSError, UnicodeError) as error:
            raise FetchError("dns", f"{host}: the name does not resolve.", retry_after=0) from error
        if not addresses:
            raise FetchError("dns", f"{host}: the name has no address.", retry_after=0)
        if not self.trusts(host, port) and not all(map(is_public, addresses)):
            raise FetchError(
                "private_address",
                f"{host}:{port}: a private address; crawl.allow_private_hosts names exceptions, "
                f"as in {host}:{port}.",
            )
        return addresses

    async def judge_named(self, host: str, port: int) -> None:
        """The same judgement for a name that somebody else will resolve.

        A name that is unknown here passes. Raises FetchError (`port`, `private_address`).
        """
        try:
            await self.addresses(host, port)
        except FetchError as error:
            if error.reason != "dns":
                raise


def _place(address: str) -> tuple[str, int]:
    """Host and port of a web address; no host where it is none."""
    host, _, port = host_of(address).rpartition(":")
    return host.strip("[]"), int(port or 0)


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Network backend that connects only to addresses the guard has judged."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  (httpcore's signature)
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first judged address that answers."""
        failure: Exception = httpcore.ConnectError("no address answered")
        for address in await self._guard.addresses(host, port):
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


_TOLERATED = 3
"""Failures in a row after which a host is left alone for a while."""
_COOL_DOWN = 5.0
_LONGEST = 600.0
LONGEST_ASKED = 86400.0
"""Retry-After is obeyed up to a day; what asks for more is taken for a mistake."""
_PATIENCE = 20.0
"""Seconds that a fetch waits for a host that is left alone before it gives its place away."""
_MOST_HOSTS = 10_000


@dataclass
class HostState:
    """What is known of one host; times are seconds of a monotonic clock."""

    in_flight: int = 0
    next_at: float = 0.0
    blocked_until: float = 0.0
    failures: int = 0


class HostLimiter:
    """Grants requests to hosts."""

    def __init__(self, per_host: int) -> None:
        self._per_host = per_host
        self._hosts: dict[str, HostState] = {}

    def ask(self, host: str, interval: float, now: float, *, single: bool = False) -> float:
        """0 when the request may start now (it is counted), else seconds to wait.

        `interval` is the least time between two starts; `single` allows one request in flight.
        `inf` means: wait for a release.
        """
        state = self._hosts.get(host)
        if state is None:
            if len(self._hosts) >= _MOST_HOSTS:  # those that nothing is known of any more
                self._hosts = {
                    name: known
                    for name, known in self._hosts.items()
                    if known.in_flight or max(known.next_at, known.blocked_until) > now
                }
            state = self._hosts[host] = HostState()
        if state.in_flight >= (1 if single else self._per_host):
            return float("inf")
        wait = max(state.next_at, state.blocked_until) - now
        if wait > 0:
            return wait
        state.in_flight += 1
        state.next_at = now + interval
        return 0.0

    def blocked(self, host: str, now: float) -> float:
        """Seconds for which the host is still left alone."""
        state = self._hosts.get(host)
        return max(0.0, state.blocked_until - now) if state else 0.0

    def release(self, host: str, now: float, *, ok: bool, retry_after: float = 0.0) -> None:
        """A granted request ended; failures in a row make the host rest ever longer."""
        state = self._hosts[host]
        state.in_flight -= 1
        state.failures = 0 if ok else state.failures + 1
        rest = min(retry_after, LONGEST_ASKED)
        if state.failures >= _TOLERATED:
            rest = max(rest, min(_COOL_DOWN * 2 ** (state.failures - _TOLERATED), _LONGEST))
        state.blocked_until = max(state.blocked_until, now + rest)


class Gate:
    """Waits for the limiter, then for one of the places that all hosts share."""

    def __init__(self, per_host: int, concurrency: int) -> None:
        self._limiter = HostLimiter(per_host)
        self._places = asyncio.Semaphore(concurrency)
        self._released: dict[str, asyncio.Event] = {}
        """Of the hosts that somebody waits for."""

    @asynccontextmanager
    async def slot(
        self, host: str, interval: float, *, single: bool = False, patience: float = float("inf")
    ) -> AsyncIterator[None]:
        """One request to `host`; a FetchError inside counts as the host's failure.

        Raises FetchError when the turn would come too late to wait for it: `host_down` for a
        host that is left alone, `host_busy` for one that asks for long pauses.
        """
        await self._enter(host, interval, single, patience)
        ok, retry_after = True, 0.0
        try:
            async with self._places:
                yield
        except FetchError as error:
            ok, retry_after = error.retry_after is None, error.retry_after or 0.0
            raise
        finally:
            self._limiter.release(host, time.monotonic(), ok=ok, retry_after=retry_after)
            waiting = self._released.pop(host, None)
            if waiting is not None:
                waiting.set()

    async def _enter(self, host: str, interval: float, single: bool, patience: float) -> None:
        while True:
            now = time.monotonic()
            wait = self._limiter.ask(host, interval, now, single=single)
            if wait == 0:
                return
            blocked = self._limiter.blocked(host, now)
            if blocked > _PATIENCE:
                raise FetchError(
                    "host_down", f"{host}: left alone for {blocked:.0f} s.", retry_after=blocked
                )
            if float("inf") > wait > patience:
                raise FetchError(
                    "host_busy", f"{host}: its next turn is in {wait:.0f} s.", retry_after=wait
                )
            if wait == float("inf"):
                await self._released.setdefault(host, asyncio.Event()).wait()
            else:
                await asyncio.sleep(wait)


REDIRECTS = 5
"""That are followed, of pages and, as RFC 9309 wants it, of robots.txt."""
ROBOTS_TTL = 86400.0
"""Seconds that a robots.txt is believed; RFC 9309 allows at most a day."""
_SLOW = 1.0
"""A site whose Crawl-delay is at least this many seconds gets one request at a time."""
_REDIRECTS = (301, 302, 303, 307, 308)
_LATER = (408, 425, 429)
_TIMEOUTS = (httpx.TimeoutException, TimeoutError)
_NETWORK = (httpx.NetworkError, OSError)
_BROKEN_OFF = httpx.RemoteProtocolError
"""Also of a connection that the site closed while a request was on its way: worth another try."""
_PROTOCOL = (httpx.HTTPError, httpx.InvalidURL, ValueError)
_KEEP_S = 15.0
"""Seconds that a connection is kept for the next request."""


class GuardedTransport(httpx.AsyncHTTPTransport):
    """HTTP/1.1 and HTTP/2 over one pool; raises FetchError for refused addresses."""

    def __init__(self, guard: AddressGuard, connections: int) -> None:
        context = httpx.create_ssl_context(trust_env=True)
        super().__init__(verify=context)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=_KEEP_S,
            http2=True,
            network_backend=GuardedBackend(guard),
        )


class ProxiedTransport(httpx.AsyncHTTPTransport):
    """Requests by way of a proxy, which resolves names itself.

    So the name is judged here first: a private address, or a name that is private as seen from
    here, is refused. What the proxy makes of a name that only it knows is the proxy's to guard.
    """

    def __init__(self, guard: AddressGuard, proxy: str, connections: int) -> None:
        limits = httpx.Limits(max_connections=connections, keepalive_expiry=_KEEP_S)
        super().__init__(proxy=proxy, http2=True, trust_env=False, limits=limits)
        self._guard = guard

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request once its host is judged; raises FetchError."""
        url = request.url
        await self._guard.judge_named(url.host, url.port or (443 if url.scheme == "https" else 80))
        return await super().handle_async_request(request)


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

    def _decoded(self) -> tuple[str, str]:
        try:
            return decode_named(self.body, self.headers)
        except FetchError as error:
            raise _located(error, self.url) from error

    def page(self, read_at: datetime) -> FetchedPage:
        """What an adapter sees of it; raises FetchError (`bad_encoding`)."""
        # A listing file that is itself gzip (sitemap.xml.gz) has no text yet.
        packed = self.body.startswith(b"\x1f\x8b")
        text, encoding = ("", "utf-8") if packed else self._decoded()
        return FetchedPage(self.url, text, self.body, self.headers, self.status, read_at, encoding)


class Fetcher:
    """One pool of connections for all sources, inside one event loop; `close` it at the end."""

    def __init__(self, config: CrawlConfig, resolver: Resolver | None = None) -> None:
        self._config = config
        self._guard = AddressGuard(config.allow_private_hosts, resolver)
        self._gate = Gate(config.per_host, config.concurrency)
        self._transports: dict[str | None, httpx.AsyncBaseTransport] = {}
        self.robots = Robots("yeoron", ROBOTS_TTL, self._robots_txt)

    async def fetch(self, request: Request) -> Response:
        """Fetch, following redirects; each hop passes robots, rate and address checks.

        Raises FetchError whose `retry_after` is None when trying again cannot help.
        """
        try:
            request = replace(request, url=plain(request.url))
        except ValueError as error:
            raise FetchError("protocol", f"{request.url}: not a web address.") from error
        seen: set[str] = set()
        for _ in range(REDIRECTS + 1):
            seen.add(request.url)
            answer = await self._polite(request)
            following = self._redirect(answer)
            if following is None:
                return answer
            if following in seen:
                break
            # Validators belong to the first address only.
            request = replace(request, url=following, etag=None, last_modified=None)
            if answer.status not in (307, 308):
                request = replace(request, method="GET", body=None)
        raise FetchError(
            "redirect_loop", f"{request.url}: a circle, or more than {REDIRECTS} redirects."
        )

    async def _polite(self, request: Request) -> Response:
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
        for _ in range(REDIRECTS + 1):
            async with self._gate.slot(host_of(request.url), 0.0):
                answer = await self._once(request, MAX_BYTES, truncate=True, any_status=True)
            following = self._redirect(answer)
            if following is None:
                try:
                    return answer.status, answer.text()
                except FetchError:  # in several encodings
                    return answer.status, answer.body.decode(errors="replace")
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
        target = join(answer.url, location)
        if not target:
            raise FetchError("redirect_loop", f"{answer.url}: redirects to no web address.")
        return plain(target)

    async def _once(
        self, request: Request, limit: int, *, truncate: bool = False, any_status: bool = False
    ) -> Response:
        """One request within the time limit, its answer within the size limit."""
        try:
            async with asyncio.timeout(self._config.timeout), self._stream(request) as response:
                headers = {key.lower(): value for key, value in response.headers.items()}
                if not any_status and response.status_code not in _REDIRECTS:
                    _refuse_status(request.url, response.status_code, headers)
                length = headers.get("content-length", "")
                if not truncate and length.isdigit() and int(length) > limit:
                    raise FetchError("too_large", f"the answer is larger than {limit} bytes.")
                packed = Unpacker(headers.get("content-encoding", ""), limit, truncate=truncate)
                whole = True
                async for part in response.aiter_raw():
                    if not (whole := packed.feed(part)):
                        break
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
        if proxy not in self._transports:
            most = max(self._config.concurrency, self._config.per_host)
            guarded = ProxiedTransport(self._guard, proxy, most) if proxy else None
            self._transports[proxy] = guarded or GuardedTransport(self._guard, most)
        return self._transports[proxy]

    async def close(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()
        self._transports.clear()
        self._guard.close()


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
    text = str(error)
    message = text if url in text else f"{url}: {text}"
    return FetchError(error.reason, message, retry_after=error.retry_after, status=error.status)
