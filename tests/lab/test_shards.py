"""What a node sees of a server with 1, 2 and 3 shards: the same."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import numpy as np
import pytest
from certificates import make_certificate, make_token
from named import QUICK, named
from threads import crash_primary, fleet, sharded

from embedding.exchange.payload import RowDelta
from embedding.exchange.peer import Channel
from embedding.exchange.protocol import PullRequest, Push
from embedding.kernel.errors import (
    AheadError,
    BehindError,
    ConfigError,
    ExchangeError,
    PlatformError,
    RefusedError,
    UnavailableError,
)
from embedding.kernel.records import ScorePairs, Table, Window
from embedding.models.starting import first_vectors
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import ParameterServer
from embedding.snapshots.store import SnapshotStore
from embedding.worker.process.making import connect as greet
from waiting import until
from yeoron_lab.ports import lasting_port
from yeoron_lab.processes import ProcessKeeper
from yeoron_lab.shards.client.links import reached
from yeoron_lab.shards.client.rows import RowsOnShards
from yeoron_lab.shards.sharding import shard_specs
from yeoron_lab.shards.spec import ShardSpec
from yeoron_lab.shards.state import ShardState

DIM = 4
DAY = Window(datetime(2024, 3, 1, tzinfo=UTC), datetime(2024, 3, 2, tzinfo=UTC))
MARCH_1 = int(DAY.start.timestamp())


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def delta(table, ids, value=1.0) -> RowDelta:
    ids = np.asarray(ids, dtype=np.int64)
    return RowDelta(table, ids, np.full((len(ids), DIM), value, dtype=np.float32))


@pytest.fixture
def join(connect):
    """A connected node, with the client that the server's topology needs."""
    return connect


@pytest.fixture(params=[1, 2, 3])
def shards(request) -> int:
    return request.param


def settings(shards: int, **changes) -> ServerConfig:
    return ServerConfig(**{"min_count": 1, "shards": shards, "device": "cpu", **changes})


@pytest.fixture
def server(shards):
    with sharded(settings(shards)) as running:
        yield running


def test_the_client_is_of_the_kind_that_the_server_needs(server, join, shards):
    assert isinstance(join(server).client.rows, RowsOnShards) is (shards > 1)
    assert len(server.status()["shards"]) == (0 if shards == 1 else shards)


def test_rows_start_alike_come_in_any_order_and_change(server, join):
    node = join(server)
    ids = node.words(*"가나다라마바사")
    rows = node.pull(contexts=ids[:2])
    assert np.array_equal(rows.rows[Table.IN], first_vectors(ids, DIM, 3))
    assert not rows.rows[Table.OUT].any()
    mixed = ids[[6, 0, 3, 0, 5]]
    assert np.array_equal(node.pull(mixed).rows[Table.IN], first_vectors(mixed, DIM, 3))
    node.push((delta(Table.IN, ids[1:]), delta(Table.OUT, ids[:1], 0.5)))
    after = node.pull(contexts=ids)
    assert np.allclose(after.rows[Table.IN] - rows.rows[Table.IN], [[0] * 4, *[[1] * 4] * 6])
    assert after.rows[Table.OUT][:, 0].tolist() == [0.5, *[0.0] * 6]
    assert after.sequence == 1
    assert node.pull(ints(), ints()).rows[Table.IN].shape == (0, DIM)


def test_rows_in_half_precision_are_added_up_in_float32(server, join):
    node = join(server, config=QUICK.model_copy(update={"rows": "float16", "compression": "fp16"}))
    ids = node.words(*"가나다")
    node.push((delta(Table.OUT, ids),))
    step = np.full((3, DIM), 2.0**-12, dtype=np.float16)
    for _ in range(64):
        node.push((RowDelta(Table.OUT, ids, step),))
    rows = node.pull(contexts=ids)
    assert rows.rows[Table.IN].dtype == rows.rows[Table.OUT].dtype == np.float16
    assert rows.rows[Table.OUT].tolist() == [[1 + 2.0**-6] * DIM] * 3


