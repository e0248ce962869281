"""A server whose device has no memory left: nothing counts that is not in its rows."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import numpy as np
import pytest
import torch
from grouped import following
from lacking import FULL, failing
from named import named

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import PROTOCOL_VERSION, PullRequest, Push, nothing_read
from embedding.kernel.errors import RefusedError, UnavailableError
from embedding.kernel.records import Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.rows.devices import HostDevice
from embedding.server.rowstore import ChangeQueue, RowShape
from embedding.server.service import running_server
from embedding.server.state import ServerState
from waiting import until

DIM = 2
ASP = SyncConfig(policy="asp")


@pytest.fixture
def state() -> ServerState:
    config = ServerConfig(min_count=1, device="cpu").model_copy(update={"initial_rows": 4})
    found = ServerState(config, ASP, RowShape(DIM, seed=1))
    found.hello("a", version=PROTOCOL_VERSION, digest="", clock=0)
    found.words.admit(["봄", "여름", "가을"], np.ones(3, dtype=np.int64))
    return found


def pushed(sequence: int = 1) -> Push:
    """Rows of both tables, and ten tokens."""
    deltas = tuple(
        RowDelta(table, np.arange(3), np.ones((3, DIM), dtype=np.float32))
        for table in (Table.OUT, Table.IN)
    )
    return Push("a", sequence, sequence - 1, deltas, nothing_read(), (), tokens=10)


def rows(state: ServerState, table: Table) -> np.ndarray:
    return state.tables.read(table, state.vocabulary.slots(np.arange(3), "read"))


@pytest.mark.parametrize("error", FULL, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("after", [0, 1])
def test_a_push_counts_once_its_rows_have_changed(
    state, monkeypatch, caplog, error: Exception, after: int
) -> None:
    start = rows(state, Table.IN)
    mend = failing(monkeypatch, "add", error, after=after)
    with caplog.at_level(logging.CRITICAL):
        state.push(pushed())
        entry = state.ledger.of("a")
        assert (entry.accepted, entry.applied, state.meters.tokens) == (1, 0, 0)
        refused = (
            lambda: state.push(pushed(2)),
            lambda: state.pull(
                "a", PullRequest({Table.IN: np.arange(3), Table.OUT: np.arange(3)}, 1)
            ),
            lambda: state.words.admit(["겨울"], np.ones(1, dtype=np.int64)),
        )
        for each in refused:
            with pytest.raises(UnavailableError, match=r"^the server could not change its rows, "):
                each()
        assert type(error).__name__ in str(state.changes.stuck)
    mend()
    state.tick()
    assert (entry.applied, state.meters.tokens, state.changes.stuck) == (1, 10, None)
    assert state.push(pushed()).duplicate
    assert rows(state, Table.OUT).tolist() == [[1.0] * DIM] * 3
    assert np.allclose(rows(state, Table.IN), start + 1)
    state.push(pushed(2))
    assert entry.applied == 2
    assert rows(state, Table.OUT).tolist() == [[2.0] * DIM] * 3


def test_an_error_that_is_no_lack_of_memory_is_raised_once(state, monkeypatch) -> None:
    mend = failing(monkeypatch, "add", RefusedError("a fault"))
    with pytest.raises(RefusedError, match="a fault"):
        state.push(pushed())
    mend()
    state.push(pushed(2))
    assert state.ledger.of("a").applied == 2


def test_changes_come_in_order_and_go_on_where_they_stopped() -> None:
    done: list[str] = []
    lacking = {"b2"}

    def step(name: str) -> Callable[[], None]:
        def call() -> None:
            if name in lacking:
                raise MemoryError
            done.append(name)

        return call

    changes = ChangeQueue("it")
    for name in "abc":
        changes.carry_out(lambda name=name: [step(f"{name}{i}") for i in (1, 2)])
    assert (done, changes.waiting) == (["a1", "a2", "b1"], 2)
    with pytest.raises(UnavailableError, match=r"it could not change its rows, .*MemoryError\."):
        changes.check()
    lacking.clear()
    changes.check()
    assert (done, changes.waiting) == (["a1", "a2", "b1", "b2", "c1", "c2"], 0)


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_new_words_have_to_wait_for_memory_and_learning_goes_on(
    state, monkeypatch, caplog, after: int
) -> None:
    """Four rows there are; the tables double in four arrays, of which each may be refused."""
    error = torch.OutOfMemoryError("out of memory")
    mend = failing(monkeypatch, "zeros", error, after=after, of=HostDevice)
    with caplog.at_level(logging.CRITICAL):
        ids = state.words.admit(["겨울", "낮", "밤"], np.ones(3, dtype=np.int64))
    assert sorted(ids.tolist()) == [-1, -1, 3]
    assert "no memory for more than the 4 rows" in str(state.rows.full)
    state.push(pushed())
    assert state.ledger.of("a").applied == 1
    assert state.pull("a", PullRequest({Table.IN: np.arange(4), Table.OUT: np.arange(4)}, 1)).rows[
        Table.IN
    ].shape == (4, DIM)
    mend()
    ids = state.words.admit(["겨울", "낮", "밤"], np.ones(3, dtype=np.int64))
    assert (sorted(ids.tolist()), state.rows.full) == ([3, 4, 5], None)
    assert state.pull("a", PullRequest({Table.IN: ids, Table.OUT: ids}, 1)).rows[
        Table.IN
    ].shape == (
        3,
        DIM,
    )


def test_words_whose_rows_could_not_start_are_read_once_they_have(state, monkeypatch) -> None:
    mend = failing(monkeypatch, "start", torch.OutOfMemoryError())
    ids = state.words.admit(["겨울"], np.ones(1, dtype=np.int64))
    with pytest.raises(UnavailableError):
        state.pull("a", PullRequest({Table.IN: ids, Table.OUT: ids}, 1))
    mend()
    other = ServerState(state.config, ASP, RowShape(DIM, seed=1))
    other.words.admit(["봄", "여름", "가을", "겨울"], np.ones(4, dtype=np.int64))
    found = state.pull("a", PullRequest({Table.IN: ids, Table.OUT: ids}, 1))
    assert found.rows[Table.IN].tolist() == other.tables.read(Table.IN, ids).tolist()


def test_a_node_waits_the_server_says_so_and_no_checkpoint_has_half_a_push(
    tmp_path, connect, monkeypatch
) -> None:
    state = tmp_path / "state"
    config = ServerConfig(min_count=1, device="cpu", state_dir=state, checkpoint_every_s=1.0)
    with running_server(config, ASP, dim=DIM) as server:
        node = connect(server)
        ids = node.words("봄", "여름", "가을")
        mend = failing(monkeypatch, "add", torch.OutOfMemoryError("out of memory"), after=1)
        deltas = tuple(
            RowDelta(table, ids, np.ones((3, DIM), dtype=np.float32))
            for table in (Table.OUT, Table.IN)
        )
        node.push(deltas, named(["봄"], 2))
        assert any("out of memory" in each for each in server.ailing())
        assert server.status()["tokens"] == 0
        failed = server.recovery._try_write()
        assert failed is not None
        assert "could not change its rows" in failed
        read: list[list[list[float]]] = []
        pull = threading.Thread(target=lambda: read.append(node.pull(contexts=ids).rows[Table.OUT]))
        pull.start()
        pull.join(0.5)
        assert pull.is_alive()
        mend()
        pull.join(60)
        assert [rows.tolist() for rows in read] == [[[1.0] * DIM] * 3]
        until(lambda: not server.ailing())
        assert server.recovery._try_write() is None
        assert server.status()["tokens"] == 2
    with running_server(config, ASP, dim=DIM) as server:
        assert server.status()["tokens"] == 2
        slots = server.state.vocabulary.slots(ids, "read")
        assert server.state.tables.read(Table.OUT, slots).tolist() == [[1.0] * DIM] * 3


def test_the_leader_takes_a_groups_entry_whole(connect, monkeypatch) -> None:
    config = ServerConfig(min_count=1, device="cpu")
    with running_server(config, ASP, dim=DIM) as leader, following(leader, dim=DIM) as group:
        node = connect(group)
        ids = node.words("봄", "여름", "가을")
        real, lacking = leader.state.tables.add, [True]

        def add(table: Table, *args: object) -> None:
            if lacking[0] and table is Table.IN:
                raise torch.OutOfMemoryError("out of memory")
            real(table, *args)

        monkeypatch.setattr(leader.state.tables, "add", add)
        deltas = tuple(
            RowDelta(table, ids, np.ones((3, DIM), dtype=np.float32))
            for table in (Table.OUT, Table.IN)
        )
        node.push(deltas, named(["봄"], 2))
        until(lambda: leader.state.changes.stuck is not None)
        assert leader.status()["tokens"] == 0
        lacking[0] = False
        until(lambda: leader.status()["tokens"] == 2)
        slots = leader.state.vocabulary.slots(ids, "read")
        assert leader.state.tables.read(Table.OUT, slots).tolist() == [[1.0] * DIM] * 3
