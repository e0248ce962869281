"""The httpx transports whose requests pass the address guard."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpcore
import httpx

from embedding.crawl.guard import AddressGuard, GuardedBackend


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
