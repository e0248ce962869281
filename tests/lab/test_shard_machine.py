"""Shards against one table: any order of messages, crashes and restarts gives the same rows."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.exchange.wire import MAX_HEADER_BYTES, Message, encode
from embedding.kernel.errors import ConfigError, RefusedError
from embedding.kernel.records import Table
from embedding.models.config import ModelConfig
from embedding.models.starting import first_vectors
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.parts import Content
from embedding.server.recovery.checkpoint import CheckpointFolder
from embedding.server.rows.devices import pick_device
from embedding.server.rows.tables import Optimizer, Tables
from embedding.server.rowstore import RowShape
from embedding.server.state import ServerState
from generated import examples
from yeoron_lab.columns.minibatches import Minibatches, draws_of
from yeoron_lab.columns.shard import moved
from yeoron_lab.shards.client.split import split_deltas
from yeoron_lab.shards.log import (
    MOST_GIVEN,
    Admit,
    Change,
    CopyRows,
    ShardLog,
    as_json,
    from_json,
)
from yeoron_lab.shards.recovery import ShardRecovery
from yeoron_lab.shards.spec import ShardSpec
from yeoron_lab.shards.state import ShardState

DIM, SEED, COUNT = 2, 7, 2
NODES = ("a", "b")
BUCKETS = 5


class Shard:
    """A shard whose messages are delivered by the test, and that can crash."""

    def __init__(self, index: int, folder: Path, split: str, buckets: int) -> None:
        self.index = index
        self.spec = ShardSpec(
            server=ServerConfig(device="cpu", state_dir=folder, split=split).model_copy(
                update={"initial_rows": 1}
            ),
            index=index,
            count=COUNT,
            dim=DIM,
            buckets=buckets,
            seed=SEED,
            identity="one",
        )
        self.start()

    @property
    def ids(self) -> np.ndarray:
        """Ids given so far, of rows of which something is here."""
        ids = np.arange(self.state.held.next_id, dtype=np.int64)
        return ids[self.spec.layout.held(ids, self.index)]

    def start(self) -> None:
        assert self.spec.server.state_dir is not None
        self.folder = CheckpointFolder(self.spec.server.state_dir, keep=2)
        self.state = ShardState(self.spec, epoch=1)
        self.recovery = ShardRecovery(self.state, self.folder, every_s=1e6)

    def crash(self) -> None:
        self.folder.close()
        self.start()


class ShardsMatchOneTable(RuleBasedStateMachine):
    """Nodes keep their pushes until every shard has them in a checkpoint, as the client does."""

    split = "rows"
    buckets = 0
    within = 0.0

    @initialize()
    def begin(self) -> None:
        self.home = tempfile.TemporaryDirectory()
        self.log = ShardLog(1)
        home = Path(self.home.name)
        self.shards = [Shard(i, home / str(i), self.split, self.buckets) for i in range(COUNT)]
        self.kept: dict[str, list[Push]] = {node: [] for node in NODES}
        self.made = dict.fromkeys(NODES, 0)
        self.ordered = dict.fromkeys(NODES, 0)
        self.rows: dict[int, np.ndarray] = {}
        self.next_id = 0

    def teardown(self) -> None:
        if hasattr(self, "home"):
            for shard in self.shards:
                shard.folder.close()
            self.home.cleanup()

    # -- what the primary and the nodes do ---------------------------------------------------

    @rule(n=st.integers(1, 4), drop=st.integers(0, 2))
    def admit(self, n: int, drop: int) -> None:
        gone = np.array(sorted(self.rows)[:drop], dtype=np.int64)
        for id_ in gone.tolist():
            del self.rows[id_]
        self.log.admit(self.next_id, n, gone)
        fresh = np.arange(self.next_id, self.next_id + n, dtype=np.int64)
        self.rows |= dict(zip(fresh.tolist(), first_vectors(fresh, DIM, SEED), strict=True))
        self.next_id += n

    @rule(node=st.sampled_from(NODES), data=st.data())
    def make_push(self, node: str, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.integers(0, max(self.next_id - 1, 0)), unique=True, max_size=5))
        ids = [] if not self.next_id else sorted(ids)
        self.made[node] += 1
        values = np.full((len(ids), DIM), float(self.made[node]), dtype=np.float32)
        delta = RowDelta(Table.IN, np.array(ids, dtype=np.int64), values)
        self.kept[node].append(Push(node, self.made[node], 0, (delta,)))

    @rule(scale=st.sampled_from([1.0, 0.5, 0.0]), nodes=st.sets(st.sampled_from(NODES), min_size=1))
    def order(self, scale: float, nodes: set[str]) -> None:
        """The primary applies the next push of some nodes, all of which it has."""
        ready = sorted(node for node in nodes if self.ordered[node] < self.made[node])
        if not ready:
            return
        tickets = tuple((node, self.ordered[node] + 1) for node in ready)
        self.log.append(Change(tickets, scale))
        self.ordered |= dict(tickets)
        found = [next(p for p in self.kept[node] if p.sequence == s) for node, s in tickets]
        if scale:
            self.expect(found, scale)

    def expect(self, pushes: list[Push], scale: float) -> None:
        for push in pushes:
            self.add(self.rows, push.deltas[0], scale)

    def add(self, rows: dict[int, np.ndarray], delta: RowDelta, scale: float) -> None:
        """What is known of evicted rows does not change."""
        for id_, row in zip(delta.ids.tolist(), delta.values, strict=True):
            if id_ in self.rows:
                rows[id_] = rows.get(id_, np.zeros(DIM, np.float32)) + np.float32(scale) * row

    def part(self, push: Push, index: int) -> Push:
        """What a shard gets of a push."""
        return Push(push.node, push.sequence, 0, split_deltas(push.deltas, COUNT)[index])

    # -- what the network does ---------------------------------------------------------------

    @rule(index=st.integers(0, COUNT - 1), most=st.integers(1, 5))
    def deliver_log(self, index: int, most: int) -> None:
        shard = self.shards[index]
        stood = shard.state.lead(self.log.number, "one")["position"]
        first, entries = self.log.after(stood)
        sent = [from_json(as_json(entry)) for entry in entries[:most]]
        shard.state.take(self.log.number, first, sent)

    @rule(index=st.integers(0, COUNT - 1), node=st.sampled_from(NODES), again=st.booleans())
    def deliver_push(self, index: int, node: str, again: bool) -> None:
        state = self.shards[index].state
        kept = self.kept[node]
        entry = state.hello(node, kept[0].sequence if kept else self.made[node] + 1)
        for push in kept:
            if push.sequence > entry.accepted or again:
                state.push(self.part(push, index))

    @rule(index=st.integers(0, COUNT - 1))
    def checkpoint(self, index: int) -> None:
        self.shards[index].recovery._write()
        self.log.drop(min(self.on_disk(shard) for shard in self.shards))
        for node in NODES:
            safe = min(shard.state.inbox.ledger.of(node).durable for shard in self.shards)
            self.kept[node] = [
                p for p in self.kept[node] if p.sequence > min(safe, self.ordered[node])
            ]

    def on_disk(self, shard: Shard) -> int:
        """A position of an earlier log says nothing of this one; the primary asks in its own."""
        state = shard.state
        return state.cursor.durable if state.cursor.number == self.log.number else 0

    @rule(index=st.integers(0, COUNT - 1))
    def crash(self, index: int) -> None:
        self.shards[index].crash()

    @rule()
    def restart_primary(self) -> None:
        """It tells every shard again what was not on all disks when it wrote its checkpoint."""
        again = ShardLog(self.log.number + 1)
        again.restore(json.loads(json.dumps(self.log.to_json())))
        self.log = again

    @rule()
    def settle(self) -> None:
        for index, shard in enumerate(self.shards):
            for node in NODES:
                self.deliver_push(index, node, again=False)
            for _ in range(200):
                self.deliver_log(index, 5)
                if shard.state.cursor.position == self.log.position:
                    break
            assert shard.state.cursor.position == self.log.position
        self.compare()

    def compare(self) -> None:
        at = (self.log.number, self.log.position)
        for shard in self.shards:
            ids, columns = shard.ids, shard.spec.columns
            found = shard.state.rows(Table.IN, ids, at)
            wanted = [self.rows.get(i, np.zeros(DIM, np.float32)) for i in ids.tolist()]
            wanted = np.array(wanted, np.float32).reshape(-1, DIM)[:, columns]
            np.testing.assert_allclose(found, wanted, atol=self.within, rtol=0)
            assert shard.state.inbox.lost == 0

    @precondition(lambda self: hasattr(self, "shards"))
    @invariant()
    def no_slot_is_lost(self) -> None:
        for shard in self.shards:
            state = shard.state
            assert len(state.held.map.used()) == len(state.held.map)


class GramsMatchOneTable(ShardsMatchOneTable):
    """The same with rows of n-grams, which are there from the start and are never evicted."""

    buckets = BUCKETS

    @initialize()
    def begin(self) -> None:
        super().begin()
        device, sum_ = pick_device("cpu"), Optimizer()
        tables = Tables(DIM, device=device, capacity=1, seed=SEED, optimizer=sum_, buckets=BUCKETS)
        self.grams = dict(enumerate(tables.read(Table.SUB, np.arange(BUCKETS))))

    @rule(node=st.sampled_from(NODES), data=st.data())
    def make_push(self, node: str, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.integers(0, BUCKETS - 1), unique=True, max_size=4))
        self.made[node] += 1
        values = np.full((len(ids), DIM), float(self.made[node]), dtype=np.float32)
        delta = RowDelta(Table.SUB, np.array(sorted(ids), dtype=np.int64), values)
        self.kept[node].append(Push(node, self.made[node], 0, (delta,)))

    def expect(self, pushes: list[Push], scale: float) -> None:
        for push in pushes:
            for id_, row in zip(push.deltas[0].ids.tolist(), push.deltas[0].values, strict=True):
                self.grams[id_] = self.grams[id_] + np.float32(scale) * row

    def compare(self) -> None:
        super().compare()
        at = (self.log.number, self.log.position)
        for shard in self.shards:
            ids = np.arange(shard.index, BUCKETS, COUNT)
            wanted = np.array([self.grams[i] for i in ids.tolist()])
            assert np.array_equal(shard.state.rows(Table.SUB, ids, at), wanted)
            ends = np.array([0, 0, len(ids)])
            sums = shard.state.gram_sums(ids, ends, at)
            np.testing.assert_allclose(sums, [[0.0] * DIM, wanted.sum(axis=0)], rtol=1e-6)


class ColumnsMatchOneTable(ShardsMatchOneTable):
    """The same where every shard holds a column and learns the blocks itself."""

    split = "columns"
    within = 1e-5

    @initialize()
    def begin(self) -> None:
        super().begin()
        self.contexts: dict[int, np.ndarray] = {}
        self.admit(6, 0)

    @rule(
        scale=st.sampled_from([1.0, 0.5]),
        nodes=st.sets(st.sampled_from(NODES), min_size=1),
        seed=st.integers(0, 2**31),
    )
    def learn(self, scale: float, nodes: set[str], seed: int) -> None:
        """Some nodes push, and what comes next of them is applied as one change."""
        for node in sorted(nodes):
            self.make_push(node, seed)
        self.order(scale, nodes)

    @rule(node=st.sampled_from(NODES), seed=st.integers(0, 2**31))
    def make_push(self, node: str, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.made[node] += 1
        batch = None
        if self.next_id:
            ids = rng.permutation(self.next_id)[:5].astype(np.int64)
            batch = random_block(ids, rng)
        self.kept[node].append(Push(node, self.made[node], 0, minibatches=batch))

    def part(self, push: Push, index: int) -> Push:
        return push

    def compare(self) -> None:
        super().compare()
        for shard in self.shards:
            found = shard.state.rows(Table.OUT, shard.ids, (self.log.number, self.log.position))
            none = np.zeros(DIM, np.float32)
            alive = {i: row for i, row in self.contexts.items() if i in self.rows}
            wanted = [alive.get(i, none) for i in shard.ids.tolist()]
            wanted = np.array(wanted, np.float32).reshape(-1, DIM)[:, shard.spec.columns]
            np.testing.assert_allclose(found, wanted, atol=self.within, rtol=0)

    def expect(self, pushes: list[Push], scale: float) -> None:
        """All pushes of a change step from the rows before it; evicted rows count as zero."""
        found = [self.whole(push.minibatches) for push in pushes if push.minibatches is not None]
        for inputs, outputs in found:
            self.add(self.rows, inputs, scale)
            self.add(self.contexts, outputs, scale)

    def whole(self, batch: Minibatches) -> tuple[RowDelta, RowDelta]:
        """How a block moves whole rows."""
        none = np.zeros(DIM, np.float32)
        held = self.rows, {id_: self.contexts.get(id_, none) for id_ in self.rows}
        ids = batch.ids[: batch.inputs].tolist(), batch.ids.tolist()
        rows = [
            np.array([table.get(i, none) for i in own])
            for table, own in zip(held, ids, strict=True)
        ]
        return moved(batch, *rows)


def random_block(ids: np.ndarray, rng: np.random.Generator) -> Minibatches:
    """A block over these rows, with any slopes, learnt in minibatches of 4 examples."""
    inputs = max(1, len(ids) - 1)
    batch = Minibatches(
        words=rng.integers(0, inputs, 6).astype(np.int32),
        sentences=np.array([0, 6], dtype=np.int32),
        pool=rng.integers(0, len(ids), 8).astype(np.int32),
        ids=ids,
        inputs=inputs,
        draws=draws_of(ModelConfig(window=2, negative=2)),
        seed=int(rng.integers(0, 1000)),
        pairs=4,
        rate=0.1,
    )
    slopes = rng.normal(size=batch.examples.outputs.shape).astype(np.float32)
    shares = rng.random(inputs + len(ids)).astype(np.float32)
    return replace(batch, slopes=slopes, shares=shares if rng.random() < 0.5 else shares[:0])


for machine in (ShardsMatchOneTable, GramsMatchOneTable, ColumnsMatchOneTable):
    machine.TestCase.settings = settings(
        max_examples=examples(40),
        stateful_step_count=30,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
TestShardsMatchOneTable = ShardsMatchOneTable.TestCase
TestGramsMatchOneTable = GramsMatchOneTable.TestCase
TestColumnsMatchOneTable = ColumnsMatchOneTable.TestCase


entries = st.one_of(
    st.builds(
        Admit,
        st.integers(0, 100),
        st.integers(0, 5),
        st.lists(st.integers(0, 99), max_size=4).map(lambda ids: np.array(ids, dtype=np.int64)),
    ),
    st.builds(
        Change,
        st.lists(st.tuples(st.sampled_from(NODES), st.integers(1, 9)), max_size=3).map(tuple),
        st.sampled_from([0.0, 0.5, 1.0]),
        st.booleans(),
    ),
    st.builds(CopyRows, st.integers(0, 9)),
)


@given(st.lists(entries, max_size=20), st.integers(0, 25))
def test_the_log_tells_each_entry_until_it_was_dropped(given_entries, dropped):
    log = ShardLog(1)
    positions = [log.append(entry) for entry in given_entries]
    assert positions == list(range(1, len(given_entries) + 1))
    log.drop(dropped)
    gone = min(dropped, len(given_entries))
    assert log.position == len(given_entries)
    first, left = log.after(0)
    assert (first, len(left)) == (gone + 1, len(given_entries) - gone)
    assert [as_json(e) for e in left] == [as_json(e) for e in given_entries[gone:]]
    assert [as_json(from_json(as_json(e))) for e in left] == [as_json(e) for e in left]
    other = ShardLog(2)
    other.restore(log.to_json())
    kept = [as_json(e) for e in left if not isinstance(e, CopyRows)]
    assert [as_json(e) for e in other.after(0)[1]] == kept
    assert other.floor == log.floor


def test_many_evicted_ids_go_in_several_entries():
    log = ShardLog(1)
    log.admit(5, 3, np.arange(250_000, dtype=np.int64))
    told = []
    while True:
        _, entries_ = log.after(sum(len(e) for e in told))
        if not entries_:
            break
        assert sum(len(e.evicted) for e in entries_) <= 200_000
        told.append(entries_)
    flat = [entry for part in told for entry in part]
    assert np.array_equal(np.concatenate([e.evicted for e in flat]), np.arange(250_000))
    assert sum(entry.count for entry in flat) == 3


def test_many_ids_at_once_are_given_in_several_entries():
    log = ShardLog(1)
    log.admit(7, 100_000, np.array([1, 2], dtype=np.int64))
    entries = log.after(0)[1]
    assert max(entry.count for entry in entries) <= MOST_GIVEN
    given = [i for entry in entries for i in range(entry.first, entry.first + entry.count)]
    assert given == list(range(7, 100_007))
    assert [entry.evicted.tolist() for entry in entries] == [[1, 2], [], [], []]


def test_pushes_of_many_nodes_fit_into_the_header_of_a_message():
    log = ShardLog(1)
    tickets = tuple((f"node-{i:04d}-{'x' * 20}", 1000 + i) for i in range(500))
    for _ in range(300):
        log.append(Change(tickets, 1.0))
    told = 0
    while entries_ := log.after(told)[1]:
        header = {"op": "log", "entries": [as_json(entry) for entry in entries_]}
        assert len(encode(Message(header))[1]) < MAX_HEADER_BYTES
        told += len(entries_)
    assert told == 300


@pytest.fixture
def state():
    spec = ShardSpec(server=ServerConfig(device="cpu"), index=1, count=2, dim=DIM, identity="x")
    return ShardState(spec, epoch=1)


def test_a_shard_refuses_another_primary_a_gap_and_ids_that_are_not_its_own(state):
    with pytest.raises(RefusedError, match="another training"):
        state.lead(3, "y")
    state.lead(3, "x")
    with pytest.raises(RefusedError, match="it expects 1 of log 3"):
        state.take(3, 2, [CopyRows(1)])
    with pytest.raises(RefusedError, match="log 4"):
        state.take(4, 1, [CopyRows(1)])
    state.take(3, 1, [Admit(0, 4)])
    with pytest.raises(RefusedError, match="id mod 2 = 1"):
        state.rows(Table.IN, np.array([0]), (3, 1))
    with pytest.raises(RefusedError, match="outside 0 … 3"):
        state.rows(Table.IN, np.array([5]), (3, 1))
    with pytest.raises(RefusedError, match="gap, shard 1 expects 1"):
        state.push(Push("a", 2, 0))
    assert state.rows(Table.IN, np.array([3]), (3, 1)) is not None


def test_what_the_primary_refused_is_replaced_by_what_comes_under_its_number(state):
    """The primary may refuse a push whose rows are here already; its number is used again."""
    state.lead(3, "x")
    state.take(3, 1, [Admit(0, 2)])
    one = np.array([1])

    def push(value: float) -> Push:
        values = np.full((1, DIM), value, dtype=np.float32)
        return Push("a", 1, 0, (RowDelta(Table.OUT, one, values),))

    state.push(push(5.0))
    state.push(push(2.0))
    state.take(3, 2, [Change((("a", 1),), 1.0)])
    state.push(push(9.0))
    assert state.rows(Table.OUT, one, (3, 2)).tolist() == [[2.0] * DIM]
    assert state.meters.duplicates == 1


def test_pushes_that_died_with_their_node_are_passed_over_and_counted(state):
    state.lead(3, "x")
    state.take(3, 1, [Admit(0, 2), Change((("a", 1),), 1.0), Change((("a", 2),), 1.0)])
    assert state.cursor.position == 1
    state.hello("a", 3)
    assert (state.cursor.position, state.inbox.lost) == (3, 2)


def test_pushes_that_a_node_knows_no_more_are_counted_once_and_not_applied_again(state):
    """Node and primary died; the primary went back, and the node's text is read again."""
    state.lead(3, "x")
    state.take(3, 1, [Admit(0, 2), Change((("a", 1),), 1.0), Change((("a", 2),), 1.0)])
    one = np.array([1])
    for sequence in (1, 2):
        state.push(
            Push("a", sequence, 0, (RowDelta(Table.IN, one, np.ones((1, DIM), np.float32)),))
        )
    before = state.tables.read(Table.IN, state.held.map.slots(one)).tolist()
    state.hello("a", 1, 2)
    assert state.inbox.repeated == 0, "its process is alive and knows both"
    for _ in range(2):
        state.hello("a", 1, 0)
    state.lead(4, "x")
    state.take(4, 1, [Change((("a", 1),), 1.0)])
    state.push(Push("a", 1, 0, (RowDelta(Table.IN, one, np.ones((1, DIM), np.float32)),)))
    assert state.inbox.repeated == 2
    assert state.tables.read(Table.IN, state.held.map.slots(one)).tolist() == before


