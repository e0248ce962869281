"""Idle connections cost a small HTTP server nothing that others need."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
import uvicorn

from embedding.kernel import connections
from waiting import until

MOST_CONNECTIONS = 64

HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the number of bytes of the body; /long with megabytes."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size, more = size + len(message.get("body", b"")), message.get("more_body", False)
    body = b"x" * 30_000_000 if scope["path"] == "/long" else str(size).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(connections, "SILENT_S", 1.0)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(2000)
        config = uvicorn.Config(
            application, http=connections.BoundedProtocol, lifespan="off", log_config=None
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until(lambda: server.started)
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(30)


def opened(port: int, stack: ExitStack) -> socket.socket:
    return stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))


def closed(one: socket.socket) -> bool:
    """Whether the other side has ended it; waits for that."""
    try:
        while one.recv(1 << 20):
            pass
    except ConnectionError:
        pass
    return True


def answer(port: int, **given: Any) -> httpx.Response:
    return httpx.post(f"http://127.0.0.1:{port}/", trust_env=False, timeout=30, **given)


@pytest.mark.parametrize("sent", [b"", HALF, b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"])
def test_who_sends_no_whole_request_is_closed(port: int, sent: bytes) -> None:
    with ExitStack() as stack:
        one = opened(port, stack)
        one.sendall(sent)
        assert closed(one)


def test_a_head_that_drips_has_no_more_time(port: int) -> None:
    with ExitStack() as stack:
        one = opened(port, stack)
        one.sendall(HALF)
        late = time.monotonic() + 30
        with contextlib.suppress(ConnectionError):
            for _ in range(300):
                time.sleep(0.1)
                one.sendall(b"x")
        assert time.monotonic() < late, "it was never closed"


def test_a_body_may_take_its_time_while_it_comes(port: int) -> None:
    def drops() -> Iterator[bytes]:
        for _ in range(5):
            time.sleep(0.4)
            yield b"drop"

    assert answer(port, content=drops()).text == "20"


def test_who_reads_nothing_of_an_answer_is_closed(port: int) -> None:
    with ExitStack() as stack:
        one = opened(port, stack)
        one.sendall(b"GET /long HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        time.sleep(3)
        one.settimeout(30)
        size = 0
        try:
            while chunk := one.recv(1 << 20):
                size += len(chunk)
        except ConnectionError:
            pass
        assert size < 30_000_000


def test_however_many_do_nothing_others_are_answered(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SILENT_S", 600.0)
    with ExitStack() as stack:
        idle = [opened(port, stack) for _ in range(3 * MOST_CONNECTIONS)]
        for one in idle[::2]:
            one.sendall(HALF)
        assert answer(port, content=b"abc").text == "3"
        assert all(closed(one) for one in idle[:MOST_CONNECTIONS]), (
            "those that waited longest made room"
        )
