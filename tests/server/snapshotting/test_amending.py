"""A snapshot waits for the use of words, and is amended by what comes after it."""

from __future__ import annotations

import errno
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from named import named

from embedding.commands.snapshots import amended
from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import UNITS, ContextSums, HandIn, Inherited
from embedding.exchange.peer import ask
from embedding.exchange.protocol import Ask, Push
from embedding.kernel.errors import RefusedError, SnapshotError
from embedding.kernel.records import SourceProgress, Window, WindowUnit
from embedding.server.config import ServerConfig
from embedding.server.service import ParameterServer, running_server
from embedding.settings import Settings
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import SnapshotStore
from waiting import until

AMENDABLE = 2

DIM, DAY = 4, 86_400
START = datetime(2020, 2, 1, tzinfo=UTC)
AT = int(START.timestamp())
WINDOW = Window.holding(START, WindowUnit.DAY)


@dataclass
class Reader:
    """A node that hands in how it used words."""

    node: Any
    life: str
    ids: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def push(self, **more: Any) -> None:
        self.node.sequence += 1
        push = Push(
            self.node.name, self.node.sequence, self.node.clock, incarnation=self.life, **more
        )
        self.node.clock = self.node.client.push(push).clock

    def read(self, documents: int = 1, window: int = AT, source: str = "뉴스") -> None:
        progress = (SourceProgress(source, documents, documents, window + 60.0, window, ()),)
        counts = named(["말"], documents, window=window, source=source)
        self.push(progress=progress, counts=counts, tokens=documents)

    def hand_in(
        self, value: float, documents: int = 1, window: int = AT, inherited: tuple = ()
    ) -> None:
        n = len(self.node.ids)
        sums = np.full((n, DIM), value, np.float16)
        counts = np.full(n, float(documents), np.float32)
        parts = tuple(
            ContextSums(window, "뉴스", part, self.node.ids, sums, counts) for part in (0, UNITS)
        )
        first = self.node.sequence + 1
        self.push(usage=parts, hand_ins=(HandIn(window, first, inherited),))

    def asked(self) -> list[Ask]:
        return self.node.client.report({"sources": {"뉴스": {"pending": 0}}})


def reader(server: ParameterServer, connect: Any, name: str = "n0", life: str = "a") -> Reader:
    config = ExchangeConfig(rows="float32", compression="none", max_backoff_s=0.1)
    node = connect(server, name, config=config)
    node.client._incarnation = life
    node.client.hello()
    node.words("말")
    return Reader(node, life)


def settings(tmp_path, **changes: Any) -> ServerConfig:
    given = {"min_count": 1, "min_authors": 1, "min_sources": 1, "convergence_seconds": 0}
    return ServerConfig(snapshots=str(tmp_path / "snapshots"), **(given | changes))


def opened(tmp_path) -> Snapshot:
    (ref,) = SnapshotStore(str(tmp_path / "snapshots")).list()
    return SnapshotStore(str(tmp_path / "snapshots")).open(ref.id)


def use(snapshot: Snapshot) -> float:
    """The sum of a word, of one unit and dimension."""
    assert snapshot.usage is not None
    return round(float(snapshot.usage.means[0, 0, 0] * snapshot.usage.pairs[0, 0]), 2)


def test_a_cut_waits_for_each_node_that_read_of_the_window_and_says_for_whom(tmp_path, connect):
    with running_server(settings(tmp_path), dim=DIM) as server, ThreadPoolExecutor(1) as pool:
        one, other = reader(server, connect), reader(server, connect, "n1", "b")
        third = reader(server, connect, "n2", "c")
        one.read(2)
        other.read(3)
        cut: Future[Any] = pool.submit(server.snapshotter.cut, WINDOW)
        until(lambda: one.asked() == [Ask(AT, True)])
        assert third.asked() == [], "it read nothing"
        one.hand_in(1.0, 2)
        sentence = "window 2020-02-01 waits for n1 to hand in how it used words."
        until(lambda: server.status()["waits"] == {"2020-02-01": sentence})
        assert one.asked() == []
        assert not cut.done()
        other.hand_in(2.0, 3)
        cut.result(60)
        assert server.status()["waits"] == {}
        assert opened(tmp_path).manifest.missing == ()
        assert use(opened(tmp_path)) == 3.0


