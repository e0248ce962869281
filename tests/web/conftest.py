"""Stores, applications and a running server for the page's tests."""

from __future__ import annotations

import importlib.util
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType

import httpx
import pytest
import uvicorn
from fastapi import Depends, FastAPI

from embedding.trends import storage
from embedding.trends.report import build_report
from embedding.web.app import create_app
from embedding.web.config import WebConfig

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "attribute": '" onmouseover="alert(1)',
    "long": "가" * 10_000,
    "emoji": "👩‍👩‍👧🇰🇷",
    "rtl": "\u202eمرحبا\u202c",
    "slash": "a/../b",
    "dots": "..",
    "percent": "100%25&w=#x",
    "template": "{{7*7}}",
}


@pytest.fixture(scope="session")
def planted() -> ModuleType:
    """The synthetic stream that the trends room's tests publish too."""
    path = Path(__file__).parent.parent / "trends" / "planted.py"
    spec = importlib.util.spec_from_file_location("planted", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["planted"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def config(planted, tmp_path_factory) -> WebConfig:
    """Five windows with planted changes and hostile words, and the latest report saved."""
    root = tmp_path_factory.mktemp("page")
    plan = planted.Plan(
        windows=5,
        fillers=300,
        moved={"코로나": ("영화", "바이러스", 4)},
        born={"신천지": ("바이러스", 4), HOSTILE["script"]: ("정치", 4)},
        risen={"마스크": 4},
        lone={},
        extra=tuple(HOSTILE[name] for name in HOSTILE if name != "script"),
    )
    store = planted.make_store(str(root / "snapshots"), plan)
    storage.save(build_report(store), root / "trends")
    return WebConfig(
        snapshots=str(root / "snapshots"), reports=root / "trends", token_file=root / "token"
    )


def let_in() -> None:
    """Stands for another application's login that lets the reader in."""


@contextmanager
def running(app: FastAPI) -> Iterator[str]:
    """Serve an application on a free port of loopback; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        deadline = time.monotonic() + 120
        while not server.started:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[[FastAPI], str]]:
    """Serve applications until the session ends."""
    with ExitStack() as stack:
        yield lambda app: stack.enter_context(running(app))


@pytest.fixture(scope="session")
def client_of(serve) -> Callable[..., httpx.Client]:
    """Serve an application and talk to it."""

    def make(app: FastAPI, *, follow_redirects: bool = False) -> httpx.Client:
        return httpx.Client(
            base_url=serve(app), follow_redirects=follow_redirects, trust_env=False, timeout=120
        )

    return make


@pytest.fixture(scope="session")
def client(config, client_of) -> Iterator[httpx.Client]:
    """The application as it is mounted behind another login."""
    with client_of(create_app(config, dependencies=[Depends(let_in)])) as one:
        one.headers["accept-language"] = "ko"
        yield one
