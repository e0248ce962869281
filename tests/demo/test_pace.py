"""The demo's web waits for its nodes: for learning, and for the cut of each month."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.kernel.records import Window, WindowUnit
from generated import examples
from waiting import until
from yeoron_demo.pace import (
    EDGE_S,
    QUIET_LOOKS,
    UNREAD_LOOKS,
    Pacer,
    PlayLimit,
    PlayProgress,
)
from yeoron_simweb.config import SimwebConfig
from yeoron_simweb.corpus import CorpusDocument, PlaybackCorpus
from yeoron_simweb.testing import running
from yeoron_simweb.world import World

DAYS = [date(2021, month, day) for month in (1, 2, 3) for day in range(1, 29)]
MONTHS = [
    Window.holding(datetime(2021, month, 1, tzinfo=UTC), WindowUnit.MONTH) for month in (1, 2, 3)
]


@contextmanager
def status_server(status: dict[str, object]) -> Iterator[str]:
    """A server that answers every request with what `status` holds at that moment."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(status).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/status"
        server.shutdown()


def corpus() -> PlaybackCorpus:
    documents = [
        CorpusDocument(
            when=datetime(day.year, day.month, day.day, tzinfo=UTC), title="", text=f"글 {day} {at}"
        )
        for day in DAYS
        for at in range(2)
    ]
    return PlaybackCorpus("generated", tuple(documents))


@dataclass
class SlowNodes:
    """Nodes that read and learn when they are told to, and a server that cuts what is complete.

    dropped  every so manieth document is a copy that is never learnt; 0: none is
    """

    world: World
    dropped: int = 0
    read: int = 0
    learnt: int = 0
    cut: list[str] = field(default_factory=list)

    def seen(self) -> PlayProgress:
        published = len(self.world.clock.published)
        learnt = self.learnt - (self.learnt // self.dropped if self.dropped else 0)
        return PlayProgress(
            event=self.world.clock.event,
            published=published,
            unread=published - self.read,
            learnt=learnt,
            pending=self.read - self.learnt,
            cut=frozenset(self.cut),
        )

    def work(self, reads: int, learns: int, cuts: bool) -> None:
        self.read = min(self.read + reads, len(self.world.clock.published))
        self.learnt = min(self.learnt + learns, self.read)
        due = [one for one in MONTHS if one.label not in self.cut]
        if cuts and due and self.world.clock.event >= due[0].end.timestamp():
            self.cut.append(due[0].label)


steps = st.lists(
    st.tuples(st.floats(0, 60), st.integers(0, 30), st.integers(0, 30), st.booleans()), max_size=60
)


@settings(max_examples=examples(100), deadline=None)
@given(steps=steps, dropped=st.sampled_from([0, 7]))
def test_no_month_begins_before_the_one_before_is_learnt_and_cut(steps, dropped) -> None:
    wall = [1_700_000_000.0]
    config = SimwebConfig(
        seconds_per_month=5.0, max_backlog=20, shares={"life": 1.0}, last_day=date(2021, 3, 31)
    )
    world = World(config, corpus(), lambda: wall[0])
    nodes, pace = SlowNodes(world, dropped), PlayLimit(MONTHS)
    events = [item.event for item in world.library.items]
    world.pace(pace.until(nodes.seen()), 0)
    world.start()

    def step(seconds: float, reads: int, learns: int, cuts: bool) -> None:
        wall[0] += seconds
        world.tick()
        for month in MONTHS:
            end = month.end.timestamp()
            if world.clock.event >= end:
                assert nodes.learnt >= sum(event < end for event in events), "it ended unlearnt"
            if month.label not in nodes.cut:
                assert len(world.clock.published) <= sum(event < end for event in events)
        nodes.work(reads, learns, cuts)
        seen = nodes.seen()
        world.pace(pace.until(seen), seen.unlearnt)

    for one in steps:
        step(*one)
    for _ in range(3 * (QUIET_LOOKS + 40)):
        step(1.0, 20, 20, True)
    assert nodes.cut == [month.label for month in MONTHS]
    assert len(world.clock.published) == len(events)
    assert world.clock.event >= MONTHS[-1].end.timestamp()


def test_a_page_that_cannot_be_read_does_not_stop_the_play_for_good() -> None:
    limit, end = PlayLimit(MONTHS), MONTHS[0].end.timestamp()
    lost = PlayProgress(end - EDGE_S, published=9, unread=1, learnt=8, pending=0, cut=frozenset())
    asked = [limit.until(lost) for _ in range(UNREAD_LOOKS + 3)]
    assert asked[0] == end - EDGE_S
    assert asked[-1] == end + EDGE_S


def test_a_node_that_stands_still_stops_the_month() -> None:
    pace, end = PlayLimit(MONTHS), MONTHS[0].end.timestamp()
    late = PlayProgress(
        end - EDGE_S, published=100, unread=0, learnt=60, pending=40, cut=frozenset()
    )
    assert {pace.until(late) for _ in range(10 * QUIET_LOOKS)} == {end - EDGE_S}
    assert late.unlearnt == 40


def test_after_the_last_cut_it_plays_to_the_end() -> None:
    done = frozenset(month.label for month in MONTHS)
    assert PlayLimit(MONTHS).until(PlayProgress(0.0, 5, 0, 5, 0, done)) == math.inf


def test_a_real_web_waits_for_what_the_server_says_and_plays_on_afterwards() -> None:
    documents = [
        {"date": f"2021-0{month}-{day:02d}", "text": f"글 {month} {day}", "part": "life"}
        for month in (1, 2)
        for day in range(1, 11)
    ]
    status = {"documents": 0, "windows": {}, "sources": {"sim-list": {"pending": 10}}}
    config = SimwebConfig(speed=1e9, max_backlog=50, last_day=date(2021, 2, 28))
    with running(config, documents) as web, status_server(status) as server:

        def published() -> int:
            found: int = httpx.get(f"{web}/control/stats", trust_env=False).json()["published"]
            return found

        with Pacer(MONTHS[:2], web, server):
            httpx.post(f"{web}/control/start", trust_env=False)
            until(lambda: published() == 10)
            status |= {"documents": 10, "sources": {"sim-list": {"pending": 0}}}
            until(
                lambda: (
                    httpx.get(f"{web}/control/stats", trust_env=False).json()["event"]
                    >= MONTHS[0].end.timestamp()
                )
            )
            assert published() == 10, "January is not cut"
            status["windows"] = {"2021-01": {"snapshot": "2021-01-abc"}}
            until(lambda: published() == 20)
        until(lambda: httpx.get(f"{web}/clock.json", trust_env=False).json()["state"] == "done")
