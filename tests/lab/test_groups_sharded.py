"""Server groups whose rows lie on shards: the same as groups that hold them, also after a kill."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
from grouped import DIM, counted, following, ints, moved, read
from threads import ThreadFleet, crash_primary, fleet

from constants import with_constants
from embedding.exchange.protocol import Push
from embedding.kernel.records import ScorePairs, Table
from embedding.server.config import ServerConfig
from embedding.server.service import ParameterServer, running_server
from waiting import until
from yeoron_lab.ports import lasting_port
from yeoron_lab.shards.client.stream import ShardStream

pytestmark = [pytest.mark.laboratory, pytest.mark.timeout(600)]
WORDS = [f"말{i}" for i in range(40)]


@pytest.fixture(autouse=True)
def in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yeoron_lab.shards.sharding.Fleet", ThreadFleet)


def kill(server: ParameterServer, shard: int) -> None:
    """As kill -9 would, and start it again."""
    fleet(server).crash(shard)
    fleet(server).restart(shard)


@pytest.fixture
def leader() -> Iterator[ParameterServer]:
    config = ServerConfig(min_count=1, half_life_tokens=None, shards=2)
    with running_server(config, dim=DIM) as server:
        yield server


def same(one: ParameterServer, other: ParameterServer, ids: np.ndarray, *tables: Table) -> bool:
    tables = tables or (Table.IN, Table.OUT)
    return all(read(one, ids, t).tobytes() == read(other, ids, t).tobytes() for t in tables)


@pytest.mark.parametrize(("of_leader", "of_group"), [(2, 1), (1, 2), (2, 3)])
def test_each_group_has_what_the_nodes_of_all_have_pushed(connect, of_leader, of_group) -> None:
    config = ServerConfig(min_count=1, half_life_tokens=None, shards=of_leader)
    with (
        running_server(config, dim=DIM) as leader,
        following(leader, "b", shards=of_group) as b,
    ):
        nodes = [connect(server, f"n{i}") for i, server in enumerate((leader, b))]
        ids = [node.words(*WORDS[i : i + 30]) for i, node in enumerate(nodes)]
        words = np.unique(np.concatenate(ids))
        for node, own in zip(nodes, ids, strict=True):
            for _ in range(3):
                node.push((*moved(own, 1.0), *moved(own, 0.5, Table.IN)), counted(own))
        until(lambda: leader.state.meters.pushes == 6)
        until(lambda: same(leader, b, words))
        assert read(leader, words)[:, 0].tolist() == [3.0] + [6.0] * 29 + [3.0]
        start = read(leader, words, Table.IN)
        assert np.ptp(start[1:30], axis=0).max() > 0.01  # the rows began as they do anywhere
        assert leader.state.vocabulary.counts(words).tolist() == [3] + [6] * 29 + [3]
        until(lambda: leader.status()["groups"][0]["rows_in"] >= 60)
        status = leader.status()
        assert [(g["group"], g["state"], g["nodes"]) for g in status["groups"]] == [("b", "up", 1)]
        told = status["topology"]
        assert told["bytes"]["groups"] > 0
        assert told["rows"]["groups"] > 0
        pulled = nodes[1].pull(words, words)
        assert pulled.rows[Table.OUT].tobytes() == read(leader, words).tobytes()


def test_a_shard_of_a_group_is_killed_and_each_push_is_in_once(leader, connect) -> None:
    with following(leader, "b", shards=2, every_s=0.3) as b:
        here, there = connect(leader, "n0"), connect(b, "n1")
        ids = there.words(*WORDS)
        here.words(*WORDS)
        for step in range(30):
            there.push((*moved(ids, 1.0), *moved(ids, 2.0, Table.IN)), counted(ids))
            here.push(moved(ids[::3], 1.0), counted(ids[::3]))
            if step in (7, 20):
                kill(b, step % 2)
            time.sleep(0.02)
        until(lambda: leader.state.meters.pushes == 60)
        until(lambda: same(leader, b, ids))
        wanted = np.full(len(ids), 30.0)
        wanted[::3] += 30.0
        assert read(leader, ids)[:, 0].tolist() == wanted.tolist()
        shards = b.status()["shards"]
        assert sum(each["lost_pushes"] + each["repeated_pushes"] for each in shards) == 0
        assert b.status()["following"]["state"] == "up"


def test_a_shard_of_the_leader_is_killed_and_each_push_is_in_once(tmp_path, connect) -> None:
    given = {"state_dir": tmp_path / "state", "checkpoint_every_s": 0.5, "half_life_tokens": None}
    config = ServerConfig(min_count=1, shards=2, **given)
    with (
        running_server(config, dim=DIM) as leader,
        following(leader, "b", every_s=0.2) as b,
        following(leader, "c", every_s=0.2, shards=2) as c,
    ):
        nodes = [connect(server, f"n{i}") for i, server in enumerate((leader, b, c))]
        ids, *_ = [node.words(*WORDS) for node in nodes]
        for step in range(30):
            for node in nodes:
                node.push(moved(ids, 1.0), counted(ids))
            if step in (7, 20):
                kill(leader, step % 2)
        until(lambda: leader.state.meters.pushes == 90)
        for server in (b, c):
            until(lambda server=server: same(leader, server, ids))
        assert set(read(leader, ids)[:, 0].tolist()) == {90.0}


def test_the_leader_with_its_shards_comes_back_from_its_checkpoint(tmp_path, connect) -> None:
    given = {"state_dir": tmp_path / "state", "half_life_tokens": None, "shards": 2}
    config = ServerConfig(min_count=1, checkpoint_every_s=3600, **given)
    with running_server(config, dim=DIM) as leader, following(leader, shards=2) as b:
        node = connect(b, "n1")
        ids = node.words(*WORDS)
        node.push(moved(ids, 1.0), counted(ids))
        until(lambda: leader.state.meters.pushes == 1)
        assert node.client.durable() == 0
        node.client.checkpoint(wait=True)
        assert node.client.durable() == 1
        port = int(leader.location.rpartition(":")[2])
        leader.stop()
        until(lambda: b.status()["following"]["state"] == "away")
        node.push(moved(ids, 2.0), counted(ids))
        again = config.model_copy(update={"port": port})
        with running_server(again, dim=DIM) as leader:
            until(lambda: leader.state.meters.pushes == 2)
            until(lambda: same(leader, b, ids))
            assert set(read(leader, ids)[:, 0].tolist()) == {3.0}


def test_words_come_and_go_on_all_shards(connect) -> None:
    given = {"max_words": 60, "half_life_tokens": None, "shards": 2}
    with (
        running_server(with_constants(ServerConfig, min_count=1, **given), dim=DIM) as leader,
        following(leader, **given) as b,
    ):
        here, there = connect(leader, "n0"), connect(b, "n1")
        for i in range(40):
            node = (here, there)[i % 2]
            ids = node.words(*[f"말{i}-{k}" for k in range(5)])
            node.push(moved(ids, 1.0), counted(ids, 1 + i % 3))

        def alike() -> bool:
            with leader.state.lock, b.state.lock:
                own, other = (s.state.vocabulary.alive() for s in (leader, b))
            return own.tolist() == other.tolist() and same(leader, b, own)

        until(alike)


def test_rows_of_ngrams_and_what_an_optimiser_shrank(connect) -> None:
    given = {"optimizer": "adagrad", "adagrad_rate": 0.5, "shards": 2}
    with (
        running_server(
            with_constants(ServerConfig, min_count=1, **given), dim=DIM, buckets=50
        ) as leader,
        following(leader, buckets=50, **given) as b,
    ):
        node = connect(b, "n1")
        ids, grams = node.words("봄", "여름"), ints(1, 8, 49)
        before = read(leader, grams, Table.SUB)
        node.push((*moved(grams, 0.25, Table.SUB), *moved(ids, 2.0)), counted(ids))
        until(lambda: leader.state.meters.pushes == 1)
        until(lambda: same(leader, b, ids))
        until(lambda: same(leader, b, np.arange(50), Table.SUB))
        assert read(leader, ids)[:, 0].tolist() == [0.5, 0.5]  # 2 · min(1, 0.5 / 2), once
        gone = read(leader, grams, Table.SUB) - before
        np.testing.assert_allclose(gone, 0.25, atol=1e-6)


def test_rows_in_many_pieces_and_a_score_on_shards(connect) -> None:
    config = ServerConfig(min_count=1, shards=2, max_message_bytes=64 * 1024, half_life_tokens=None)
    with (
        running_server(config, dim=DIM) as leader,
        following(leader, every_s=30, shards=2) as b,
    ):
        node = connect(b, "n1")
        many = np.concatenate([node.words(*[f"w{k}-{i}" for i in range(500)]) for k in range(6)])
        for part in np.split(many, 12):  # 3,000 rows of 32 bytes; a piece has 16 KB
            node.push(moved(part, 1.0), counted(part))
        node.client.checkpoint(wait=True)
        assert set(read(leader, many)[:, 0].tolist()) == {1.0}
        assert same(leader, b, many)
        one = ints(int(many[0]))
        pairs = ScorePairs("뉴스", one, one, np.array([[int(many[1])]]), ints(0))
        assert node.pull(one, one, score=[pairs]).nll[0] is not None


def test_words_that_come_between_the_answers_of_primary_and_shards(leader, connect) -> None:
    """A shard tells of rows whose words the primary's answer before it did not know."""
    with following(leader, every_s=30) as b:
        node, rows = connect(leader, "n0"), b.link.client.rows
        answers = rows.answers

        def late(*calls):
            rows.answers = answers
            node.words("봄")
            leader.state.rows.links.catch_up(10.0)
            return answers(*calls)

        rows.answers = late
        b.link.exchange()
        assert b.state.vocabulary.ids(["봄"]).tolist() == [0]
        assert same(leader, b, ints(0))


