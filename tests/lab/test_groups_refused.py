"""Server groups: what cannot work is refused in a sentence, and nothing changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from grouped import DIM, following, ints, moved, read
from named import QUICK
from threads import sharded

from embedding.exchange.codec import to_message
from embedding.exchange.payload import RowDelta
from embedding.exchange.peer import Channel
from embedding.exchange.protocol import Push
from embedding.exchange.wire import Message
from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError, RefusedError
from embedding.kernel.records import Table
from embedding.server.compatibility import SERVER_GROUPS, SHARDS
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.policies.traits import POLICIES
from embedding.server.service import ParameterServer, running_server
from waiting import until
from yeoron_lab.groups.client import LeaderClient
from yeoron_lab.groups.entry import EntryPiece, GroupEntry
from yeoron_lab.groups.leader import check_follows

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def leader() -> Iterator[ParameterServer]:
    with running_server(ServerConfig(min_count=1, half_life_tokens=None), dim=DIM) as server:
        yield server


def configure(server: ParameterServer, policy: str) -> None:
    """Ask a running server to change its policy."""
    channel = Channel(server.location, QUICK)
    try:
        channel.action("configure", {"policy": policy})
    finally:
        channel.close()


def test_a_group_of_another_model_is_refused(leader) -> None:
    wrong = pytest.raises(ConfigError, match="8 columns, this server's 4")
    with wrong, following(leader, dim=4):
        pass


@pytest.mark.parametrize("policy", ["hogwild", "sandblaster"])
def test_policies_that_change_rows_otherwise_are_refused(leader, policy: str) -> None:
    sync = SyncConfig(policy=policy)
    wrong = pytest.raises(ConfigError, match=f"policy {policy} with server groups")
    with wrong, following(leader, sync=sync):
        pass
    refused = pytest.raises(RefusedError, match=f"cannot lead a group: its policy is {policy}")
    with running_server(ServerConfig(), sync, dim=DIM) as other, refused, following(other):
        pass
    with following(leader) as b:
        with pytest.raises(RefusedError, match=r"follow \(b\): .*, auto, .*, ssp are accepted"):
            configure(leader, policy)
        with pytest.raises(RefusedError, match="with server groups"):
            configure(b, policy)


def test_what_is_said_to_be_accepted_is_accepted() -> None:
    assert set(POLICIES) - set(SERVER_GROUPS.accepted) == {"hogwild", "sandblaster"}
    for policy in SERVER_GROUPS.accepted:
        check_follows(SyncConfig(policy=policy), 1.0)
        assert SHARDS.met(policy)


@pytest.mark.parametrize(
    ("places", "why"),
    [
        ({"shards": 2}, "its rows lie on 2 shards; 1 shard is accepted"),
        ({"shards": 1, "split": "columns"}, "its split is columns; rows is accepted"),
    ],
)
def test_a_server_with_shards_leads_no_group(places, why: str) -> None:
    config, refused = ServerConfig(min_count=1, **places), pytest.raises(RefusedError, match=why)
    with sharded(config, dim=DIM) as other, refused, following(other):
        pass


def test_a_group_leads_no_other(leader) -> None:
    refused = pytest.raises(RefusedError, match=r"it follows grpc://\S+ itself; group.leader has")
    with following(leader, "b") as b, refused, following(b, "c"):
        pass


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"group": {"leader": "grpc://h:1"}}, "without a name"),
        ({"group": {"name": "b"}}, "without a leader"),
        ({"group": {"leader": "h:1", "name": "b"}}, "grpc://HOST:PORT"),
        ({"group": {"leader": "grpc://h:1", "name": "b", "every_s": 0}}, "greater than 0"),
    ],
)
def test_a_place_that_cannot_be_is_refused(given, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        ServerConfig(**given)


@pytest.mark.parametrize("split", ["rows", "columns"])
def test_a_group_with_shards_is_refused(split: str) -> None:
    group = {"leader": "grpc://127.0.0.1:1", "name": "b"}
    config = ServerConfig(group=group, shards=2, split=split)
    with pytest.raises(ConfigError, match=rf"leader with 2 shards and split {split}: .* 1 shard"):
        ParameterServer(config, dim=DIM)


def test_what_is_wrong_about_a_place_is_one_sentence_without_the_whole_section() -> None:
    for group, said in (
        ({"name": "b"}, "group: name b without a leader: "),
        ({"leader": "http://h:1", "name": "b"}, "group.leader: grpc://HOST:PORT, or "),
    ):
        with pytest.raises(ConfigError) as refused:
            validate(ServerConfig, {"group": group}, "serve")
        assert str(refused.value).startswith(f"serve: {said}")
        assert "{" not in str(refused.value)


def test_a_node_that_pushed_elsewhere_ends_the_group_that_would_push_twice(leader, connect) -> None:
    with following(leader, every_s=0.5) as b:
        there = connect(b, "n1")
        ids = there.words("봄")
        with b.state.lock:  # the group takes nothing meanwhile
            connect(leader, "n1").push(moved(ids, 1.0))
        there.push(moved(ids, 1.0))
        until(lambda: b.status()["following"]["state"] == "failed")
        assert "the node has pushed elsewhere" in b.ailing()[0]
        assert read(leader, ids)[0, 0] == 1.0


@pytest.fixture
def raw(leader) -> Iterator[Callable[..., Message]]:
    """Sends a group's messages as they are."""
    client = LeaderClient(leader.location, node="g", config=QUICK)
    client.hello()
    client.changes((), {})
    client.admit(["봄", "여름"], ints(5, 5))

    def send(header: dict, arrays: dict | None = None) -> Message:
        return client.peer.request(Message(header, arrays or {}))

    yield send
    client.close()