def test_a_shard_whose_newest_checkpoint_is_damaged_goes_on_from_the_one_before(tmp_path):
    shard = Shard(0, tmp_path, "rows", 0)
    shard.state.lead(3, "one")
    for first in (0, 2):
        shard.state.take(3, 1 + first // 2, [Admit(first, 2)])
        assert shard.recovery._try_write() is None
    rows = tmp_path / "checkpoint-00000002" / "rows.in.npy"
    rows.write_bytes(rows.read_bytes()[:-1] + b"x")
    shard.crash()
    assert shard.state.held.next_id == 2
    assert shard.recovery._try_write() is None, "the number of the damaged one is not taken again"
    shard.crash()
    assert shard.state.held.next_id == 2
    shard.folder.close()


@pytest.mark.parametrize("groups", [["북"], []])
def test_a_leader_of_groups_whose_rows_lay_on_shards_does_not_wait_for_ever(groups):
    """Until 30 November 2026 a leader of groups could have shards: what they moved went past the
    optimiser, and nobody sends it again."""
    state = ServerState(ServerConfig(shards=2, device="cpu"), SyncConfig(), RowShape(DIM))
    entries = [["change", [["group-북", 5]], 1.0, False, [], not groups]]
    log = {"applied": {}, "next_id": 5, "entries": entries}
    with pytest.raises(ConfigError, match="Yeoron of the morning of 30 November 2026, or begin"):
        state.rows.load(Content({"groups": groups, "log": log}, {}, {}))


def test_a_change_of_a_checkpoint_with_aggregators_is_one_of_its_pushes():
    """Until 30 November 2026 an entry could name sums, and say that it goes past the optimiser."""
    stored = ["change", [["a", 1], ["b", 4]], 0.5, True, [[["a", 1], ["b", 4]]], False]
    assert from_json(stored) == Change((("a", 1), ("b", 4)), 0.5, average=True)