@pytest.mark.parametrize("compression", ["none", "fp16"])
def test_deltas_travel_as_the_settings_say(server, join, compression):
    config = QUICK.model_copy(update={"compression": compression})
    node = join(server, config=config)
    ids = node.words(*"가나다")
    node.pull()
    node.push((delta(Table.OUT, ids, 0.5),))
    assert node.pull(contexts=ids).rows[Table.OUT].tolist() == [[0.5] * DIM] * 3


def test_a_push_that_is_refused_changes_no_shard_and_the_next_one_counts(server, join):
    node = join(server)
    ids = node.words(*"가나다라")
    bad = delta(Table.OUT, ids)
    bad.values[-1, 0] = np.nan
    before = node.sequence
    with pytest.raises(RefusedError, match="not finite"):
        node.push((bad,))
    node.sequence = before
    assert not node.pull(contexts=ids).rows[Table.OUT].any()
    node.push((delta(Table.OUT, ids, 2.0),), named(["가"]))
    assert node.pull(contexts=ids).rows[Table.OUT].tolist() == [[2.0] * DIM] * 4
    assert server.status()["tokens"] == 1


def test_a_push_that_the_primary_alone_refuses_leaves_no_rows_behind(server, join):
    node = join(server)
    ids = node.words(*"가나다라")
    node.pull()
    node.clock = 7
    with pytest.raises(RefusedError, match="reads at clock 0"):
        node.push((delta(Table.OUT, ids, 5.0),))
    node.clock, node.sequence = 0, 0
    node.push((delta(Table.OUT, ids),))
    assert node.pull(contexts=ids).rows[Table.OUT].tolist() == [[1.0] * DIM] * 4


def test_an_id_that_was_never_given_is_refused(server, join):
    node = join(server)
    node.words("가")
    with pytest.raises(RefusedError, match="which are the ids given so far"):
        node.pull(ints(0, 1, 2, 3))


@pytest.mark.parametrize(("combine", "value"), [("sum", 3.0), ("mean", 1.5)])
def test_bsp_shows_the_sum_or_mean_of_a_clock_and_none_of_the_next(shards, join, combine, value):
    sync = SyncConfig(policy="bsp", combine=combine)
    with sharded(settings(shards), sync) as server:
        one, two = join(server, "n0"), join(server, "n1")
        ids = one.words(*"가나다")
        one.pull()
        two.pull(ids)
        one.push((delta(Table.OUT, ids, 1.0),))
        found = []
        reader = threading.Thread(
            target=lambda: found.append(one.pull(contexts=ids).rows[Table.OUT])
        )
        reader.start()
        time.sleep(0.2)
        assert not found, "it waits for the other"
        two.push((delta(Table.OUT, ids, 2.0),))
        reader.join(60)
        assert found[0].tolist() == [[value] * DIM] * 3
        with pytest.raises(AheadError):
            one.client.pull(PullRequest({Table.IN: ids, Table.OUT: ids}, clock=one.clock + 1))


def test_an_evicted_word_has_a_row_of_zeros_and_what_is_pushed_to_it_is_dropped(shards, join):
    with sharded(settings(shards, max_words=6, half_life_tokens=None)) as server:
        node = join(server)
        first = node.words(*"가나다라마바")
        node.push((delta(Table.OUT, first, 7.0),), named(list("가나다라마"), 9))
        for word in ("하", "파", "타", "카"):
            # A word is spared for 32 admissions after its own.
            server.state.vocabulary.version += 32
            node.words(word)
        gone = np.setdiff1d(first, server.state.vocabulary.alive())
        assert len(gone)
        node.pull(gone)
        node.push((delta(Table.OUT, gone, 3.0),))
        assert not node.pull(gone, gone).rows[Table.OUT].any()
        alive = server.state.vocabulary.alive()
        fresh = alive[alive >= 6]
        rows = node.pull(fresh, fresh)
        assert np.array_equal(rows.rows[Table.IN], first_vectors(fresh, DIM, 3)), (
            "slots are new again"
        )
        assert not rows.rows[Table.OUT].any()


