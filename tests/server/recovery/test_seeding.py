"""Going back to a snapshot: what the server knows then, and what it refuses."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from named import named

from embedding.exchange.client import ParameterClient
from embedding.exchange.payload import RowDelta
from embedding.exchange.peer import Channel
from embedding.exchange.protocol import PullRequest
from embedding.kernel.errors import RefusedError, SnapshotError, UnavailableError
from embedding.kernel.records import Table, Window, WindowUnit
from embedding.server.config import ServerConfig
from embedding.server.ledger.sequence import Fences
from embedding.server.recovery.rewriting import roll_back_state
from embedding.server.service import running_server
from embedding.settings import Settings
from embedding.snapshots.store import SnapshotStore
from waiting import until
from yeoron_lab.ports import lasting_port

NOTHING = "nothing"

DIM = 4
JANUARY = Window.holding(datetime(2020, 1, 5, tzinfo=UTC), WindowUnit.MONTH)
FEBRUARY = Window.holding(datetime(2020, 2, 5, tzinfo=UTC), WindowUnit.MONTH)


def chosen(tmp_path, **changes) -> ServerConfig:
    given = {
        "state_dir": tmp_path / "state",
        "snapshots": str(tmp_path / "snapshots"),
        "window": WindowUnit.MONTH,
        "min_count": 1,
        "checkpoint_every_s": 600.0,
        "rare_mentions": 0,
    }
    return ServerConfig(**{**given, **changes})


def learn(node, window: Window, words: list[str], by: float) -> np.ndarray:
    ids = node.words(*words, counts=2)
    start = int(window.start.timestamp())
    node.pull()
    delta = RowDelta(Table.OUT, np.sort(ids), np.full((len(ids), DIM), by, dtype=np.float32))
    node.push((delta,), named(words, 2), window=start, source="news")
    return ids


@pytest.fixture
def two_windows(tmp_path, connect):
    """A server's state and store after January and February."""
    with running_server(chosen(tmp_path), dim=DIM, seed=5) as server:
        node = connect(server)
        learn(node, JANUARY, ["말", "글"], 1.0)
        first = server.snapshotter.cut(JANUARY)
        learn(node, FEBRUARY, ["말", "스팸"], 5.0)
        second = server.snapshotter.cut(FEBRUARY)
        node.client.close()
    return first, second


def test_the_server_knows_what_the_snapshot_holds_and_no_more(tmp_path, connect, two_windows):
    first, bad = two_windows
    store = SnapshotStore(str(tmp_path / "snapshots"))
    store.withdraw([bad.id], "spam")
    before = store.open(first.id)
    kept = roll_back_state(chosen(tmp_path), first.id, dim=DIM, seed=5)
    assert kept.parent == tmp_path
    assert (kept / "epoch").read_text() == (tmp_path / "state" / "epoch").read_text()
    with running_server(chosen(tmp_path), dim=DIM, seed=5) as server:
        state = server.state
        assert sorted(state.vocabulary.names(state.vocabulary.alive())) == ["글", "말"]
        assert list(server.status()["windows"]) == ["2020-01"]
        assert server.snapshotter.cut(JANUARY).id == first.id
        node = connect(server)
        ids = learn(node, FEBRUARY, ["말", "새말"], 2.0)
        assert ids.min() >= 0
        second = server.snapshotter.cut(FEBRUARY)
        assert second.parent == first.id
        cut = store.open(second.id)
        assert set(cut.words) == {"말", "글", "새말"}
        still, now = cut.index("글"), before.index("글")
        np.testing.assert_array_equal(cut.contexts[still], before.contexts[now])
        moved = cut.contexts[cut.index("말")] - before.contexts[before.index("말")]
        np.testing.assert_allclose(moved, 2.0)
        node.client.close()


def test_to_nothing_is_an_empty_server(tmp_path, two_windows):
    SnapshotStore(str(tmp_path / "snapshots")).withdraw([ref.id for ref in two_windows], "spam")
    roll_back_state(chosen(tmp_path), NOTHING, dim=DIM, seed=5)
    with running_server(chosen(tmp_path), dim=DIM, seed=5) as server:
        assert len(server.state.vocabulary) == 0
        assert server.status()["windows"] == {}


@pytest.mark.parametrize("before", ["state", ".state-rolled-back"])
def test_killed_between_two_renames_the_next_server_finishes_it(
    tmp_path, two_windows, monkeypatch, before: str
):
    """Or the step was not done at all: the state folder is never lost on the way."""
    first, _ = two_windows
    rename = Path.rename

    def killed(path: Path, target: Path) -> Path:
        if path.name == before:
            raise KeyboardInterrupt
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        roll_back_state(chosen(tmp_path), first.id, dim=DIM, seed=5)
    monkeypatch.undo()
    with running_server(chosen(tmp_path), dim=DIM, seed=5) as server:
        words = server.state.vocabulary.names(server.state.vocabulary.alive())
        assert sorted(words) == (["글", "말", "스팸"] if before == "state" else ["글", "말"])
    roll_back_state(chosen(tmp_path), first.id, dim=DIM, seed=5)
    assert not list(tmp_path.glob(".state*"))


