"""Server groups that come back, or do not, after their leader was started again."""

from __future__ import annotations

import contextlib
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from grouped import DIM, counted, following, moved, read
from named import QUICK

from embedding.kernel.records import Window
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.snapshots.store import SnapshotStore
from waiting import until
from yeoron_lab.groups.client import LeaderClient

pytestmark = [pytest.mark.laboratory, pytest.mark.timeout(600)]

DAY = datetime(1970, 1, 1, tzinfo=UTC)
WINDOW = Window(DAY, DAY.replace(day=2))


def leading(folder: Path) -> ServerConfig:
    return ServerConfig(
        min_count=1,
        half_life_tokens=None,
        snapshots=str(folder / "store"),
        state_dir=folder / "state",
    )


def on_port_of(server: ParameterServer, config: ServerConfig) -> ServerConfig:
    return config.model_copy(update={"port": int(server.location.rpartition(":")[2])})


def test_a_cut_after_the_leaders_restart_waits_for_its_groups(tmp_path, connect) -> None:
    config = leading(tmp_path)
    with running_server(config, dim=DIM) as leader, following(leader) as b:
        node = connect(b, "n1")
        ids = node.words("봄", "여름")
        node.push(moved(ids, 1.0), counted(ids))
        until(lambda: leader.state.meters.pushes == 1)
        with b.link.lock:  # the group does not get to tell anything
            leader.stop()
            node.push(moved(ids, 2.0), counted(ids, 3))
            with running_server(on_port_of(leader, config), dim=DIM) as again:
                assert again.status()["groups"][0]["state"] == "away"
                assert "b" not in again.status()["nodes"]
                snapshotter = connect(again, "n0")
                cutting = threading.Thread(target=lambda: snapshotter.client.cut(WINDOW))
                cutting.start()
                cutting.join(1.0)
                assert cutting.is_alive(), "it was cut without the group"
                b.link.lock.release()
                try:
                    cutting.join()
                finally:
                    b.link.lock.acquire()
                assert read(again, ids)[:, 0].tolist() == [3.0, 3.0]
    (ref,) = SnapshotStore(config.snapshots).list()
    by = SnapshotStore(config.snapshots).open(ref.id).by_source
    assert dict(zip(by.words, by.counts.tolist(), strict=True)) == {"봄": 4, "여름": 4}


def test_the_watermark_waits_after_the_leaders_restart_for_nodes_of_its_groups(
    tmp_path, connect
) -> None:
    config = leading(tmp_path).model_copy(update={"cut": "watermark", "source_idle_s": 60.0})
    with running_server(config, dim=DIM) as leader, following(leader) as b:
        node, own = connect(b, "n1"), connect(leader, "n0")
        ids = node.words("봄", "여름")
        own.words("봄", "여름")
        node.push(moved(ids, 1.0), counted(ids), published=10.0)
        own.push(moved(ids, 1.0), counted(ids), published=10.0)
        until(lambda: leader.state.meters.pushes == 2)
        with b.link.lock:  # the group does not get to tell anything
            leader.stop()
            node.push(moved(ids, 2.0), counted(ids, 3), published=20.0)
            with running_server(on_port_of(leader, config), dim=DIM) as again:
                late = 2 * 86_400
                own.push(moved(ids, 1.0), counted(ids, window=late), window=late)
                until(lambda: again.state.meters.pushes == 3)
                again.state.tick()
                assert not again.state.due(), "n1 has not said how far it is"
                assert not again.snapshotter.refs()
                b.link.lock.release()
                try:
                    node.push(
                        moved(ids, 1.0),
                        counted(ids, window=late),
                        window=late,
                        published=late + 1.0,
                    )
                    until(lambda: bool(again.snapshotter.refs()))
                finally:
                    b.link.lock.acquire()
    (ref,) = SnapshotStore(config.snapshots).list()
    by = SnapshotStore(config.snapshots).open(ref.id).by_source
    assert dict(zip(by.words, by.counts.tolist(), strict=True)) == {"봄": 5, "여름": 5}


def test_a_group_that_does_not_come_back_holds_up_a_cut_for_a_while(
    tmp_path, connect, caplog
) -> None:
    config = leading(tmp_path)
    with running_server(config, dim=DIM) as leader, following(leader) as b:
        node = connect(b, "n1")
        ids = node.words("봄")
        node.push(moved(ids, 1.0), counted(ids))
        until(lambda: leader.state.meters.pushes == 1)
        leader.stop()
    quick = SyncConfig(liveness_timeout_s=2.0)
    with running_server(config, quick, dim=DIM) as again:
        ref = connect(again, "n0").client.cut(WINDOW)
        assert ref.words == 1
        assert "groups b did not tell in time what they had" in caplog.text
        assert again.status()["groups"][0]["state"] == "away"


def test_a_node_that_moved_to_another_group_is_waited_for_there(tmp_path) -> None:
    """Its group of before tells with each exchange that it is gone, or is gone itself."""

    def nodes(state: str) -> dict[str, object]:
        report = {"sources": {"뉴스": {"pending": 1}}}
        return {"nodes": {"n1": {"state": state, "report": report}}}

    with (
        running_server(leading(tmp_path), dim=DIM) as leader,
        contextlib.closing(LeaderClient(leader.location, node="b", config=QUICK)) as before,
        contextlib.closing(LeaderClient(leader.location, node="c", config=QUICK)) as now,
    ):
        tracker, groups = leader.state.accounts.tracker, leader.state.parts["groups"]
        for group in (before, now):
            group.hello()
        before.changes((), nodes("active"))
        assert tracker.sources["뉴스"].pending == {"n1": 1}
        now.changes((), nodes("active"))
        before.changes((), nodes("gone"))
        assert tracker.sources["뉴스"].pending == {"n1": 1}, "it reads at c"
        shown = leader.status()["nodes"]["n1"]
        assert (shown["group"], shown["state"]) == ("c", "active")

        before.close()
        until(lambda: groups.present() == ["c"])
        groups.tick(0.0)
        assert tracker.sources["뉴스"].pending == {"n1": 1}
        now.changes((), nodes("gone"))
        assert tracker.sources["뉴스"].pending == {}