TOLD = {"op": "changes", "seen": 0, "epoch": 0}
LONG = {"x" * 1001: {"pending": 1}}
PART = Push("n1", 1, 0, tokens=1)


def rows(ids: np.ndarray | None = None, values: np.ndarray | None = None) -> dict[str, Any]:
    """A row of `out`, unless told otherwise."""
    ids = ints(0) if ids is None else ids
    values = np.ones((len(ids), DIM), dtype=np.float32) if values is None else values
    return {"rows": (RowDelta(Table.OUT, ids, values),)}


GOOD = GroupEntry("g", 1, (PART,), (0,), **rows())


def merging(entry: GroupEntry = GOOD) -> tuple[dict, dict]:
    """Header and parts of an entry's message."""
    message = to_message(entry)
    return dict(message.header), dict(message.arrays)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"sequence": 3}, "gap"),
        ({"sequence": 0}, "sequence"),
        ({"after": (1,)}, "not above `after`"),
        ({"after": ()}, "`after` must be"),
        ({"after": ("x",)}, "after"),
        ({"digests": (1,)}, "digest"),
        ({"scored": (("s", 0, -1.0, 1),)}, "scored must be a finite number from 0"),
        ({"pushes": (replace(PART, node="g"),)}, "g is a group"),
        ({"pushes": (replace(PART, node="a\nb"),)}, "control characters"),
        ({"pushes": (PART, PART), "after": (0, 0)}, "named twice"),
        ({"pushes": (replace(PART, sequence=5),), "after": (3,)}, "of which 0 are taken"),
        (rows(values=np.full((1, DIM), np.nan, dtype=np.float32)), "not finite"),
        (rows(values=np.ones((1, 3), dtype=np.float32)), "shape"),
        (rows(ints(99)), "outside"),
        (rows(ints(0, 0)), "twice"),
    ],
)
def test_an_entry_that_is_wrong_changes_nothing(leader, raw, changes, what: str) -> None:
    before = read(leader, ints(0, 1)).tobytes()
    with pytest.raises(RefusedError, match=what):
        raw(*merging(replace(GOOD, **changes)))
    assert read(leader, ints(0, 1)).tobytes() == before
    assert leader.state.ledger.of("g").accepted == leader.state.ledger.of("n1").accepted == 0
    raw(*merging())
    assert read(leader, ints(0))[0, 0] == 1.0  # the stream goes on


