"""The trigger against a real HTTP server that answers, goes away and comes back."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from embedding_airflow.triggers import WindowTrigger
from waiting import eventually

BEFORE, AFTER = "2020-02-20T00:00:00+00:00", "2020-03-02T00:00:00+00:00"
END = 1_583_020_800.0


def status(published: str) -> dict[str, Any]:
    entry = {"documents": 5, "tokens": 500, "published_at": published, "idle_s": 0.0}
    return {"sources": {"hani": entry}, "windows": {}, "nodes": {}}


@contextmanager
def status_server(answer: Callable[[], tuple[int, bytes]], port: int = 0) -> Iterator[str]:
    """An HTTP server on loopback; `answer` gives code and body of each reply."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, body = answer()
            self.send_response(code)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/status"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def trigger(url: str, **changes: Any) -> WindowTrigger:
    now = time.time()
    given: dict[str, Any] = {
        "status_url": url,
        "group": "news",
        "sources": ["hani"],
        "label": "2020-02",
        "end": END,
        "started": now,
        "deadline": now + 600,
        "poll_s": 0.02,
        "idle_after_s": 60.0,
        "unreachable_s": 600.0,
    }
    return WindowTrigger(**(given | changes))


async def event(watch: WindowTrigger) -> dict[str, Any]:
    """The payload of the one event that it fires."""
    events = [fired async for fired in watch.run()]
    assert len(events) == 1
    return events[0].payload


def always(code: int, body: Any) -> Callable[[], tuple[int, bytes]]:
    return lambda: (code, json.dumps(body).encode())


async def test_it_fires_once_the_sources_have_passed():
    replies = iter([status(BEFORE), status(BEFORE), status(AFTER)])
    with status_server(lambda: (200, json.dumps(next(replies)).encode())) as url:
        payload = await event(trigger(url))
    assert payload["state"] == "passed"
    assert payload["passed"] == ["hani"]
    assert (payload["documents"], payload["tokens"]) == (5, 500)
    json.dumps(payload)


async def test_progress_is_logged_once_for_each_change():
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    replies = iter([status(BEFORE), status(BEFORE), status(BEFORE), status(AFTER)])
    with status_server(lambda: (200, json.dumps(next(replies)).encode())) as url:
        watch = trigger(url)
        logger = logging.getLogger("tests.progress")
        logger.setLevel(logging.INFO)
        logger.addHandler(Keep())
        watch._log = logger
        await event(watch)
    assert len(lines) == 2
    assert "waiting for hani" in lines[0]
    assert "1 of 1 sources" in lines[1]


@pytest.mark.parametrize("state", ["idle", "gone"])
async def test_sources_are_silent_only_once_their_node_is_ready(state: str) -> None:
    """Kernels that are compiled first take longer than the silence that ends the wait."""
    began = time.time()
    entry = {"documents": 0, "tokens": 0, "published_at": None, "idle_s": 100.0}

    def answer() -> tuple[int, bytes]:
        ready = state == "idle" and time.time() - began > 0.8
        node = {"state": state, "report": {"warm": ready}}
        body = {"sources": {"hani": entry}, "windows": {}, "nodes": {"n0": node}}
        return 200, json.dumps(body).encode()

    with status_server(answer) as url:
        watch = trigger(url, started=began, idle_after_s=0.3, deadline=began + 30)
        payload = await event(watch)
    assert (payload["state"], payload["idle"]) == ("passed", ["hani"])
    assert state == "gone" or time.time() - began >= 1.0


async def test_a_snapshot_cut_meanwhile_ends_the_wait():
    body = {**status(BEFORE), "windows": {"2020-02": {"snapshot": "s9"}}}
    with status_server(always(200, body)) as url:
        payload = await event(trigger(url))
    assert payload["state"] == "passed"
    assert payload["snapshot"] == "s9"


async def test_the_time_limit_fires_with_what_is_missing():
    with status_server(always(200, status(BEFORE))) as url:
        payload = await event(trigger(url, deadline=time.time() + 0.2))
    assert payload["state"] == "timeout"
    assert payload["waiting"] == ["hani"]
    assert "hani" in payload["message"]


@pytest.mark.parametrize(
    "answer", [(500, b"{}"), (200, b"not json"), (200, b"[1, 2]"), (404, b"")], ids=repr
)
async def test_a_broken_answer_is_no_answer(answer):
    with status_server(lambda: answer) as url:
        payload = await event(trigger(url, unreachable_s=0.1))
    assert payload["state"] == "unreachable"
    assert "yeoron status" in payload["message"]


async def test_a_server_that_restarts_is_waited_for():
    """Away at first, then back: the same trigger goes on and fires `passed`."""
    with status_server(always(200, status(AFTER))) as url:
        port = int(url.split(":")[2].split("/")[0])
    watch = asyncio.create_task(event(trigger(url)))
    await asyncio.sleep(0.2)
    assert not watch.done()
    with status_server(always(200, status(AFTER)), port=port):
        payload = await asyncio.wait_for(watch, 120)
    assert payload["state"] == "passed"


async def test_a_server_that_stays_away_is_reported():
    with status_server(always(200, {})) as url:
        pass
    payload = await event(trigger(url, unreachable_s=0.1))
    assert payload["state"] == "unreachable"
    assert url in payload["message"]


async def test_it_survives_serialisation_the_way_airflow_stores_it():
    from airflow.models.trigger import Trigger
    from airflow.sdk._shared.module_loading import import_string

    watch = trigger("http://127.0.0.1:1/status", sources=["한겨레", "hani"])
    path, arguments = watch.serialize()
    stored = Trigger.encrypt_kwargs(arguments)
    again = import_string(path)(**Trigger._decrypt_kwargs(stored))
    assert type(again) is WindowTrigger
    assert again.serialize() == watch.serialize()
    json.dumps(arguments)


async def test_a_cancelled_trigger_closes_its_connection():
    with status_server(always(200, status(BEFORE))) as url:
        watch = trigger(url, poll_s=30.0)
        running = asyncio.create_task(event(watch))
        client = await eventually(lambda: watch.client)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert client.is_closed
        await watch.cleanup()


async def test_cleanup_before_it_ran_does_nothing():
    await trigger("http://127.0.0.1:1/status").cleanup()
