"""No request leaves for a private address, whatever a name, a redirect or a page says.

The check sits where the connection is made: the name is resolved once, every address is judged,
and the connection goes to a judged address, so that a name that resolves differently a moment
later (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpcore

from embedding.kernel.errors import FetchError

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

    def __init__(self, threads: int = 16) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="resolve")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Addresses of a name; raises OSError."""
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        )
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    def close(self) -> None:
        """Let the threads go."""
        self._threads.shutdown(wait=False, cancel_futures=True)


_USUAL_PORTS = (80, 443)


class AddressGuard:
    """Resolves names and refuses those with a private, loopback or link-local address."""

    def __init__(self, allowed: Iterable[str] = (), resolver: Resolver | None = None) -> None:
        # [::1]:8080 is the host ::1 at its port 8080.
        self._allowed = frozenset(re.sub(r"[\[\]]", "", host.lower()) for host in allowed)
        self._system = SystemResolver()
        self._resolver = resolver or self._system

    def close(self) -> None:
        """End the resolver."""
        self._system.close()

    def trusts(self, host: str, port: int) -> bool:
        """Whether the host is named as an exception, with this port where it is not the usual one.

        A name alone must not open what else its machine runs: on loopback that is the platform.
        """
        name = host.lower()
        return f"{name}:{port}" in self._allowed or (name in self._allowed and port in _USUAL_PORTS)

    async def addresses(self, host: str, port: int) -> Sequence[str]:
        """Addresses that may be connected to; raises FetchError (`private_address`, `dns`)."""
        try:
            found = await self._resolver(host, port)
        except (OSError, UnicodeError) as error:
            raise FetchError("dns", f"{host}: the name does not resolve.", retry_after=0) from error
        if not found:
            raise FetchError("dns", f"{host}: the name has no address.", retry_after=0)
        if not self.trusts(host, port) and not all(is_public(address) for address in found):
            raise FetchError(
                "private_address",
                f"{host}:{port}: a private address; crawl.allow_private_hosts names exceptions, "
                f"as in {host}:{port}.",
            )
        return found

    async def judge_named(self, host: str, port: int) -> None:
        """The same judgement for a name that somebody else will resolve.

        A name that is unknown here passes. Raises FetchError (`private_address`).
        """
        try:
            await self.addresses(host, port)
        except FetchError as error:
            if error.reason != "dns":
                raise


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
        """Wait."""
        await asyncio.sleep(seconds)