def test_a_fenced_life_stays_fenced(tmp_path, two_windows):
    Fences(tmp_path / "state" / "fences.jsonl").add("n0", "old")
    roll_back_state(chosen(tmp_path), NOTHING, dim=DIM, seed=5)
    with running_server(chosen(tmp_path), dim=DIM, seed=5) as server:
        assert server.state.ledger.fences.holds("n0", "old")


def test_bad_input_changes_nothing(tmp_path, two_windows):
    first, _ = two_windows
    held = {path: path.stat().st_mtime_ns for path in (tmp_path / "state").rglob("*")}
    with pytest.raises(SnapshotError, match="none of that id"):
        roll_back_state(chosen(tmp_path), "2020-01-00000000", dim=DIM, seed=5)
    with pytest.raises(SnapshotError, match="4 numbers, the server's 8"):
        roll_back_state(chosen(tmp_path), first.id, dim=8, seed=5)
    (tmp_path / "snapshots" / first.id / "counts.arrow").open("r+b").write(b"damage")
    with pytest.raises(SnapshotError):
        roll_back_state(chosen(tmp_path), first.id, dim=DIM, seed=5)
    with pytest.raises(RefusedError, match="rows that lie on shards"):
        roll_back_state(chosen(tmp_path, shards=2), first.id, dim=DIM, seed=5)
    now = {path: path.stat().st_mtime_ns for path in (tmp_path / "state").rglob("*")}
    assert {path.name for path in now} == {path.name for path in held}
    assert not [path for path in tmp_path.iterdir() if "before" in path.name]


@contextmanager
def serving(tmp_path):
    """`yeoron serve` as a process, on a port that it keeps over its lives."""

    ports = [lasting_port(), lasting_port()]
    environment = {
        **os.environ,
        "YEORON_PATHS__HOME": str(tmp_path / "var"),
        "YEORON_MODEL__DIM": str(DIM),
        "YEORON_SERVER__WINDOW": "month",
        "YEORON_SERVER__MIN_COUNT": "1",
        "YEORON_SERVER__MIN_AUTHORS": "1",
        "YEORON_SERVER__MIN_SOURCES": "1",
        "YEORON_SERVER__RARE_MENTIONS": "0",
    }
    listen, http = f"127.0.0.1:{ports[0]}", str(ports[1])
    command = [sys.executable, "-m", "embedding.cli", "serve", "--listen", listen]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--http-port", http], cwd=tmp_path, env=environment, stderr=log
        )
    try:
        yield f"grpc://127.0.0.1:{ports[0]}", process
    finally:
        process.kill()
        process.wait(300)


def ask(home, location: str, name: str, body: dict | None = None):
    operator = Settings(paths={"home": home / "var"}).line(location, operator=True)
    channel = Channel(location, operator)
    try:
        return channel.action(name, body or {})
    finally:
        channel.close()


def epoch(home, location: str, process, other_than: int | None = None) -> int:
    """The server's incarnation, once it answers with another than this."""

    def answered() -> int | None:
        assert process.poll() is None, "the server ended"
        with contextlib.suppress(UnavailableError):
            found = int(ask(home, location, "status")["epoch"])
            return None if found == other_than else found
        return None

    return until(answered, "the server did not come back")


@pytest.mark.slow
def test_a_running_server_goes_back_by_itself_and_not_while_nodes_train(tmp_path):
    with serving(tmp_path) as (location, process):
        incarnation = epoch(tmp_path, location, process)
        line = Settings(paths={"home": tmp_path / "var"}).line(location)
        node = ParameterClient(location, node="n", config=line)
        node.hello()
        ids = node.admit(["말"], np.array([3]))
        node.pull(PullRequest({Table.IN: ids, Table.OUT: np.array([], dtype=np.int64)}, clock=0))
        with pytest.raises(RefusedError, match="n still train; stop the pool first"):
            ask(tmp_path, location, "rollback", {"to": NOTHING})
        node.close()

        def rolled_back() -> bool:
            with contextlib.suppress(RefusedError):
                ask(tmp_path, location, "rollback", {"to": NOTHING})
                return True
            return False

        until(rolled_back)
        assert epoch(tmp_path, location, process, incarnation) > incarnation
        assert ask(tmp_path, location, "status")["vocabulary"] == 0
        with pytest.raises(RefusedError, match="none of that id"):
            ask(tmp_path, location, "rollback", {"to": "2020-01-00000000"})
        assert ask(tmp_path, location, "ping") is True
