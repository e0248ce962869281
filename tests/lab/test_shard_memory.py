"""A shard whose device has no memory left: nothing counts that is not in its rows."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from lacking import FULL, failing
from threads import fleet, sharded

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.kernel.errors import UnavailableError
from embedding.kernel.records import Table
from embedding.server.config import ServerConfig
from embedding.server.recovery.checkpoint import CheckpointFolder
from embedding.server.rows.devices import HostDevice
from embedding.server.rows.tables import Tables
from waiting import until
from yeoron_lab.shards.log import Admit, Change
from yeoron_lab.shards.recovery import ShardRecovery
from yeoron_lab.shards.spec import ShardSpec
from yeoron_lab.shards.state import NotReachedError, ShardState

DIM = 2


def spec(folder: Path | None = None, **given: object) -> ShardSpec:
    server = ServerConfig(device="cpu", state_dir=folder, **given).model_copy(
        update={"initial_rows": 1}
    )
    return ShardSpec(server=server, index=0, count=1, dim=DIM, seed=7, identity="one")


@pytest.fixture
def state(tmp_path) -> ShardState:
    found = ShardState(spec(tmp_path), epoch=1)
    found.lead(1, "one")
    return found


def pushed(state: ShardState, *, node: str = "a") -> Push:
    """Rows of both tables, and the entries that give and change them."""
    state.hello(node, 1)
    deltas = tuple(
        RowDelta(table, np.arange(3), np.ones((3, DIM), dtype=np.float32))
        for table in (Table.OUT, Table.IN)
    )
    push = Push(node, 1, 0, deltas)
    state.push(push)
    return push


def rows(state: ShardState, table: Table) -> np.ndarray:
    return state.tables.read(table, state.held.map.slots(np.arange(3)))


@pytest.mark.parametrize("error", FULL, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("after", [0, 1])
def test_a_push_counts_once_its_rows_have_changed(
    state, tmp_path, monkeypatch, caplog, error: Exception, after: int
) -> None:
    state.take(1, 1, [Admit(0, 3)])
    start = rows(state, Table.IN)
    mend = failing(monkeypatch, "add", error, after=after)
    pushed(state)
    with caplog.at_level(logging.CRITICAL):
        told = state.take(1, 2, [Change((("a", 1),), 1.0)])
        assert (told["position"], told["pushes"], state.inbox.ledger.of("a").applied) == (1, 0, 0)
        assert told["stuck"].startswith("shard 0 could not change its rows, and tries again: ")
        assert type(error).__name__ in told["stuck"]
        with pytest.raises(NotReachedError):
            state.reach((1, 2))
        recovery = ShardRecovery(state, CheckpointFolder(tmp_path, keep=2), every_s=3600)
        # Half a push would be added again by a shard that goes on from there.
        assert (recovery._try_write() is not None) == (after > 0)
    mend()
    told = state.take(1, 3, [])
    assert (told["position"], told["pushes"], told["stuck"]) == (2, 1, None)
    assert state.inbox.ledger.of("a").applied == 1
    assert rows(state, Table.OUT).tolist() == [[1.0] * DIM] * 3
    assert np.allclose(rows(state, Table.IN), start + 1)


def test_any_other_error_leaves_no_half_that_would_be_added_twice(state, monkeypatch) -> None:
    state.take(1, 1, [Admit(0, 3)])
    mend = failing(monkeypatch, "add", ValueError("a fault"), after=1)
    pushed(state)
    with pytest.raises(ValueError, match="a fault"):
        state.take(1, 2, [Change((("a", 1),), 1.0)])
    mend()
    state.take(1, 3, [])
    assert rows(state, Table.OUT).tolist() == [[1.0] * DIM] * 3
    assert state.inbox.ledger.of("a").applied == 1


def test_another_life_of_the_primary_waits_for_the_half_that_is_lacking(state, monkeypatch) -> None:
    state.take(1, 1, [Admit(0, 3)])
    mend = failing(monkeypatch, "add", MemoryError(), after=1)
    pushed(state)
    state.take(1, 2, [Change((("a", 1),), 1.0)])
    with pytest.raises(UnavailableError, match="shard 0 could not change its rows"):
        state.lead(2, "one")
    mend()
    assert state.lead(2, "one")["applied"] == {"a": 1}
    assert rows(state, Table.OUT).tolist() == [[1.0] * DIM] * 3


@pytest.mark.parametrize("name", ["ensure", "start", "zeros"])
@pytest.mark.parametrize("after", [0, 1, 2])
def test_words_get_their_rows_once_there_is_memory(
    state, monkeypatch, name: str, after: int
) -> None:
    of = HostDevice if name == "zeros" else Tables
    mend = failing(monkeypatch, name, torch.OutOfMemoryError(), after=after, of=of)
    entries = [Admit(0, 3), Admit(3, 40, np.array([1])), Admit(43, 80)]
    told = state.take(1, 1, entries)
    assert told["position"] < 3
    mend()
    told = state.take(1, 4, [])
    assert (told["position"], told["rows"], state.held.next_id) == (3, 122, 123)
    other = ShardState(spec(), epoch=1)
    other.lead(1, "one")
    other.take(1, 1, entries)
    ids = np.delete(np.arange(123), 1)
    for table in (Table.IN, Table.OUT):
        found = [each.tables.read(table, each.held.map.slots(ids)) for each in (state, other)]
        assert found[0].tobytes() == found[1].tobytes()


def test_a_node_waits_and_the_server_says_so(connect, monkeypatch) -> None:
    with sharded(ServerConfig(min_count=1, shards=2, device="cpu"), dim=DIM) as server:
        node = connect(server)
        ids = node.words("봄", "여름", "가을")
        mend = failing(monkeypatch, "add", torch.OutOfMemoryError("out of memory"))
        deltas = (RowDelta(Table.OUT, ids, np.ones((3, DIM), dtype=np.float32)),)
        node.push(deltas)
        until(lambda: any("out of memory" in each for each in server.ailing()))
        assert "failed" in [shard["state"] for shard in server.status()["shards"]]
        assert all(shard.state.meters.pushes == 0 for shard in fleet(server).servers)
        mend()
        until(lambda: not server.ailing())
        node.push(deltas)
        assert node.pull(contexts=ids).rows[Table.OUT].tolist() == [[2.0] * DIM] * 3
