from __future__ import annotations

import socket
import threading
import time
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from embedding.kernel.clock import EventClock
from embedding.kernel.errors import ConfigError, InputError
from embedding.kernel.ports import address_of, listen_on
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.serve import serve
from yeoron_simweb.testing import AT_ONCE, running

DOCUMENTS = [
    {"date": f"2020-0{month}-{day:02d}", "text": f"글 {month} {day}", "part": "comments"}
    for month in (1, 6)
    for day in range(1, 11)
]


def test_the_clock_waits_for_its_start_and_then_matches_event_clock() -> None:
    config = SimwebConfig(speed=864_000, max_backlog=0)
    with running(config, DOCUMENTS) as url, httpx.Client(base_url=url) as web:
        waiting = web.get("/clock.json").json()
        assert waiting["state"] == "waiting"
        assert len(waiting["knots"]) == 1
        assert web.get("/comments/api").json()["total"] == 0
        started = web.post("/control/start").json()
        assert started["state"] == "playing"
        assert started["speed"] == 864_000
        clock = EventClock([(e, w) for e, w in started["knots"]])
        begin = started["knots"][0][1]
        # Twenty days with one document each take a quarter of their time at most (6 of 24 h).
        assert clock.knots[-1][1] - begin < 1.0
        time.sleep(max(clock.knots[-1][1] - time.time(), 0) + 0.05)
        done = web.get("/clock.json").json()
        assert done["state"] == "done"
        assert done["event"] == "2020-06-11T00:00:00+00:00"
        assert web.get("/comments/api").json()["total"] == 20


def test_the_clock_holds_until_readers_caught_up() -> None:
    config = SimwebConfig(speed=1e9, max_backlog=4, autostart=True, page_items=100)
    with running(config, DOCUMENTS) as url, httpx.Client(base_url=url) as web:
        web.get("/comments/api?limit=1")
        totals = [web.get("/comments/api").json()["total"] for _ in range(10)]
        assert totals == sorted(totals)
        assert all(b - a <= 4 for a, b in pairwise(totals))
        assert totals[-1] == 20
        stats = web.get("/control/stats").json()
        assert stats["parts"]["comments"] == {
            "documents": 20,
            "published": 20,
            "fetched": 20,
        }


def test_requests_to_disallowed_pages_are_counted(web: httpx.Client) -> None:
    robots = web.get("/robots.txt").text
    assert "Disallow: /private/" in robots
    assert "Crawl-delay: 0.5" in robots
    before = web.get("/control/stats").json()["robots_violations"]
    assert "/private/" in web.get("/news/life/list").text
    assert web.get("/private/archive?from=x").status_code == 200
    stats = web.get("/control/stats").json()
    assert stats["robots_violations"] == before + 1
    assert stats["violations"]["/private/archive"] >= 1
    assert stats["requests"]["/news/list"] >= 1
    assert stats["statuses"]["200"] >= 1


def test_statistics_hold_no_text(web: httpx.Client) -> None:
    web.get("/comments/api")
    assert "마스크" not in web.get("/control/stats").text


def test_every_client_sees_addresses_as_it_wrote_them(url: str) -> None:
    port = url.rsplit(":", 1)[1]
    feed = httpx.get(f"http://localhost:{port}/news/rss.xml").text
    assert f"http://localhost:{port}/news/a/" in feed
    assert "127.0.0.1" not in feed


def test_a_taken_port_is_named_before_an_address_is() -> None:
    ready: list[str] = []
    with listen_on("127.0.0.1", 0) as taken:
        port = int(address_of(taken).rsplit(":", 1)[1])
        with pytest.raises(ConfigError, match=rf":{port} cannot be listened on .*--port"):
            serve(SimwebConfig(port=port), ready.append)
    assert ready == []


def test_serve_stops_before_it_listens_where_the_corpus_is_missing(tmp_path: Path) -> None:
    ready: list[str] = []
    with pytest.raises(InputError, match="no such corpus"):
        serve(SimwebConfig(port=0, corpus=tmp_path / "none.jsonl"), ready.append)
    assert ready == []


def test_running_leaves_nothing_behind() -> None:
    threads = threading.active_count()
    with running(documents=DOCUMENTS) as url:
        port = int(url.rsplit(":", 1)[1])
        assert httpx.get(f"{url}/clock.json").json()["state"] == "done"
    assert threading.active_count() == threads
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect(("127.0.0.1", port))


def test_on_loopback_it_answers_to_names_of_this_machine_only() -> None:
    """A page of another site, open in a browser here, whose name is resolved to loopback."""
    with running() as base:
        for name, status in (("127.0.0.1", 200), ("localhost", 200), ("evil.example", 400)):
            told = {"Host": f"{name}:8899"}
            for path in ("/clock.json", "/news/politics/rss.xml"):
                answer = httpx.get(f"{base}{path}", headers=told, trust_env=False)
                assert answer.status_code == status
            stop = httpx.post(f"{base}/control/pause", headers=told, trust_env=False)
            assert (stop.status_code == 400) is (status == 400)
    open_to_all = SimwebConfig(host="0.0.0.0", speed=AT_ONCE, autostart=True)
    with running(open_to_all) as base:
        here = base.replace("0.0.0.0", "127.0.0.1")
        answer = httpx.get(f"{here}/clock.json", headers={"Host": "web.example"}, trust_env=False)
        assert answer.status_code == 200, "whoever lets other machines in may call it as they like"