def test_an_entry_that_is_sent_again_reaches_the_shards_before_the_primary(
    tmp_path, connect, monkeypatch
) -> None:
    """A group that is killed between the two has lost nothing that counts."""
    config = ServerConfig(
        min_count=1,
        half_life_tokens=None,
        shards=2,
        port=lasting_port(),
        state_dir=tmp_path / "state",
    )
    known: list[int] = []
    with running_server(config, dim=DIM) as leader, following(leader, "b") as b:
        node = connect(b, "n1")
        ids = node.words("봄", "여름")
        leader.recovery.request(wait=True)
        node.push(moved(ids, 1.0), counted(ids))
        until(lambda: leader.state.meters.pushes == 1)
        with b.link.lock:
            crash_primary(leader)
            again = running_server(config, dim=DIM)
            leader = again.__enter__()
            send = ShardStream._sent

            def sent(self: ShardStream, push: Push) -> object:
                known.append(leader.state.ledger.of("b").accepted)
                return send(self, push)

            monkeypatch.setattr(ShardStream, "_sent", sent)
        until(lambda: leader.state.meters.pushes == 1)
        assert known[:2] == [0, 0]
        until(lambda: read(leader, ids)[:, 0].tolist() == [1.0, 1.0])
        again.__exit__(None, None, None)