def trained(shards: int, join, tmp_path) -> tuple[list, dict, tuple]:
    """The same small history, and what is left of it."""
    where = tmp_path / str(shards)
    with sharded(settings(shards, snapshots=str(where))) as server:
        node = join(server, f"node-of-{shards}")
        words = [f"말{i}" for i in range(40)]
        ids = node.words(*words)
        rng = np.random.default_rng(5)
        nll = ()
        for _ in range(6):
            c, o, n = (rng.choice(ids, size) for size in (8, 8, (8, 3)))
            news = ScorePairs("뉴스", c, o, n, np.full(8, MARCH_1))
            board = ScorePairs("글판", o[:5], c[:5], n[3:], np.full(5, MARCH_1))
            nll = node.pull(contexts=ids, score=[news, board]).nll
            moved = rng.normal(size=(40, DIM)).astype(np.float32)
            node.push(
                (RowDelta(Table.IN, ids, moved), RowDelta(Table.OUT, ids, moved[::-1].copy())),
                named(words, window=MARCH_1),
                window=MARCH_1,
            )
        ref = node.client.cut(DAY)
        snapshot = SnapshotStore(str(where)).open(ref.id)
        rows = [np.array(snapshot.vectors), np.array(snapshot.contexts), list(snapshot.words)]
        quality = dict(snapshot.manifest.quality)
        quality.pop("pip", None)  # there once frequent words were followed, which goes by the clock
    return rows, quality, nll


@pytest.mark.laboratory
def test_the_same_history_leaves_the_same_snapshot_and_scores(join, tmp_path):
    alone, others = trained(1, join, tmp_path), [trained(n, join, tmp_path) for n in (2, 3)]
    for other in others:
        assert all(np.array_equal(a, b) for a, b in zip(alone[0], other[0], strict=True))
        assert other[1] == pytest.approx(alone[1], rel=1e-6)
        assert other[2] == pytest.approx(alone[2], rel=1e-6)
    assert alone[1]["nll"] > 0


@pytest.mark.laboratory
def test_no_push_is_half_in_a_snapshot(join, tmp_path):
    """Every push adds 1 to all rows, while windows are cut: a snapshot's rows are all alike."""
    with sharded(settings(3, snapshots=str(tmp_path)), SyncConfig(policy="asp")) as server:
        nodes = [join(server, name) for name in ("n0", "n1")]
        words = [f"말{i}" for i in range(300)]
        ids = nodes[0].words(*words)
        nodes[0].push(counts=named(words, window=MARCH_1), window=MARCH_1)
        stop = threading.Event()

        def train(node) -> None:
            while not stop.is_set():
                node.pull(ids[:3])
                node.push((delta(Table.OUT, ids),))

        trainers = [threading.Thread(target=train, args=(node,)) for node in nodes]
        for trainer in trainers:
            trainer.start()
        found = []
        for day in range(1, 9):
            start = datetime(2024, 3, day, tzinfo=UTC)
            ref = server.snapshotter.cut(Window(start, start.replace(hour=12)))
            rows = SnapshotStore(str(tmp_path)).open(ref.id).contexts
            assert len(np.unique(rows)) == 1
            found.append(float(rows[0, 0]))
        stop.set()
        for trainer in trainers:
            trainer.join(60)
        assert found == sorted(found)
        assert found[-1] > 0
        copies = [shard.state._copies for shard in fleet(server).servers]
        assert copies == [{}] * 3, "what was fetched is forgotten"


def test_status_and_metrics_show_each_shard(join):
    import httpx

    with sharded(settings(2)) as server:
        node = join(server)
        ids = node.words(*"가나다")
        node.pull()
        node.push((delta(Table.OUT, ids),))
        node.pull()
        until(lambda: all(each.get("pushes") == 1 for each in server.status()["shards"]))
        one, two = server.status()["shards"]
        assert (one["rows"], two["rows"]) == (2, 1)
        assert one["state"] == two["state"] == "up"
        assert one["bytes"] > 0
        assert one["behind"] == 0
        page = httpx.get(server.http_url + "/metrics").text
        assert 'yeoron_shard_rows{shard="0"} 2.0' in page
        assert 'yeoron_shard_pushes_total{shard="1"} 1.0' in page
        assert 'yeoron_shard_up{shard="1"} 1.0' in page