def test_a_dead_node_ends_the_wait_and_who_returns_amends(tmp_path, connect):
    with running_server(settings(tmp_path, cut="watermark"), dim=DIM) as server:
        one = reader(server, connect)
        one.read(2)
        one.node.client.close()
        ref = server.snapshotter.cut(WINDOW)
        (lacks,) = opened(tmp_path).manifest.missing
        assert (lacks.part, lacks.reason) == ("usage", "node_lost")
        assert (lacks.where, lacks.documents) == (("n0",), 2)
        old = SnapshotStore(str(tmp_path / "snapshots")).open(ref.id)
        again = reader(server, connect, life="b")
        assert again.asked() == [Ask(AT, True, (("a", "뉴스"),))]
        again.hand_in(4.0, 2, inherited=(Inherited("a", "뉴스", 2),))
        until(lambda: opened(tmp_path).manifest.revision == 2)
        assert opened(tmp_path).manifest.missing == ()
        assert use(opened(tmp_path)) == 4.0
        assert opened(tmp_path).vectors.tolist() == old.vectors.tolist()
        old.verify()
        assert again.asked() == []
        status = server.status()
        assert [one["id"] for one in status["snapshots"]] == [opened(tmp_path).ref.id]
        assert status["windows"]["2020-02-01"]["snapshot"] == opened(tmp_path).ref.id


def test_text_that_is_gone_is_named(tmp_path, connect):
    with running_server(settings(tmp_path), dim=DIM) as server, ThreadPoolExecutor(1) as pool:
        one = reader(server, connect)
        one.read(5)
        again = reader(server, connect, life="b")
        cut = pool.submit(server.snapshotter.cut, WINDOW)
        until(lambda: again.asked() == [Ask(AT, True, (("a", "뉴스"),))])
        again.hand_in(1.0, 3, inherited=(Inherited("a", "뉴스", 3, gone=1),))
        cut.result(60)
        found = {
            one.reason: (one.where, one.documents) for one in opened(tmp_path).manifest.missing
        }
        assert found == {"document_gone": (("뉴스",), 1), "node_lost": (("n0",), 1)}


def test_late_documents_make_a_revision_when_it_is_asked_for(tmp_path, connect):
    store = SnapshotStore(str(tmp_path / "snapshots"))
    with running_server(settings(tmp_path), dim=DIM) as server, ThreadPoolExecutor(1) as pool:
        one = reader(server, connect)
        one.read(2)
        one.hand_in(1.0, 2)
        ref = server.snapshotter.cut(WINDOW)
        one.read(3)
        assert server.status()["windows"]["2020-02-01"]["late_documents"] == 3

        def amend() -> Any:
            return ask(server.location, ExchangeConfig(), "amend", {"window": AT})

        asked = pool.submit(amend)
        until(lambda: one.asked() == [Ask(AT, True)])
        assert "n0" in server.status()["waits"]["2020-02-01"]
        one.hand_in(1.5, 5)
        answer = asked.result(60)
        assert answer == {"id": opened(tmp_path).ref.id, "revision": 2, "missing": []}
        now = opened(tmp_path)
        assert now.manifest.documents == {"뉴스": 5}
        assert now.by_source.counts.tolist() == [5]
        assert use(now) == 1.5
        assert store.open(ref.id).manifest.documents == {"뉴스": 2}
        assert amend()["revision"] == 3
        with pytest.raises(SnapshotError, match="there is none of that id"):
            store.open(ref.id)
        assert store.open(now.ref.id).manifest.revision == 2
        assert [one.id for one in store.list()] == [opened(tmp_path).ref.id]
        with pytest.raises(RefusedError, match=f"kept for the last {AMENDABLE} windows"):
            ask(server.location, ExchangeConfig(), "amend", {"window": AT - DAY})
        assert store.expire(0.0, ()) == [now.ref.id], "retention takes the revision before"


