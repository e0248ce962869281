"""Small real servers on loopback that answer exactly what a test says."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from embedding.crawl.browser import ChromiumProcess
from embedding.crawl.config import CrawlConfig
from embedding.crawl.fetcher import Fetcher, Request, Response
from pgserver import PostgresServer
from yeoron_simweb.testing import running

Handler = Callable[[str, dict[str, str], asyncio.StreamWriter], Awaitable[None]]


def reply(body: bytes | str = b"", status: str = "200 OK", **headers: str) -> bytes:
    """Bytes of an HTTP answer; underscores in header names become hyphens."""
    raw = body.encode() if isinstance(body, str) else body
    named = {"content-type": "text/html", "content-length": str(len(raw))}
    named |= {key.replace("_", "-"): value for key, value in headers.items()}
    lines = [f"HTTP/1.1 {status}", *(f"{k}: {v}" for k, v in named.items()), "connection: close"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + raw


@dataclass
class Site:
    """A site: answers by path, and what it was asked for."""

    base: str = ""
    answers: dict[str, bytes | Handler] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    most_at_once: int = 0
    _open: int = 0

    @property
    def host(self) -> str:
        return self.base.removeprefix("http://")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            path = head[0].split(" ")[1]
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
            self.asked.append(path)
            self.headers.append(headers)
            answer = self.answers.get(path, reply("no such page", "404 Not Found"))
            if callable(answer):
                await answer(path, headers, writer)
            else:
                writer.write(answer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open -= 1
            writer.close()


@asynccontextmanager
async def serving() -> AsyncIterator[Site]:
    site = Site()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    site.base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield site
    finally:
        server.close()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as found:
        yield found


@pytest.fixture
async def other_site() -> AsyncIterator[Site]:
    async with serving() as found:
        yield found


@pytest.fixture(scope="module")
async def lent() -> AsyncIterator[Callable[..., Awaitable[ChromiumProcess]]]:
    """Starts a Chromium for the tests of a file, or gives the one that still runs."""
    start, end, running = ChromiumProcess.start, ChromiumProcess.end, []

    async def started(executable: Path | None) -> ChromiumProcess:
        if executable is not None:
            return await start(executable)
        if running and running[0].lost:
            await end(running.pop())
        if not running:
            running.append(await start(None))
        running[0].pages = 0
        return running[0]

    yield started
    for browser in running:
        await end(browser)


@pytest.fixture
def one_browser(lent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools use one Chromium after each other: to start one takes seconds."""

    async def stays(_: ChromiumProcess) -> None:
        pass

    monkeypatch.setattr(ChromiumProcess, "start", lent)
    monkeypatch.setattr(ChromiumProcess, "end", stays)


@pytest.fixture(params=["file", "memory", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of an empty database, of each kind that a frontier can have."""
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        return server.new_database()
    return "sqlite://" if request.param == "memory" else f"sqlite:///{tmp_path}/deep/f.db"


@pytest.fixture(scope="session")
def simweb() -> Iterator[str]:
    with running() as base:
        yield base


def quick(*hosts: str, **more: object) -> CrawlConfig:
    """A configuration for loopback servers, without any waiting.

    The time limit is long, for the machine may be busy; see `hasty` for what must time out.
    """
    values: dict[str, object] = {
        "allow_private_hosts": hosts,
        "rate": 1000.0,
        "timeout": 60.0,
        "extract_processes": 0,
    }
    constants = {name: more.pop(name) for name in CrawlConfig.constants() if name in more}
    config = CrawlConfig(**{**values, **more})  # type: ignore[arg-type]
    return config.model_copy(update={"backoff": 0.05, **constants})


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Give requests for some paths a short time limit, and all others the configured one."""
    once = Fetcher._once

    def only(*paths: str, timeout: float = 0.3) -> None:
        async def chosen(self: Fetcher, request: Request, *rest: Any, **more: Any) -> Response:
            if not request.url.endswith(paths):
                return await once(self, request, *rest, **more)
            twin = copy.copy(self)
            twin._config = self._config.model_copy(update={"timeout": timeout})
            return await once(twin, request, *rest, **more)

        monkeypatch.setattr(Fetcher, "_once", chosen)

    return only


@pytest.fixture(name="quick")
def quick_fixture() -> Callable[..., CrawlConfig]:
    return quick


@pytest.fixture(name="reply")
def reply_fixture() -> Callable[..., bytes]:
    return reply