@pytest.mark.parametrize(
    ("header", "what"),
    [
        ({"op": "changes", "seen": -2, "epoch": 0, "told": {}}, "seen"),
        ({"op": "changes", "seen": 0, "epoch": 0}, "told"),
        ({**TOLD, "told": {"nodes": 3}}, "told"),
        ({**TOLD, "told": {"nodes": {"n1": 3}}}, "n1 must be an object"),
        ({**TOLD, "told": {"nodes": {"n1": {"report": 3}}}}, "and its `report` too"),
        ({**TOLD, "told": {"nodes": {"a\nb": {}}}}, "control characters"),
        ({**TOLD, "told": {"nodes": {f"x{i}": {} for i in range(10_000)}}}, "known already"),
        ({**TOLD, "told": {"nodes": {}, "figures": {"told_rows_in": "many"}}}, "of numbers"),
        ({**TOLD, "told": {"nodes": {"n1": {"report": {"sources": LONG}}}}}, "a name of at most"),
        ({"op": "rows", "table": "none"}, "in, out or sub"),
        ({"op": "rows", "table": "sub"}, "n-grams"),
        ({"op": "piece", "sequence": 1, "piece": 3, "sizes": [0]}, "piece 3 of entry 1"),
    ],
)
def test_questions_that_are_wrong_are_refused(leader, raw, header: dict, what: str) -> None:
    raw({**TOLD, "told": {"nodes": {"n0": {"state": "idle", "report": {}}}}})
    with pytest.raises(RefusedError, match=what):
        raw(header, {"ids": ints(0)})
    status = leader.status()
    assert [group["group"] for group in status["groups"]] == ["g"]
    assert list(status["nodes"]) == ["n0"]


def test_pieces_take_no_more_memory_than_the_rows_that_there_are(leader, raw, monkeypatch) -> None:
    most = 9 * (4 * DIM + 8)  # of two words, each of which may have moved and been evicted
    monkeypatch.setattr("yeoron_lab.groups.leading.MOST_MESSAGES", 0)

    def piece(number: int, size: int) -> None:
        message = to_message(EntryPiece(1, number, np.zeros(size, dtype=np.uint8)))
        raw(message.header, message.arrays)

    with pytest.raises(RefusedError, match=f"{most + 1} bytes; at most {most} are accepted"):
        piece(0, most + 1)
    for number in range(most):
        piece(number, 0)
    with pytest.raises(RefusedError, match=f"{most + 1} bytes; at most {most}"):
        piece(most, 0)
    raw(*merging())


def test_an_entry_of_one_node_too_many_is_refused(leader, raw, monkeypatch) -> None:
    monkeypatch.setattr("embedding.server.validation.MAX_NODES", 1)
    with pytest.raises(RefusedError, match="node n1: 1 nodes are known already"):
        raw(*merging())
    assert set(leader.state.ledger.nodes) == {"g"}


def test_a_group_that_would_be_taken_for_gone_between_exchanges_is_refused(leader) -> None:
    sync = SyncConfig(liveness_timeout_s=4.0)
    wrong = pytest.raises(ConfigError, match=r"every 3 s with liveness_timeout_s 4: .* at most 2 s")
    with wrong, following(leader, sync=sync, every_s=3.0):
        pass
    with following(leader, sync=sync, every_s=2.0) as b:
        channel = Channel(b.location, QUICK)
        with pytest.raises(RefusedError, match="at most 1 s is accepted"):
            channel.action("configure", {"liveness_timeout_s": 2.0})
        channel.close()


def test_a_group_keeps_the_pace_that_its_leader_asks_for() -> None:
    """The leader counts it as gone after its own timeout, not after the group's."""
    quick = SyncConfig(liveness_timeout_s=4.0)
    with running_server(ServerConfig(), quick, dim=DIM) as leader:
        wrong = pytest.raises(ConfigError, match=r"the leader's liveness_timeout_s 4: .* 2 s is")
        with wrong, following(leader, every_s=3.0):
            pass
        with following(leader, every_s=1.5):
            channel = Channel(leader.location, QUICK)
            until(lambda: "every_s" in leader.state.parts["groups"].groups["b"].figures)
            with pytest.raises(RefusedError, match=r"group b has .* every 1\.5 s .* 1 s is"):
                channel.action("configure", {"liveness_timeout_s": 2.0})
            channel.action("configure", {"liveness_timeout_s": 3.0})
            channel.close()


def test_the_leader_goes_back_to_no_snapshot_while_groups_would_bring_it_all_again(
    tmp_path, connect
) -> None:
    config = ServerConfig(
        min_count=1, state_dir=tmp_path / "state", snapshots=str(tmp_path / "store")
    )
    with running_server(config, dim=DIM) as leader:
        leader._ended = threading.Event()
        with following(leader) as b:
            connect(b, "n1").pull()
            with pytest.raises(RefusedError, match=r"groups b follow .* stop their servers"):
                leader.roll_back("nothing")
        leader.roll_back("nothing")
        assert leader.wants_back == "nothing"
        assert leader._ended.wait(120)
