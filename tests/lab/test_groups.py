"""Server groups over the wire: one set of tables, whoever a node pushes to."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import httpx
import numpy as np
import pytest
from certificates import make_certificate, make_token
from grouped import DIM, counted, following, ints, moved, read
from named import QUICK

from constants import with_constants
from embedding.commands.status_tables import figure_table
from embedding.exchange.client import ParameterClient
from embedding.exchange.payload import BlockCounts, CountGroup, WordContexts
from embedding.exchange.peer import Channel
from embedding.exchange.protocol import Push
from embedding.exchange.wire import MAX_HEADER_BYTES, encode
from embedding.kernel.errors import FencedError
from embedding.kernel.records import ScorePairs, SourceProgress, Table, Window
from embedding.server import service
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer, running_server
from embedding.snapshots.store import SnapshotStore
from waiting import until
from yeoron_lab.groups.entry import encode_entry
from yeoron_lab.groups.taking import Cut, NewPushes, compose, group_shares
from yeoron_lab.settings import GroupConfig

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def leader() -> Iterator[ParameterServer]:
    with running_server(ServerConfig(min_count=1, half_life_tokens=None), dim=DIM) as server:
        yield server


def test_each_group_has_what_the_nodes_of_all_have_pushed(leader, connect) -> None:
    with following(leader, "b") as b, following(leader, "c") as c:
        nodes = [connect(server, f"n{i}") for i, server in enumerate((leader, b, c))]
        ids = [node.words("봄", f"말{i}") for i, node in enumerate(nodes)]
        assert len({each[0] for each in ids}) == 1  # the same word has the same id everywhere
        assert len({each[1] for each in ids}) == 3
        for node, own in zip(nodes, ids, strict=True):
            for _ in range(3):
                node.push(moved(own, 1.0), counted(own))
        words = np.unique(np.concatenate(ids))
        until(lambda: leader.state.meters.pushes == 9)
        for server in (b, c):
            until(lambda server=server: server.state.vocabulary.next_id == len(words))
            until(
                lambda server=server: read(server, words).tobytes() == read(leader, words).tobytes()
            )
            start = read(server, words, Table.IN)
            assert start.tobytes() == read(leader, words, Table.IN).tobytes()
        assert read(leader, ids[0])[:, 0].tolist() == [9.0, 3.0]
        counts = dict(zip(words.tolist(), leader.state.vocabulary.counts(words), strict=True))
        assert counts[ids[0][0]] == 9
        assert counts[ids[2][1]] == 3
        status = leader.status()
        assert [(g["group"], g["state"], g["nodes"]) for g in status["groups"]] == [
            ("b", "up", 1),
            ("c", "up", 1),
        ]
        until(lambda: leader.status()["nodes"]["n1"].get("sequence") == 3)
        assert leader.status()["nodes"]["n1"]["group"] == "b"
        assert status["topology"]["bytes"]["groups"] > 0
        told = b.status()["following"]
        assert (told["state"], told["waiting_pushes"]) == ("up", 0)


def test_no_byte_of_a_group_that_comes_back_is_counted_as_a_nodes(leader) -> None:
    servers, nodes = leader.state.reports.servers, leader.state.meters
    with following(leader):
        until(lambda: "b" in servers)
    counted_before = (nodes.bytes_in, nodes.bytes_out)
    of_group = servers["b"].bytes_in
    with following(leader):
        until(lambda: servers["b"].bytes_in > of_group)
    assert (nodes.bytes_in, nodes.bytes_out) == counted_before


def test_halves_differ_by_their_rounding_alone(leader, connect) -> None:
    with following(leader, rows="float16") as b:
        node = connect(b, "n1")
        ids = node.words(*[f"말{i}" for i in range(20)])
        for step in range(5):
            node.push(moved(ids, 0.1 + step / 7), counted(ids))
        until(lambda: leader.state.meters.pushes == 5)
        exact = sum(np.float32(0.1 + step / 7) for step in range(5))
        for server in (leader, b):
            until(lambda server=server: np.allclose(read(server, ids), exact, rtol=2**-9))


def test_a_node_is_told_its_push_is_durable_once_the_leader_has_it(tmp_path, connect) -> None:
    config = ServerConfig(min_count=1, state_dir=tmp_path / "state", checkpoint_every_s=3600)
    with running_server(config, dim=DIM) as leader, following(leader) as b:
        node = connect(b, "n1")
        ids = node.words("봄")
        node.push(moved(ids, 1.0), counted(ids))
        until(lambda: leader.state.meters.pushes == 1)
        assert node.client.durable() == 0
        node.client.checkpoint(wait=True)
        assert node.client.durable() == 1
        assert leader.state.ledger.of("n1").durable == 1


@pytest.mark.laboratory
def test_groups_train_on_while_their_leader_is_away(tmp_path, connect) -> None:
    config = ServerConfig(min_count=1, state_dir=tmp_path / "state", half_life_tokens=None)
    with running_server(config, dim=DIM) as leader, following(leader) as b:
        node = connect(b, "n1")
        ids = node.words("봄", "여름")
        node.push(moved(ids, 1.0), counted(ids))
        node.client.checkpoint(wait=True)
        port = int(leader.location.rpartition(":")[2])
        leader.stop()
        until(lambda: b.status()["following"]["state"] == "away")
        assert "away" in b.ailing()[0]
        node.push(moved(ids, 2.0), counted(ids))
        assert node.client.admit(["겨울"], ints(5)).tolist() == [-1]
        assert read(b, ids)[:, 0].tolist() == [3.0, 3.0]
        again = config.model_copy(update={"port": port})
        with running_server(again, dim=DIM) as leader:
            until(lambda: leader.state.meters.pushes == 2)
            assert read(leader, ids)[:, 0].tolist() == [3.0, 3.0]
            until(lambda: b.status()["following"]["state"] == "up")
            assert node.client.admit(["겨울"], ints(5)).tolist() == [2]


def test_a_word_that_came_after_the_leaders_answer_stays(leader, connect, monkeypatch) -> None:
    with following(leader, every_s=30) as b:
        client = b.link.client
        answer = client.vocabulary

        def slow(since: int):
            delta = answer(since)
            b.state.words.admit(["겨울"], ints(5))
            return delta

        connect(leader, "n0").words("봄")
        monkeypatch.setattr(client, "vocabulary", slow)
        b.link.exchange()
        assert b.state.vocabulary.ids(["봄", "겨울"]).tolist() == [0, 1]


def test_words_that_are_evicted_go_everywhere(connect) -> None:
    config = ServerConfig(min_count=1, max_words=60, half_life_tokens=None)
    with running_server(config, dim=DIM) as leader, following(leader, max_words=60) as b:
        here, there = connect(leader, "n0"), connect(b, "n1")
        for i in range(40):
            node = (here, there)[i % 2]
            ids = node.words(*[f"말{i}-{k}" for k in range(5)])
            node.push(moved(ids, 1.0), counted(ids, 1 + i % 3))

        def same() -> bool:
            with leader.state.lock, b.state.lock:
                own, other = leader.state.vocabulary, b.state.vocabulary
                alive = own.alive()
                return np.array_equal(alive, other.alive()) and own.names(alive) == other.names(
                    alive
                )

        until(same)
        alive = leader.state.vocabulary.alive()
        assert len(alive) <= 60
        until(lambda: read(b, alive).tobytes() == read(leader, alive).tobytes())
        assert leader.state.meters.pushes == 40


def test_a_node_of_a_group_has_the_figures_of_the_leaders_own_books(leader, connect) -> None:
    """What a group says of its nodes is older than the pushes that it sends with it."""
    with following(leader, "b", every_s=30.0) as b:
        node = connect(b, "n1")
        ids = node.words("봄")
        about = b.link._figures

        def outdated() -> dict[str, object]:
            found = about()
            node.push(moved(ids, 1.0), counted(ids))
            return found

        b.link._figures = outdated
        for exchanges in (1, 2):
            assert b.link.exchange()
            status = leader.status()
            assert status["pushes"] == exchanges
            shown = status["nodes"]["n1"]
            assert (shown["sequence"], shown["tokens"]) == (exchanges, status["tokens"])
        b.link._figures = about


def test_a_node_that_went_over_to_the_leader_is_shown_as_it_is_there(leader, connect) -> None:
    with following(leader, "b") as b:
        node = connect(b, "n1")
        ids = node.words("봄")
        node.push(moved(ids, 1.0), counted(ids))
        node.client.close()
        until(lambda: leader.status()["nodes"].get("n1", {}).get("state") == "gone")
        connect(leader, "n1").pull(ids)
        shown = leader.status()["nodes"]["n1"]
        assert (shown["state"], shown.get("group")) == ("active", None)


@pytest.mark.laboratory
def test_the_leaders_snapshot_holds_what_groups_read_until_then(tmp_path, connect) -> None:
    """A cut waits for what each group had by then, however seldom they exchange."""
    config = ServerConfig(min_count=1, half_life_tokens=None, snapshots=str(tmp_path / "store"))
    with running_server(config, dim=DIM) as leader, following(leader, every_s=2.0) as b:
        here, there = connect(leader, "n0"), connect(b, "n1")
        ids = here.words("봄", "여름")
        here.push(moved(ids, 1.0), counted(ids, 2))
        own = there.words("봄", "여름", "가을")
        there.push(moved(own, 1.0), counted(own, 3), digest="abc")
        day = datetime(1970, 1, 1, tzinfo=UTC)
        ref = here.client.cut(Window(day, day.replace(day=2)))
        snapshot = SnapshotStore(str(tmp_path / "store")).open(ref.id)
        by = snapshot.by_source
        assert dict(zip(by.words, by.counts.tolist(), strict=True)) == {
            "봄": 5,
            "여름": 5,
            "가을": 3,
        }
        assert snapshot.contexts[snapshot.index("봄")][0] == 2.0
        assert there.client.cut(Window(day, day.replace(day=2))).id == ref.id  # asks the leader


def test_what_was_scored_and_stood_around_words_reaches_the_leader(leader, connect) -> None:
    with following(leader) as b:
        node = connect(b, "n1")
        assert node.client.welcome.rare_mentions == ServerConfig().rare_mentions
        assert node.client.welcome.usage
        ids = node.words("봄", "여름")
        pairs = ScorePairs("뉴스", ids, ids[::-1].copy(), ids.reshape(2, 1), ints(0, 0))
        assert node.pull(ids, ids, score=[pairs]).nll[0] is not None
        rare = WordContexts(
            ids, ints(1, 1), ints(1, 1), ids[::-1].copy(), np.ones(2, dtype=np.float32)
        )
        progress = (SourceProgress("뉴스", 1, 2, 0.0, 0, (1.0,)),)
        node.client.push(
            Push("n1", 1, node.clock, counts=counted(ids), progress=progress, tokens=2, rare=rare)
        )
        until(lambda: leader.state.meters.pushes == 1)
        until(lambda: "뉴스" in leader.state.scores.sources)
        assert leader.state.scores.sources["뉴스"].windows[0][1] == 2
        assert len(leader.state.accounts.rare) == 2
        assert leader.status()["sources"]["뉴스"]["nll"] > 0


def test_a_barrier_holds_within_a_group_and_not_between_groups(connect) -> None:
    sync = SyncConfig(policy="bsp")
    with (
        running_server(ServerConfig(min_count=1), sync, dim=DIM) as leader,
        following(leader, sync=sync) as b,
    ):
        n0, n1 = connect(leader, "n0"), connect(b, "n1")
        ids = n0.words("봄")
        n1.words("봄")
        n0.pull()
        n1.pull()
        for _ in range(5):  # n0 stands still all the while
            n1.push(moved(ids, 1.0), counted(ids))
            n1.pull()
        until(lambda: read(leader, ids)[0, 0] == 5.0)


def test_groups_exchange_over_tls_with_a_token(tmp_path, connect) -> None:
    cert, key = make_certificate(tmp_path)
    token = make_token(tmp_path)
    secret = {"tls_cert": cert, "tls_key": key, "token_file": token}
    config = ServerConfig(min_count=1, **secret)
    line = QUICK.model_copy(update={"token_file": token, "tls_ca": cert})
    with running_server(config, dim=DIM) as leader, following(leader, **secret) as b:
        node = connect(b, "n1", config=line)
        ids = node.words("봄")
        node.push(moved(ids, 1.0), counted(ids))
        until(lambda: leader.state.meters.pushes == 1)
        assert read(leader, ids)[0, 0] == 1.0


def test_shares_add_up_rare_words_and_average_frequent_ones() -> None:
    read_ = np.array([0.0, 1.0, 100.0, 1e6])
    shares = group_shares(read_, 2, 0.03)
    assert shares[0] == pytest.approx(1.0, abs=1e-6)
    assert 0.98 < shares[1] < 1.0
    assert shares[3] == pytest.approx(0.5)
    assert (np.diff(shares) < 0).all()
    assert group_shares(read_, 4, 0.03)[3] == pytest.approx(1 / 6)
    assert group_shares(read_, 1, 0.03).tolist() == [1.0] * 4
    assert group_shares(read_, 4, 0.0).tolist() == [1.0] * 4


def test_a_share_is_what_both_sides_have_then(leader, connect) -> None:
    with following(leader, curvature=0.03) as b:
        connect(leader, "n0").pull(ints(), ints())  # so that there are two groups with nodes
        until(lambda: b.status()["following"]["groups"] == 2)
        node = connect(b, "n1")
        ids = node.words("봄", "여름")
        times = np.array([100_000, 1])
        counts = BlockCounts((CountGroup("뉴스", 0, 2),), ids, (), times, np.ones(2, dtype=int))
        node.push(moved(ids, 1.0), counts)
        until(lambda: leader.state.meters.pushes == 1)
        frequent, rare = read(leader, ids)[:, 0]
        assert frequent == pytest.approx(0.5)
        assert 0.98 < rare < 1.0
        until(lambda: read(b, ids).tobytes() == read(leader, ids).tobytes())


def test_rows_of_ngrams_are_exchanged_too(connect) -> None:
    config = ServerConfig(min_count=1)
    with (
        running_server(config, dim=DIM, buckets=50) as leader,
        following(leader, buckets=50) as b,
    ):
        here, there = connect(leader, "n0"), connect(b, "n1")
        ids = here.words("봄")
        there.words("봄")
        for node, buckets in ((here, ints(1, 7)), (there, ints(7, 40))):
            node.push((*moved(buckets, 1.0, Table.SUB), *moved(ids, 1.0)), counted(ids))
        until(lambda: leader.state.meters.pushes == 2)
        every = np.arange(50)

        def grams(server: ParameterServer) -> np.ndarray:
            with server.state.lock:
                return server.state.tables.read(Table.SUB, every)

        until(lambda: grams(b).tobytes() == grams(leader).tobytes())
        start = grams(leader)[[1, 7, 40]].round().mean(axis=1)
        assert start.tolist() == [1.0, 2.0, 1.0]


def test_what_an_optimiser_shrank_is_not_shrunk_again(connect) -> None:
    given = {"optimizer": "adagrad", "adagrad_rate": 0.5}
    with (
        running_server(with_constants(ServerConfig, min_count=1, **given), dim=DIM) as leader,
        following(leader, **given) as b,
    ):
        node = connect(b, "n1")
        ids = node.words("봄")
        node.push(moved(ids, 2.0), counted(ids))
        assert read(b, ids)[0, 0] == pytest.approx(0.5)  # 2 · min(1, 0.5 / 2)
        until(lambda: leader.state.meters.pushes == 1)
        until(lambda: read(b, ids).tobytes() == read(leader, ids).tobytes())
        assert read(leader, ids)[0, 0] == pytest.approx(0.5)


def metrics(server: ParameterServer) -> str:
    return httpx.get(f"{server.http_url}/metrics", trust_env=False).text


@pytest.mark.laboratory
def test_metrics_and_health_tell_of_groups(connect) -> None:
    with contextlib.ExitStack() as stack:
        leader = stack.enter_context(running_server(ServerConfig(min_count=1), dim=DIM))
        with following(leader) as b:
            node = connect(b, "n1")
            ids = node.words("봄")
            node.push(moved(ids, 1.0), counted(ids))
            until(lambda: leader.state.meters.pushes == 1)
            page = metrics(leader)
            for line in (
                'yeoron_group_up{group="b"} 1.0',
                'yeoron_group_entries_total{group="b"} ',
            ):
                assert line in page
            assert "yeoron_group" not in metrics(b)
            assert httpx.get(f"{b.http_url}/health", trust_env=False).status_code == 200
            assert "yeoron_leader_up" not in page
            assert (
                "yeoron_leader_up 1.0" in httpx.get(f"{b.http_url}/metrics", trust_env=False).text
            )
            stack.close()
            until(lambda: b.status()["following"]["state"] == "away")
            health = httpx.get(f"{b.http_url}/health", trust_env=False)
            assert health.status_code == 503
            assert "away" in health.json()["reasons"][0]
            assert figure_table("Leader", b.status()) is not None
            assert (
                "yeoron_leader_up 0.0" in httpx.get(f"{b.http_url}/metrics", trust_env=False).text
            )


def test_rows_that_no_message_holds_travel_in_several(connect) -> None:
    small = {"min_count": 1, "max_message_bytes": 1 << 16, "half_life_tokens": None}
    line = QUICK.model_copy(update={"max_message_bytes": 1 << 16})
    words = [f"말{i}" for i in range(6000)]
    with running_server(ServerConfig(**small), dim=DIM) as leader:
        here = connect(leader, "n0", config=line)
        for at in range(0, len(words), 1500):
            here.words(*words[at : at + 1500])
        with following(leader, **small) as b:
            there = connect(b, "n1", config=line)
            ids = np.concatenate(
                [there.words(*words[at : at + 1500]) for at in range(0, len(words), 1500)]
            )
            with b.link.lock:  # all in one entry
                for part in np.split(ids, 6):
                    there.push(moved(part, 1.0), counted(part))
            until(lambda: leader.state.meters.pushes == 6)
            assert read(leader, ids)[:, 0].tolist() == [1.0] * len(ids)
            until(lambda: read(b, ids).tobytes() == read(leader, ids).tobytes())


def test_lags_of_many_documents_do_not_burst_the_header() -> None:
    progress = tuple(
        SourceProgress(f"s{i}", 5000, 1, 0.0, 0, tuple(np.random.default_rng(i).random(4096)))
        for i in range(60)
    )
    told = {"n1": NewPushes(0, [Push("n1", 1, 0, progress=progress)])}
    entry = compose(Cut(told, (), (), {}), GroupConfig(), 1, 2).entry
    (message,) = encode_entry(entry, 1 << 22)
    assert len(encode(message)[1]) < MAX_HEADER_BYTES
    (part,) = entry.pushes
    assert 900 < len(part.progress[7].lags) < 1200
    assert part.progress[7].lags[-1] == progress[7].lags[-1], "the latest"
    assert part.progress[7].documents == 5000


@pytest.mark.parametrize("known", [True, False])
def test_a_life_that_a_group_has_fenced_stays_fenced_when_the_group_is_killed(
    tmp_path, connect, known: bool
) -> None:
    """A group keeps nothing: the leader remembers, over its own death too."""
    config = ServerConfig(min_count=1, state_dir=tmp_path / "state")
    with running_server(config, dim=DIM) as leader:
        with following(leader) as b:
            old = ParameterClient(b.location, node="n1", config=QUICK, incarnation="old")
            if known:
                old.hello()
            channel = Channel(b.location, QUICK)
            assert channel.action("fence", {"node": "n1", "incarnation": "old"})["sequence"] == 0
            channel.close()
            old.close()
        with following(leader) as b:
            with pytest.raises(FencedError, match="given to others"):
                ParameterClient(b.location, node="n1", config=QUICK, incarnation="old").hello()
            new = ParameterClient(b.location, node="n1", config=QUICK, incarnation="new")
            new.hello()
            new.close()
    with running_server(config, dim=DIM) as leader:
        assert leader.state.ledger.fences.holds("n1", "old")
        with following(leader) as b, pytest.raises(FencedError):
            ParameterClient(b.location, node="n1", config=QUICK, incarnation="old").hello()


def test_two_changes_of_settings_at_once_are_both_made(leader, monkeypatch) -> None:
    changing = [threading.Thread(target=ask, args=(leader, {"staleness": 9}))]
    check = service.validate

    def slow(*args: object) -> object:
        found = check(*args)
        for other in changing:
            changing.remove(other)
            other.start()
            other.join(1.0)
        return found

    monkeypatch.setattr(service, "validate", slow)
    (other,) = changing
    ask(leader, {"tau": 7})
    other.join()
    sync = leader.state.machine.config
    assert (sync.staleness, sync.tau) == (9, 7)


def ask(server: ParameterServer, changes: dict[str, object]) -> None:
    channel = Channel(server.location, QUICK)
    try:
        channel.action("configure", changes)
    finally:
        channel.close()