# -- restarts ----------------------------------------------------------------------------------


def kept(tmp_path, shards: int = 2, **changes) -> ServerConfig:
    return settings(shards, state_dir=tmp_path / "state", checkpoint_every_s=600.0, **changes)


def test_a_shard_that_crashed_gets_what_it_lost_and_nothing_twice(tmp_path, join):
    with sharded(kept(tmp_path)) as server:
        one, two = join(server, "n0"), join(server, "n1")
        ids = one.words(*"가나다라마")
        for node in (one, two):
            node.pull(ids)
            node.push((delta(Table.OUT, ids),))
        one.client.checkpoint()
        for node in (one, two, one):
            node.pull(ids)
            node.push((delta(Table.OUT, ids),))
        (late,) = one.words("나중").tolist()
        fleet(server).crash(1)
        fleet(server).restart(1)
        one.push((delta(Table.OUT, [*ids, late]),))
        # The other node neither pulls nor pushes: its client looks after the shards by itself.
        rows = one.pull(ids, np.array([*ids, late])).rows[Table.OUT]
        assert rows[:, 0].tolist() == [6, 6, 6, 6, 6, 1]
        assert two.pull(contexts=ids).rows[Table.OUT][:, 0].tolist() == [6] * 5
        one.client.checkpoint()
        assert one.client.durable() == one.sequence
        assert len(one.client.log) == 0
        until(lambda: len(server.state.rows.log) == 0)


def test_primary_and_shards_that_crashed_together_go_on(tmp_path, join):
    chosen = kept(tmp_path, port=lasting_port())
    with sharded(chosen) as server:
        one = join(server)
        ids = one.words(*"가나다라마")
        for _ in range(3):
            one.pull(contexts=ids)
            one.push((delta(Table.OUT, ids),), named(list("가나")))
        one.client.checkpoint()
        assert one.client.durable() == 3
        (late,) = one.words("나중").tolist()
        for _ in range(2):
            one.pull(contexts=ids)
            one.push((delta(Table.OUT, [*ids, late]),), named(["나중"]))
        # One shard is ahead of the primary's checkpoint, the other is not.
        server.state.rows.links.links[0].checkpoint()
        crash_primary(server)
    with sharded(chosen) as server:
        rows = one.pull(ids, np.array([*ids, late])).rows[Table.OUT]
        assert rows[:, 0].tolist() == [5, 5, 5, 5, 5, 2]
        assert server.status()["tokens"] == 3 * 2 + 2
        assert one.words("나중").tolist() == [late]
        one.push((delta(Table.OUT, ids),))
        assert one.pull(ids, ids).rows[Table.OUT][:, 0].tolist() == [6] * 5


def test_what_is_sent_again_reaches_the_shards_before_the_primary_hears_of_it(
    tmp_path, join, monkeypatch
):
    """A node that is killed between the two has lost nothing that counts."""
    chosen = kept(tmp_path, port=lasting_port())
    with sharded(chosen) as server:
        node = join(server)
        ids = node.words(*"가나다라마")
        node.client.checkpoint()
        node.push((delta(Table.OUT, ids),), named(list("가나")))
        crash_primary(server)
    known: list[int] = []
    with sharded(chosen) as server:
        take = ShardState.push

        def taken(self: ShardState, push: Push) -> object:
            known.append(server.state.ledger.of(node.name).accepted)
            return take(self, push)

        monkeypatch.setattr(ShardState, "push", taken)
        assert node.pull(ids, ids).rows[Table.OUT][:, 0].tolist() == [1] * 5
        assert known == [0, 0]
        assert server.status()["tokens"] == 2


