"""Groups of nodes with rows on shards: each push applied once, whatever dies between."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
from named import QUICK
from threads import fleet, sharded

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Table
from embedding.server.config import ServerConfig, SyncConfig
from yeoron_lab.aggregating.aggregator import Aggregator, Aggregators, Upstreams, served
from yeoron_lab.aggregating.relay import AggregatorLine
from yeoron_lab.shards.log import Change, as_json, from_json

DIM, WORDS = 4, 10
pytestmark = [pytest.mark.laboratory, pytest.mark.timeout(600)]


@pytest.fixture(params=["asp", "bsp"])
def server(request, tmp_path):
    kept = ServerConfig(
        shards=2, state_dir=tmp_path, checkpoint_every_s=600.0, min_count=1, device="cpu"
    )
    with sharded(kept, SyncConfig(policy=request.param), dim=DIM) as running:
        yield running


@pytest.fixture
def nodes(server, connect):
    made = [connect(server, name) for name in ("n0", "n1")]
    for node in made:
        node.words(*(f"말{i}" for i in range(WORDS)))
        node.pull()
    return made


@contextmanager
def grouped(server, nodes, wait_s: float = 60.0):
    """The nodes push by an aggregator, which is a thread here."""
    aggregator = Aggregator(server.location, QUICK, wait_s=wait_s)
    service = served(aggregator, QUICK.max_message_bytes)
    location = f"grpc://127.0.0.1:{service.port}"
    for node in nodes:
        node.client.relay = AggregatorLine(location, group="g", config=QUICK, timeout_s=wait_s)
    try:
        yield aggregator
    finally:
        for node in nodes:
            node.client.relay.close()
            node.client.relay = None
        aggregator.close()
        service.shutdown()


def moved(node, value: float, ids=None) -> tuple[RowDelta, ...]:
    ids = node.ids if ids is None else ids
    return (RowDelta(Table.OUT, ids, np.full((len(ids), DIM), value, dtype=np.float32)),)


def both(nodes, *values: float) -> None:
    """Each node pulls and pushes all of these, at the same time as the other."""
    from concurrent.futures import ThreadPoolExecutor

    def work(node) -> None:
        for value in values:
            node.pull()
            node.push(moved(node, value))

    with ThreadPoolExecutor(len(nodes)) as pool:
        list(pool.map(work, nodes))


def seen(node) -> list[float]:
    return sorted(set(node.pull(contexts=node.ids).rows[Table.OUT].ravel().tolist()))


def pushes_of(nodes, value: float) -> list[Push]:
    found = []
    for node in nodes:
        node.sequence += 1
        found.append(Push(node.name, node.sequence, node.clock, moved(node, value)))
    return found


def test_a_group_pushes_as_one_and_shards_add_each_push_once(server, nodes):
    with grouped(server, nodes) as aggregator:
        both(nodes, 1.0, 2.0, 3.0)
        assert seen(nodes[0]) == [12.0]
        # A node takes part from its first push on: the first ones may leave one by one.
        assert aggregator.sums in (3, 4)
        assert [node.client.relay.direct for node in nodes] == [0, 0]
        status = server.status()
        assert status["pushes"] == 6
    for shard in fleet(server).servers:
        # Each row of the sum came once, not once for each node.
        assert shard.state.meters.rows_in == aggregator.sums * WORDS / 2
        assert shard.state.meters.pushes == 6


def test_a_shard_that_lost_a_sum_gets_each_nodes_own_rows(server, nodes):
    with grouped(server, nodes):
        both(nodes, 1.0)
        nodes[0].client.checkpoint()
        both(nodes, 2.0, 4.0)
        fleet(server).crash(1)
        fleet(server).restart(1)
        both(nodes, 8.0)
        assert seen(nodes[0]) == seen(nodes[1]) == [30.0]
        assert [s.state.inbox.lost for s in fleet(server).servers] == [0, 0]
        nodes[0].client.checkpoint()
        assert all(node.client.durable() == node.sequence for node in nodes)


def test_an_aggregator_that_dies_before_the_primary_heard_changes_nothing(server, nodes):
    pushes = pushes_of(nodes, 1.0)
    upstreams = Upstreams(server.location, QUICK)
    upstreams._send_parts(pushes)
    upstreams.close()
    for node, push in zip(nodes, pushes, strict=True):
        node.clock = node.client.push(push).clock
    assert seen(nodes[0]) == [2.0]
    assert not any(shard.state.inbox._sums for shard in fleet(server).servers)


def test_an_aggregator_that_dies_before_the_nodes_heard_changes_nothing(server, nodes):
    pushes = pushes_of(nodes, 1.0)
    upstreams = Upstreams(server.location, QUICK)
    sessions = [node.client.welcome.session for node in nodes]
    assert [ack["sequence"] for ack in upstreams.send(pushes, sessions)] == [1, 1]
    for node, push in zip(nodes, pushes, strict=True):
        ack = node.client.push(push)
        assert ack.duplicate
        node.clock = ack.clock
    assert seen(nodes[0]) == [2.0]
    with pytest.raises(RefusedError, match="among others"):
        upstreams.send(pushes, sessions)
    upstreams.close()
    assert seen(nodes[1]) == [2.0]


def test_a_shard_that_has_a_sum_alone_is_sent_what_the_log_wants(server, nodes):
    """A primary that was started again and lost the sum hears of the pushes one by one."""
    pushes = pushes_of(nodes, 1.0)
    upstreams = Upstreams(server.location, QUICK)
    upstreams._send_parts(pushes)
    upstreams.close()
    for node, push in zip(nodes, pushes, strict=True):
        node.clock = node.client.push(push).clock
    assert seen(nodes[0]) == [2.0]
    assert seen(nodes[1]) == [2.0]


def test_a_node_that_stays_away_is_not_waited_for(server, nodes):
    one, two = nodes
    with ExitStack() as stack:
        stack.enter_context(grouped(server, nodes, wait_s=0.5))
        both(nodes, 1.0)
        two.client.idle()
        one.pull()
        one.push(moved(one, 2.0))
        assert seen(one) == [4.0]


@pytest.mark.parametrize("tickets", [(), (("n0", 1.5),), (("a", 1), ("a", 2)), ((1,),)])
def test_a_sum_of_no_pushes_or_of_a_node_twice_is_refused(server, tickets):
    tickets = [list(ticket) for ticket in tickets]
    message = Message({"op": "together", "tickets": tickets, "deltas": []})
    with pytest.raises(RefusedError, match="tickets"):
        Aggregators.taken_by_shard(fleet(server).servers[0].state, message)


def test_sums_of_a_change_come_back_from_a_checkpoint():
    plain = Change((("a", 1),), 1.0)
    summed = Change((("a", 1), ("b", 7), ("c", 2)), 0.5, False, ((("a", 1), ("b", 7)),))
    assert [from_json(as_json(each)) for each in (plain, summed)] == [plain, summed]
