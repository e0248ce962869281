"""A running server and its clients: words, rows, clocks, status."""

from __future__ import annotations

import threading

import httpx
import numpy as np
import pytest
from named import QUICK, named

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.payload import BlockCounts, CountGroup, RowDelta
from embedding.exchange.protocol import PullRequest
from embedding.kernel.errors import AheadError, RefusedError, UnavailableError
from embedding.kernel.records import ScorePairs, Table
from embedding.models.starting import first_vectors
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server
from waiting import until

DIM = 4


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@pytest.fixture
def make_delta():
    def make(table, ids, value=1.0, dim=DIM):
        ids = np.asarray(ids, dtype=np.int64)
        return RowDelta(table, ids, np.full((len(ids), dim), value, dtype=np.float32))

    return make


@pytest.fixture
def server(device):
    with running_server(ServerConfig(min_count=2, device=device), dim=DIM, seed=3) as running:
        yield running


def test_rows_go_out_as_they_were_made_and_come_back_changed(server, connect, make_delta):
    node = connect(server)
    ids = node.words("말", "글", "집")
    rows = node.pull(contexts=ids[:2])
    assert np.array_equal(rows.rows[Table.IN], first_vectors(ids, DIM, 3))
    assert not rows.rows[Table.OUT].any()
    node.push((make_delta(Table.IN, ids[1:]), make_delta(Table.OUT, ids[:1], 0.5)))
    after = node.pull(contexts=ids)
    assert np.allclose(after.rows[Table.IN] - rows.rows[Table.IN], [[0] * 4, [1] * 4, [1] * 4])
    assert after.rows[Table.OUT].tolist() == [[0.5] * 4, [0.0] * 4, [0.0] * 4]


def test_rows_in_half_precision_are_added_up_in_float32(server, connect, make_delta):
    node = connect(
        server, config=QUICK.model_copy(update={"rows": "float16", "compression": "fp16"})
    )
    (id_,) = ids = node.words("말")
    node.push((make_delta(Table.OUT, ids),))
    step = np.full((1, DIM), 2.0**-12, dtype=np.float16)
    for _ in range(64):
        node.push((RowDelta(Table.OUT, ids, step),))
    # Each step is too small to change 1 in float16; what is read is rounded, what is held is not.
    assert server.state.tables.read(Table.OUT, ints(id_)).tolist() == [[1 + 2.0**-6] * DIM]
    rows = node.pull(contexts=ids)
    assert rows.rows[Table.IN].dtype == rows.rows[Table.OUT].dtype == np.float16
    assert rows.rows[Table.OUT].tolist() == [[1 + 2.0**-6] * DIM]
    held = server.state.tables.read(Table.IN, ints(id_))
    assert np.array_equal(rows.rows[Table.IN], held.astype(np.float16))


def test_rows_tell_which_push_of_the_reader_is_in_them(connect, make_delta):
    with running_server(ServerConfig(min_count=1), SyncConfig(policy="bsp"), dim=DIM) as server:
        one, two = connect(server, "n0"), connect(server, "n1")
        ids = one.words("말")
        assert one.pull().sequence == 0
        two.pull(ids)
        two.push((make_delta(Table.IN, ids),))
        one.push((make_delta(Table.IN, ids),))
        assert one.pull().sequence == 1
        one.push()
        two.client.configure(policy="asp")
        assert one.pull().sequence == 2


def test_a_pull_ahead_of_the_own_push_is_told_apart_from_waiting(connect, make_delta):
    with running_server(ServerConfig(min_count=1), SyncConfig(policy="bsp"), dim=DIM) as server:
        node = connect(server)
        assert not node.client.welcome.ahead
        ids = node.words("말")
        node.pull()
        with pytest.raises(AheadError, match="waits for this node's push"):
            node.client.pull(PullRequest({Table.IN: ids, Table.OUT: ids}, clock=1))
        assert node.push((make_delta(Table.IN, ids),)).ahead is False
        node.client.configure(policy="ssp", staleness=1)
        assert node.client.hello().ahead
        node.pull()
        assert node.client.pull(PullRequest({Table.IN: ids, Table.OUT: ids}, clock=2)).clock == 2
        with pytest.raises(RefusedError, match="ahead at 2"):
            node.client.pull(PullRequest({Table.IN: ids, Table.OUT: ids}, clock=3))
        assert node.push((make_delta(Table.IN, ids),)).ahead is True