def test_a_server_that_was_stopped_goes_on_and_refuses_other_folders(tmp_path, join):
    chosen = kept(tmp_path)
    with sharded(chosen) as server:
        node = join(server)
        ids = node.words(*"가나다라마")
        node.push((delta(Table.OUT, ids, 2.0),))
        node.pull()
    with sharded(chosen) as server:
        node = join(server)
        assert node.sequence == 1
        assert node.pull(ids, ids).rows[Table.OUT][:, 0].tolist() == [2.0] * 5
    with pytest.raises(ConfigError, match="has shards 2, the server was started with 3"):
        ParameterServer(chosen.model_copy(update={"shards": 3}), dim=DIM)
    with pytest.raises(ConfigError, match="has shards 2, the server was started with 1"):
        ParameterServer(chosen.model_copy(update={"shards": 1}), dim=DIM)


def test_a_shard_that_lost_its_folder_is_not_used_and_said_so(tmp_path, join):
    import shutil

    with sharded(kept(tmp_path)) as server:
        node = join(server)
        ids = node.words(*"가나다라마")
        node.push((delta(Table.OUT, ids),))
        node.client.checkpoint()
        assert node.client.durable() == 1
        until(lambda: len(server.state.rows.log) == 0)
        fleet(server).crash(1)
        shutil.rmtree(tmp_path / "state" / "shard-1")
        fleet(server).restart(1)
        until(lambda: server.status()["shards"][1]["state"] == "failed")
        assert "lost rows that it had on disk" in server.ailing()[0]
        with pytest.raises(BehindError, match="lost its state folder"):
            node.push((delta(Table.OUT, ids),))


def test_what_does_not_go_with_shards_is_refused():
    with pytest.raises(ConfigError, match="buckets 2 with 3 shards"):
        ParameterServer(settings(3), dim=DIM, buckets=2)
    with pytest.raises(ConfigError, match="split columns: an example of fasttext"):
        ParameterServer(settings(2, split="columns"), dim=DIM, buckets=100)
    with pytest.raises(ConfigError, match="policy hogwild with 2 shards"):
        ParameterServer(settings(2), SyncConfig(policy="hogwild"), dim=DIM)


def test_shards_ask_for_the_servers_token_over_its_tls(tmp_path):
    token, (cert, key) = make_token(tmp_path), make_certificate(tmp_path)
    chosen = settings(2, token_file=token, tls_cert=cert, tls_key=key)
    trusted = QUICK.model_copy(update={"tls_ca": cert, "token_file": token})
    with sharded(chosen) as server:
        assert all(each.startswith("grpc+tls://") for each in server.state.rows.locations())
        with greet(server.location, node="n0", config=trusted) as client:
            ids = client.admit(list("가나다"), np.full(3, 5))
            rows = client.pull(PullRequest({Table.IN: ids, Table.OUT: ids}, clock=0))
            assert np.array_equal(rows.rows[Table.IN], first_vectors(ids, DIM, 3))
        bare = Channel(server.state.rows.locations()[0], QUICK.model_copy(update={"tls_ca": cert}))
        with pytest.raises(RefusedError, match="token is missing or wrong"):
            bare.action("ping", {})
        bare.close()


@pytest.mark.parametrize(
    ("shard", "server", "found"),
    [
        ("grpc://127.0.0.1:5", "grpc://127.0.0.1:4", "grpc://127.0.0.1:5"),
        ("grpc+tls://0.0.0.0:5", "grpc+tls://trainer.org:4", "grpc+tls://trainer.org:5"),
        ("grpc+tls://[::]:5", "grpc+tls://[2001:db8::1]:4", "grpc+tls://[2001:db8::1]:5"),
    ],
)
def test_a_shard_on_every_address_is_reached_at_the_servers(shard, server, found):
    assert reached(shard, server) == found