def test_what_came_late_is_amended_by_command_where_the_snapshot_lacks_nothing_else(
    tmp_path, connect
):
    with running_server(settings(tmp_path), dim=DIM) as server:
        one = reader(server, connect)
        one.read(2)
        one.hand_in(1.0, 2)
        server.snapshotter.cut(WINDOW)
        snapshot = opened(tmp_path)
        (nothing,) = amended(snapshot, Settings(), server.location)
        assert "it lacks nothing of 2020-02-01" in nothing
        one.read(3)
        one.hand_in(1.5, 5)
        done, _ = amended(snapshot, Settings(), server.location)
        assert "revision 2 of 2020-02-01" in done
        assert opened(tmp_path).manifest.documents == {"뉴스": 5}


def test_a_person_may_cut_and_amend_without_a_node_that_hangs(tmp_path, connect):
    with running_server(settings(tmp_path), dim=DIM) as server:
        one = reader(server, connect)
        one.read(2)
        server.snapshotter.cut(WINDOW, force=True)
        (lacks,) = opened(tmp_path).manifest.missing
        assert (lacks.reason, lacks.where, lacks.documents) == ("usage_not_handed_in", ("n0",), 2)
        found = ask(server.location, ExchangeConfig(), "amend", {"window": AT, "force": True})
        assert found["revision"] == 2
        assert found["missing"][0]["reason"] == "usage_not_handed_in"
        assert one.asked() == [Ask(AT, True)], "it is waited for still"


def test_a_disk_that_is_full_leaves_the_old_revision_whole(tmp_path, connect, monkeypatch):
    with running_server(settings(tmp_path), dim=DIM) as server:
        one = reader(server, connect)
        one.read(2)
        one.hand_in(1.0, 2)
        server.snapshotter.cut(WINDOW)
        one.read(1)
        one.hand_in(2.0, 3)
        publish = SnapshotStore.publish

        def full(*given: Any, **more: Any) -> Any:
            raise SnapshotError(f"no room: {errno.ENOSPC}")

        monkeypatch.setattr(SnapshotStore, "publish", full)
        with pytest.raises(SnapshotError, match="no room"):
            server.snapshotter.amend(AT)
        opened(tmp_path).verify()
        assert use(opened(tmp_path)) == 1.0
        monkeypatch.setattr(SnapshotStore, "publish", publish)
        server.snapshotter.amend(AT)
        assert use(opened(tmp_path)) == 2.0


@pytest.mark.parametrize("handed", [False, True])
def test_a_server_that_is_killed_between_use_and_publishing_goes_on(tmp_path, connect, handed):
    """Nodes send again what is in no checkpoint; the use that was handed in is there."""
    chosen = settings(tmp_path, state_dir=str(tmp_path / "state"), cut="watermark")
    with running_server(chosen, dim=DIM) as server:
        one, other = reader(server, connect), reader(server, connect, "n1", "b")
        one.read(2)
        other.read(1)
        if handed:
            one.hand_in(1.0, 2)
        one.node.client.checkpoint()
        server.state.flush = lambda: None
        server.recovery._try_write = lambda: "killed"
    with running_server(chosen, dim=DIM) as server, ThreadPoolExecutor(1) as pool:
        cut = pool.submit(server.snapshotter.cut, WINDOW)
        until(lambda: server.status()["waits"])
        one, other = reader(server, connect), reader(server, connect, "n1", "b")
        until(lambda: other.asked() == [Ask(AT, True)])
        assert bool(one.asked()) is not handed
        other.hand_in(2.0, 1)
        if not handed:
            one.hand_in(1.0, 2)
        cut.result(60)
        assert use(opened(tmp_path)) == 3.0
        assert opened(tmp_path).manifest.missing == ()


def test_a_reader_never_sees_half_a_revision(tmp_path, connect):
    with running_server(settings(tmp_path), dim=DIM) as server:
        one = reader(server, connect)
        one.read(1)
        one.hand_in(1.0)
        server.snapshotter.cut(WINDOW)
        stop, seen = threading.Event(), set()

        def look() -> None:
            while not stop.is_set():
                found = opened(tmp_path)
                found.verify()
                seen.add((found.manifest.revision, found.manifest.documents["뉴스"]))

        looking = threading.Thread(target=look)
        looking.start()
        try:
            for n in range(2, 7):
                one.read(1)
                one.hand_in(float(n), n)
                server.snapshotter.amend(AT)
        finally:
            stop.set()
            looking.join(60)
        assert all(revision == documents for revision, documents in seen), seen
        assert opened(tmp_path).manifest.revision == 6
