"""Stores, applications and a running server for the page's tests."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import numpy as np
import pyarrow as pa
import pytest
import uvicorn
from fastapi import FastAPI

from embedding.ask.config import AxisConfig
from embedding.exchange.payload import UNITS
from embedding.kernel.records import SnapshotData
from embedding.show.team import TeamStore
from embedding.snapshots.evidence import EVIDENCE_SCHEMA, EvidenceStore
from embedding.snapshots.store import SnapshotStore
from embedding.snapshots.usage import Usage
from embedding.trends import storage
from embedding.trends.report import build_report
from embedding.web.config import WebConfig

sys.path.insert(0, str(Path(__file__).parent))

from unguarded import unguarded

from browsing import CHROMIUM, FLAGS, PATIENCE
from waiting import until

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


ODD = "배"
LOSSES = {"nll": 2.0, "nll.뉴스": 1.9, "nll.게시판": 2.25, "nll.댓글": 1.95}
BRIGHT = ("좋다", "최고", "만족", "기쁘다", "고맙다")
DARK = ("나쁘다", "최악", "실망", "슬프다", "화나다")


@pytest.fixture(scope="session")
def config(planted, tmp_path_factory) -> WebConfig:
    """Five windows with planted changes and hostile words, and the latest report saved."""
    root = tmp_path_factory.mktemp("page")
    plan = planted.Plan(
        seed=2,
        windows=5,
        fillers=300,
        moved={"코로나": ("영화", "바이러스", 4)},
        born={"신천지": ("바이러스", 4), HOSTILE["script"]: ("정치", 4)},
        risen={"마스크": 4},
        lone={},
        extra=(*(HOSTILE[name] for name in HOSTILE if name != "script"), ODD, *BRIGHT, *DARK),
    )
    store = SnapshotStore(root / "snapshots")
    parent = None
    for data in planted.stream(plan):
        data = replace(data, parent=parent, quality=LOSSES)
        parent = store.publish(data, use_of(data)).id
    storage.save(build_report(store), root / "trends")
    note_addresses(root / "evidence")
    return WebConfig(
        snapshots=str(root / "snapshots"),
        reports=root / "trends",
        evidence=root / "evidence",
        token_file=root / "token",
        accounts=root / "accounts.sqlite",
        axes=(AxisConfig(name="sentiment", positive=BRIGHT, negative=DARK),),
        watch=("마스크",),
    )


@pytest.fixture(scope="session")
def hostile() -> dict[str, str]:
    """Words that are no words."""
    return HOSTILE


def use_of(data: SnapshotData) -> Usage:
    """Sums of usage: the board uses `ODD` as it does dark words; 코로나 goes over to them."""
    rng = np.random.default_rng(5)
    sources = sorted(data.documents)
    n, dim, units = len(data.words), data.vectors.shape[1], UNITS
    true = data.vectors / np.linalg.norm(data.vectors, axis=1, keepdims=True)
    bright, dark = np.eye(dim)[0] * 1.5, np.eye(dim)[1] * 1.5
    place = {word: at for at, word in enumerate(data.words)}
    for words, end in ((BRIGHT, bright), (DARK, dark)):
        for word in words:
            true[place[word]] = end + rng.normal(size=dim) * 0.1
    late = data.window.start.year == 2020 and data.window.start.month >= 3
    true[place["코로나"]] = dark if late else bright
    means = np.stack([true] * len(sources))
    for at, source in enumerate(sources):
        means[at, place[ODD]] = dark if source == "게시판" else bright
    pairs = rng.integers(2, 8, (len(sources) * n, units)).astype(np.float32)
    noise = rng.normal(size=(len(sources) * n, units, dim)) * 0.4 / np.sqrt(pairs)[..., None]
    return Usage(
        rows=np.tile(np.arange(n), len(sources)),
        sources=[source for source in sources for _ in range(n)],
        mentions=np.full(len(sources) * n, 40),
        pairs=pairs,
        means=(means.reshape(-1, 1, dim) + noise).astype(np.float32),
    )


def note_addresses(folder: Path) -> None:
    """Two documents of the last window that hold 코로나, one of them with a hostile address."""
    rows = [
        (source, f"https://{source_host}.example/{at}", datetime(2020, 3, 2 + at, 9, tzinfo=UTC))
        for at, (source, source_host) in enumerate([("뉴스", "news"), ("게시판", "board")])
    ]
    rows.append(("댓글", 'https://x.example/"><script>alert(1)</script>', rows[0][2]))
    rows.append(("댓글", "javascript:alert(1)", rows[0][2]))
    table = pa.table(
        {
            "word": ["코로나"] * len(rows),
            "source": [row[0] for row in rows],
            "day": [int(row[2].timestamp() // 86_400) for row in rows],
            "hash": list(range(len(rows))),
            "url": [row[1] for row in rows],
            "published": [row[2].timestamp() for row in rows],
        },
        schema=EVIDENCE_SCHEMA,
    )
    EvidenceStore(folder).add(table, "node-1")


@contextmanager
def running(app: FastAPI) -> Iterator[str]:
    """Serve an application on a free port of loopback; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        until(lambda: server.started)
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
    with client_of(unguarded(config)) as one:
        one.headers["accept-language"] = "ko"
        yield one


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator:
    """A Chromium for the tests of a file."""
    from playwright.async_api import async_playwright

    async with async_playwright() as p:
        one = await p.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS], timeout=PATIENCE)
        yield one
        await one.close()


@pytest.fixture
def page_of(browser) -> Callable:
    """Opens a page of its own; an error of its scripts or of the content policy fails the test."""

    @asynccontextmanager
    async def opened(**options) -> AsyncIterator:
        context = await browser.new_context(**{"locale": "ko-KR", **options})
        context.set_default_timeout(PATIENCE)
        page = await context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda m: errors.append(m.text) if "Policy" in m.text else None)
        page.on("dialog", lambda dialog: errors.append(f"dialog {dialog.message}"))
        try:
            yield page
            assert errors == []
        finally:
            await context.close()

    return opened


@pytest.fixture(scope="module")
def address(config, serve, tmp_path_factory) -> str:
    """The application served beside a parameter server that does not answer; a team shares a word
    and notes, and gets reports by mail.
    """
    team = TeamStore(tmp_path_factory.mktemp("team") / "team.json")
    team.watch("마스크", "가람", alert=True)
    team.note("word", "코로나", "약국마다 다르다\n<b>확인</b>", "가람")
    team.note("window", "2020-03", "이번 달", "나래")
    team.mail_report("html", "ko", "가람")
    live = config.model_copy(update={"status_url": "http://127.0.0.1:9/status", "team": team.path})
    return serve(unguarded(live, "email"))