def test_a_shard_that_fails_at_something_leaves_no_thread_of_its_node_behind(join, monkeypatch):
    with sharded(settings(2)) as server:
        node = join(server)
        client = node.client
        failing = threading.Event()

        def failed() -> None:
            failing.set()
            raise ExchangeError("the server failed: ValueError")

        links = client.rows.links
        monkeypatch.setattr(links, "_look", failed)
        ids = node.words(*"가나다")
        monkeypatch.setattr(type(client.log), "__len__", lambda log: 1)
        assert failing.wait(120)
        time.sleep(0.1)
        assert links._keeper.is_alive(), "it looks again"
        node.push((delta(Table.OUT, ids),))
        client.log.add(Push("n0", 2, 0))
        client.close()
        assert not links._keeper.is_alive()
        assert links._pool is None
        assert client.peer._channel is None


def test_a_checkpoint_during_which_a_shard_was_started_again_is_none(tmp_path, join, monkeypatch):
    """Else that shard would be behind the primary when everything starts again."""
    with sharded(settings(2, state_dir=tmp_path, checkpoint_every_s=600.0)) as server:
        node = join(server)
        ids = node.words(*"가나다라")
        node.push((delta(Table.OUT, ids),))
        node.client.checkpoint()
        node.push((delta(Table.OUT, ids),))
        node.client.rows.links._closed.set()  # it looks after its shards when it is asked
        first, _ = server.state.rows.links.links
        write = first.checkpoint

        def slowly() -> int:
            position = write()
            fleet(server).crash(1)
            fleet(server).restart(1)
            return position

        with monkeypatch.context() as patch:
            patch.setattr(fleet(server).servers[1].recovery, "_try_write", lambda: "slow")
            patch.setattr(first, "checkpoint", slowly)
            assert "shard 1 was started again" in server.recovery.request(wait=True)
        assert node.client.durable() == 1
        # The shard that was started again has to hear the log first.
        until(lambda: server.recovery.request(wait=True) is None)
        assert node.client.durable() == 2


def test_a_copy_whose_end_a_shard_did_not_hear_goes_with_the_next(join, monkeypatch):
    with sharded(settings(2)) as server:
        join(server).words(*"가나다")
        (link, _), held = server.state.rows.links.links, fleet(server).servers[0].state._copies
        fetch = link.fetch

        def broken(message: object) -> object:
            raise UnavailableError("the stream broke.")

        for lost in (True, False):
            with server.state.lock:
                copy = server.state.rows.copy()
            copy.finish(server.state.lock)
            assert len(held) == (1 if lost else 2)
            monkeypatch.setattr(link, "fetch", broken if lost else fetch)
            copy.release()
            monkeypatch.setattr(link, "fetch", fetch)
        assert not held


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"shards": 2, "shards_port": 65535}, "the last would have port 65536; at most 65534 is"),
        ({"shards": 4, "shards_port": 8815, "port": 8817}, "port 8817: the shards have ports 8815"),
        ({"shards": 2, "shards_port": 8088, "http_port": 8089}, "http_port 8089: the shards have"),
        ({"split": "columns", "shards_port": 8815, "port": 8815}, "ports 8815 to 8815"),
    ],
)
def test_ports_that_shards_cannot_have_are_refused(given, what):
    with pytest.raises(ConfigError, match=what):
        shard_specs(ServerConfig(**given), dim=4, seed=0, identity="x")


def test_ports_that_shards_can_have_reach_them():
    config = ServerConfig(shards=2, split="columns", shards_port=8815, port=8814)
    specs = shard_specs(config, dim=4, seed=0, identity="x")
    again = [ShardSpec.model_validate_json(spec.model_dump_json()) for spec in specs]
    assert [spec.server.port for spec in again] == [8815, 8816]


def test_a_process_that_ends_its_output_and_hangs_did_not_start(monkeypatch):
    monkeypatch.setattr("yeoron_lab.processes._ENDING_S", 1.0)
    (spec,) = shard_specs(ServerConfig(), dim=4, seed=0, identity="x")
    keeper = ProcessKeeper(spec)
    keeper._process = subprocess.Popen(
        [sys.executable, "-c", "import os, time; os.close(1); time.sleep(60)"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with pytest.raises(PlatformError, match="shard 0 ended while it started"):
        keeper.ready(time.monotonic() + 60)
    keeper.end()
    assert keeper.code == -9