def test_ids_may_repeat_and_come_in_any_order_in_a_pull(server, connect):
    node = connect(server)
    ids = node.words("말", "글")
    rows = node.pull(ids[[1, 0, 1]])
    assert np.array_equal(rows.rows[Table.IN][0], rows.rows[Table.IN][2])
    assert rows.rows[Table.IN].shape == (3, DIM)
    assert node.pull(ints(), ints()).rows[Table.IN].shape == (0, DIM)


def test_words_are_admitted_once_counts_were_pushed(server, connect):
    one, two = connect(server, "n0"), connect(server, "n1")
    assert one.words("새말", counts=1).tolist() == [-1]
    one.push(counts=named(["새말"]))
    (first,) = two.words("새말", counts=1).tolist()
    assert first >= 0
    assert one.words("새말", counts=1).tolist() == [first]
    delta = one.client.vocabulary()
    assert (list(delta.words), delta.ids.tolist(), delta.counts.tolist()) == (
        ["새말"],
        [first],
        [1],
    )
    assert list(one.client.vocabulary(delta.version).words) == []


def test_two_nodes_that_admit_the_same_words_at_once_get_the_same_ids(server, connect):
    nodes = [connect(server, f"n{i}") for i in range(3)]
    words = [f"말{i}" for i in range(500)]
    found = {}

    def admit(node) -> None:
        order = np.random.default_rng(len(node.name)).permutation(500)
        ids = node.client.admit([words[i] for i in order], np.full(500, 5))
        found[node.name] = dict(zip(order.tolist(), ids.tolist(), strict=True))

    threads = [threading.Thread(target=admit, args=(node,)) for node in nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found["n0"] == found["n1"] == found["n2"]
    assert sorted(found["n0"].values()) == list(range(500))


def test_pairs_are_scored_before_the_push_that_learns_them(server, connect, make_delta):
    node = connect(server)
    ids = node.words("말", "글", "집")
    pairs = ScorePairs("뉴스", ids[:1], ids[1:2], ids[2:].reshape(1, 1), ints(0))
    assert node.pull(score=[pairs]).nll[0] == pytest.approx(2 * np.log(2))
    node.push((make_delta(Table.IN, ids), make_delta(Table.OUT, ids[1:2])))
    assert node.pull(score=[pairs]).nll[0] < 2 * np.log(2)
    node.push(source="뉴스")
    assert node.client.status()["sources"]["뉴스"]["nll"] > 0


def test_sources_of_one_request_are_scored_as_by_requests_of_their_own(connect, device):
    """To the bit, also a source that comes twice; nothing is scored when one is refused."""
    found, kept = [], []
    for together in (True, False):
        config = ServerConfig(min_count=2, device=device)
        with running_server(config, dim=DIM, seed=3) as server:
            node = connect(server)
            ids = node.words(*(f"말{n}" for n in range(50)))
            rng = np.random.default_rng(0)
            moved = rng.normal(size=(2, 50, DIM)).astype(np.float32)
            node.push((RowDelta(Table.IN, ids, moved[0]), RowDelta(Table.OUT, ids, moved[1])))
            pairs = [some_pairs(rng, ids, source, 7 * n) for n, source in enumerate("가나다나", 1)]
            bad = ScorePairs("라", ids[:1], ids[:1] + 999, ids[:5].reshape(1, 5), ints(0))
            with pytest.raises(RefusedError, match="an id outside"):
                node.pull(score=[*pairs, bad])
            assert not server.state.scores.sources
            asked = [pairs] if together else [[each] for each in pairs]
            found.append([nll for each in asked for nll in node.pull(ids, score=each).nll])
            kept.append(server.state.scores.sources)
    assert len(found[0]) == 4
    assert found[0] == found[1]
    assert kept[0] == kept[1]


def some_pairs(rng: np.random.Generator, ids: np.ndarray, source: str, n: int) -> ScorePairs:
    centres, contexts = rng.choice(ids, (2, n))
    days = 86_400 * rng.integers(0, 3, n)
    return ScorePairs(source, centres, contexts, rng.choice(ids, (n, 5)), days)


def test_a_push_is_applied_once_however_often_it_is_sent(server, connect, make_delta):
    node = connect(server)
    ids = node.words("말", "글")
    before = node.pull().rows[Table.IN]
    node.push((make_delta(Table.IN, ids),), named(["말"]))
    sent = node.client.log
    assert len(sent) == 0, "without checkpoints a push is durable at once"
    from embedding.exchange.protocol import Push

    again = Push("n0", 1, 0, (make_delta(Table.IN, ids),), named(["말"]), tokens=1)
    ack = node.client.push(again)
    assert ack.duplicate
    assert ack.sequence == 1
    assert np.allclose(node.pull().rows[Table.IN] - before, 1.0)
    status = node.client.status()
    assert (status["pushes"], status["duplicates"], status["tokens"]) == (1, 1, 1)


def test_a_gap_is_refused_and_nothing_changes(server, connect, make_delta):
    node = connect(server)
    ids = node.words("말")
    before = node.pull().rows[Table.IN]
    node.sequence = 4
    with pytest.raises(RefusedError, match="push 5 of node n0: gap, the server expects 1"):
        node.push((make_delta(Table.IN, ids),))
    assert np.array_equal(node.pull().rows[Table.IN], before)
    node.sequence = 0
    assert node.push((make_delta(Table.IN, ids),)).sequence == 1


def test_bsp_waits_for_the_other_and_an_idle_one_frees_it(connect, make_delta):
    with running_server(ServerConfig(min_count=1), SyncConfig(policy="bsp"), dim=DIM) as server:
        one, two = connect(server, "n0"), connect(server, "n1")
        ids = one.words("말")
        start = one.pull().rows[Table.IN]
        two.pull(ids)
        one.push((make_delta(Table.IN, ids),))
        two.push((make_delta(Table.IN, ids),))
        assert np.allclose(one.pull().rows[Table.IN] - start, 2.0)
        two.pull(ids)
        one.push((make_delta(Table.IN, ids),))
        freed = threading.Event()

        def free() -> None:
            freed.set()
            two.client.idle()

        threading.Timer(0.3, free).start()
        rows = one.pull()
        assert freed.is_set(), "the pull did not wait for the other node"
        assert np.allclose(rows.rows[Table.IN] - start, 3.0)
        assert server.status()["nodes"]["n1"]["state"] == "idle"


def test_a_pull_gives_up_after_its_limit_and_says_whom_it_waits_for(connect, make_delta):
    quick = ExchangeConfig().model_copy(update={"pull_timeout_s": 2.0})
    with running_server(ServerConfig(min_count=1), SyncConfig(policy="bsp"), dim=DIM) as server:
        one, two = connect(server, "n0", config=quick), connect(server, "n1")
        ids = one.words("말")
        one.pull()
        two.pull(ids)
        one.push((make_delta(Table.IN, ids),))
        with pytest.raises(UnavailableError, match="n1"):
            one.pull()


def test_a_node_that_dies_frees_the_others(connect, make_delta):
    sync = SyncConfig(policy="bsp", liveness_timeout_s=1.0)
    with running_server(ServerConfig(min_count=1), sync, dim=DIM) as server:
        one, two = connect(server, "n0"), connect(server, "n1")
        ids = one.words("말")
        one.pull()
        two.pull(ids)
        two.client.peer._channel.close()
        one.push((make_delta(Table.IN, ids),))
        assert one.pull().clock == 1

        def gone() -> bool:
            found = server.status()["nodes"]["n1"]["state"]
            assert found in ("idle", "gone"), "it may come back for a while, and nobody waits"
            return found == "gone"

        until(gone)


def test_the_policy_can_be_changed_while_running(connect, make_delta):
    with running_server(ServerConfig(min_count=1), SyncConfig(policy="bsp"), dim=DIM) as server:
        one, two = connect(server, "n0"), connect(server, "n1")
        ids = one.words("말")
        one.pull()
        two.pull(ids)
        one.push((make_delta(Table.IN, ids),))
        one.client.configure(policy="asp")
        for _ in range(5):
            one.pull()
            one.push((make_delta(Table.IN, ids),))
        assert one.client.hello().policy == "asp"
        with pytest.raises(RefusedError, match=r"one of asp, .*hogwild, .*ssp is accepted"):
            one.client.configure(policy="none")
        with pytest.raises(RefusedError, match="unknown setting 'colour'"):
            one.client.configure(colour="red")


def test_a_later_process_of_the_same_name_takes_over(server, connect):
    first = connect(server, "n0")
    first.words("말")
    second = connect(server, "n0")
    with pytest.raises(RefusedError, match="another process"):
        first.pull()
    second.words("말")
    assert second.pull().clock == 0


def test_a_node_of_another_configuration_is_refused(server, connect):
    connect(server, "n0", digest="a" * 64)
    with pytest.raises(RefusedError, match="digest bbbbbbbbbbbb"):
        connect(server, "n1", digest="b" * 64)
    connect(server, "cli")


def test_evicted_words_read_as_zero_and_their_deltas_are_left_out(connect, make_delta):
    with running_server(ServerConfig(min_count=1, max_words=2), dim=DIM) as server:
        node = connect(server)
        old = node.words("가", "나")
        node.pull()
        node.push(counts=named(["나"], 5))
        node.pull()
        (new,) = node.words("다").tolist()
        assert new == 2
        rows = node.pull(old)
        assert not rows.rows[Table.IN][0].any()
        assert rows.rows[Table.IN][1].any()
        before = node.pull(ints(1, 2)).rows[Table.IN]
        node.push((make_delta(Table.IN, [0, 1]),))
        assert np.allclose(node.pull(ints(1, 2)).rows[Table.IN] - before, [[1] * 4, [0] * 4])
        assert server.status()["dropped_rows"] == 1
        assert node.client.vocabulary(1).ids.tolist() == [1, 2]


def test_what_was_read_of_an_evicted_word_is_still_counted_for_its_window(connect):
    with running_server(ServerConfig(min_count=1, max_words=1), dim=DIM) as server:
        node = connect(server)
        (first,) = node.words("가").tolist()
        group = (CountGroup("뉴스", 0, 1),)
        node.push(counts=BlockCounts(group, ints(first), [], ints(3), ints(2)))
        node.words("나")
        # Read before the node heard that its word is gone.
        node.push(counts=BlockCounts(group, ints(first), [], ints(1), ints(1)))
        # More evictions than the server remembers: the name must have been looked up before.
        for at in range(100):
            node.words(f"말{at}")
        assert server.state.vocabulary.names(ints(first)) == [""]
        table = server.state.accounts.windows.table(0).to_pydict()
        assert (table["word"], table["counts"], table["documents"]) == (["가"], [4], [3])


def test_status_health_and_metrics(server, connect, make_delta):
    node = connect(server)
    ids = node.words("말", "글")
    node.pull()
    node.client.report({"queue": 12, "sources": {"뉴스": {"pending": 4}}, "event_now": 50.0})
    node.push((make_delta(Table.IN, ids),), named(["말", "글"], 3), published=30.0)
    with httpx.Client(base_url=server.http_url) as http:
        assert http.get("/health").json() == {"status": "ok"}
        status = http.get("/status").json()
        metrics = http.get("/metrics").text
        assert http.get("/docs").status_code == 404
    assert status["tokens"] == 6
    assert status["documents"] == 1
    assert status["vocabulary"] == 2
    assert status["watermark"] == "1970-01-01T00:00:30+00:00"
    assert status["lag"] == {"p50_s": 1.0, "p95_s": 1.0}
    assert status["nodes"]["n0"]["report"]["queue"] == 12
    assert status["nodes"]["n0"]["clock"] == 1
    assert status["sources"]["뉴스"]["pending"] == 4
    assert status["windows"]["1970-01-01"]["tokens"] == 6
    assert status["windows"]["1970-01-01"]["snapshot"] is None
    for line in (
        "yeoron_tokens_total 6.0",
        'yeoron_node_queue_tokens{node="n0"} 12.0',
        'yeoron_source_documents_total{source="뉴스"} 1.0',
        'yeoron_push_staleness_bucket{le="0.0"} 1.0',
    ):
        assert line in metrics
    assert node.client.status()["tokens"] == 6


def test_stopping_closes_ports_and_clients_see_it_as_away(connect):
    with running_server(ServerConfig(), dim=DIM) as server:
        quick = ExchangeConfig(connect_timeout_s=0.3, max_backoff_s=0.1)
        node = connect(server, config=quick)
        url = server.http_url
    with pytest.raises(UnavailableError):
        node.client.hello()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")
