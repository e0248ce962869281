"""What Prometheus and a load balancer read of a server: names, types, sums, honesty."""

from __future__ import annotations

import re
from types import SimpleNamespace

import httpx
import numpy as np
import pytest
from named import named
from prometheus_client.parser import text_string_to_metric_families

from embedding.exchange.payload import RowDelta
from embedding.kernel.errors import RefusedError, UnavailableError
from embedding.kernel.records import Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.figures.http import HttpService
from embedding.server.service import ParameterServer, running_server
from incomplete import incomplete_store
from waiting import until

DIM = 4
ODD = 'n"0\\ 노드'


def get(url: str, path: str) -> httpx.Response:
    return httpx.get(f"{url}{path}", timeout=60, trust_env=False)


def families(server):
    answer = get(server.http_url, "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {family.name: family for family in text_string_to_metric_families(answer.text)}


def value(found, name: str, **labels) -> float:
    base = name.removesuffix("_total")
    (sample,) = [
        s for s in found[base].samples if s.name == name and labels.items() <= s.labels.items()
    ]
    return sample.value


@pytest.fixture
def server(tmp_path, device):
    config = ServerConfig(min_count=1, state_dir=tmp_path / "state", device=device)
    with running_server(config, SyncConfig(policy="asp"), dim=DIM) as running:
        yield running


@pytest.fixture
def scrape(server, connect):
    """A scrape after two nodes have pulled, pushed and reported."""
    one, two = connect(server, ODD), connect(server, "n1")
    ids = one.words("말", "글", "집")
    one.pull()
    two.pull(ids)
    step = np.ones((3, DIM), dtype=np.float32)
    for _ in range(3):
        two.push((RowDelta(Table.IN, ids, step),), named(["말"], 2))
    one.client.report({"queue": {"depth": 40}})
    one.push((RowDelta(Table.IN, ids, step),))
    with pytest.raises(RefusedError):
        one.push((RowDelta(Table.IN, ids + 100, step),))
    two.client.checkpoint()
    return families(server)


def test_names_types_and_help_are_by_the_conventions(scrape):
    ours = {name: family for name, family in scrape.items() if name.startswith("yeoron_")}
    assert len(ours) > 35
    for name, family in ours.items():
        assert re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]", name), name
        assert family.documentation, name
        assert not re.search(r"_(s|ms|kb|mb|total|count)$", name), name
        if family.type == "counter":
            assert all(s.name == f"{name}_total" for s in family.samples), name
        assert family.type in ("counter", "gauge", "histogram", "info"), name
    assert {name for name in scrape if not name.startswith("yeoron_")} <= {
        name for name in scrape if name.startswith("process_")
    }


def test_every_figure_that_is_promised_is_there_and_right(scrape):
    for name, wanted in (
        ("yeoron_tokens_total", 6),
        ("yeoron_pushes_total", 4),
        ("yeoron_pushed_rows_total", 12),
        ("yeoron_pulled_rows_total", 6),
        ("yeoron_vocabulary_words", 3),
        ("yeoron_vocabulary_candidates", 0),
        ("yeoron_open_windows", 1),
        ("yeoron_active_nodes", 2),
        ("yeoron_checkpoint_failures_total", 0),
    ):
        assert value(scrape, name) == wanted, name
    assert value(scrape, "yeoron_checkpoints_total") >= 1
    assert 0 <= value(scrape, "yeoron_checkpoint_age_seconds") < 600
    assert value(scrape, "yeoron_checkpoint_pause_seconds") > 0
    assert value(scrape, "yeoron_received_bytes_total") > 4 * 3 * DIM * 4
    assert value(scrape, "yeoron_sent_bytes_total") > 2 * 3 * DIM * 4
    assert value(scrape, "yeoron_policy_info", policy="asp") == 1
    assert value(scrape, "yeoron_server_info", dim=str(DIM)) == 1
    assert value(scrape, "yeoron_node_clock", node="n1") == 3
    assert value(scrape, "yeoron_node_queue_tokens", node=ODD) == 40
    assert value(scrape, "yeoron_node_tokens_total", node="n1") == 6
    assert value(scrape, "yeoron_refused_messages_total", kind="id") == 1
    assert value(scrape, "yeoron_source_documents_total", source="뉴스") == 4
    assert value(scrape, "yeoron_source_lag_seconds", source="뉴스", quantile="0.5") == 1
    assert value(scrape, "process_resident_memory_bytes") > 1e6


def test_a_window_that_lacks_something_is_a_figure_and_in_the_status(planted, tmp_path):
    store = incomplete_store(tmp_path, planted)
    with running_server(ServerConfig(min_count=1, snapshots=store.uri), dim=DIM) as server:
        found = families(server)["yeoron_window_lacks"].samples
        status = server.status()
    assert [(one.labels, one.value) for one in found] == [({"window": "2020-01"}, 2)]
    assert [len(one["lacks"]) for one in status["snapshots"]] == [0, 0, 2, 0]


def test_staleness_is_a_histogram(scrape):
    family = scrape["yeoron_push_staleness"]
    assert family.type == "histogram"
    buckets = {s.labels["le"]: s.value for s in family.samples if s.name.endswith("_bucket")}
    counts = list(buckets.values())
    assert counts == sorted(counts)
    assert list(map(float, buckets)) == sorted(map(float, buckets))
    # The second node read before its first push only; the first pushed after three of the other.
    totals = {s.name.rsplit("_", 1)[1]: s.value for s in family.samples if "le" not in s.labels}
    assert buckets["+Inf"] == totals["count"] == 4
    assert totals["sum"] == 0 + 1 + 2 + 3
    assert buckets["0.0"] == 1
    assert buckets["4.0"] == 4


def test_rows_a_second_are_seen_while_rows_move(server, connect):
    node = connect(server)
    ids = node.words("말")
    node.pull()

    def both_move() -> bool:
        node.push((RowDelta(Table.IN, ids, np.ones((1, DIM), dtype=np.float32)),))
        node.pull()
        found = families(server)
        return min(value(found, f"yeoron_{n}_rows_per_second") for n in ("pushed", "pulled")) > 0

    until(both_move)


def test_a_wrong_token_is_counted(tmp_path, connect):
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o600)
    with running_server(ServerConfig(token_file=token)) as server:
        with pytest.raises(RefusedError, match="token"):
            connect(server)
        assert value(families(server), "yeoron_refused_messages_total", kind="token") >= 1


# -- health --------------------------------------------------------------------------------------


def shown(status: dict, reasons: list[str]) -> SimpleNamespace:
    return SimpleNamespace(status=lambda: status, metrics=lambda: b"", ailing=lambda: list(reasons))


def test_before_a_server_has_its_state_every_page_says_that_it_is_restoring():
    http = HttpService(host="127.0.0.1", port=0)
    http.start()
    try:
        for path in ("/health", "/status", "/metrics"):
            answer = get(http.url, path)
            assert (answer.status_code, answer.json()) == (503, {"status": "restoring"})
        reasons: list[str] = []
        http.show(shown({"tokens": 1}, reasons))
        assert get(http.url, "/health").json() == {"status": "ok"}
        assert get(http.url, "/status").json() == {"tokens": 1}
        reasons.append("it rains.")
        answer = get(http.url, "/health")
        assert (answer.status_code, answer.json()["reasons"]) == (503, ["it rains."])
    finally:
        http.stop()


def test_a_page_of_another_site_reads_no_status():
    """One that is open in a browser here, whose name is resolved to loopback."""
    http = HttpService(host="127.0.0.1", port=0)
    http.start()
    try:
        http.show(shown({"tokens": 1}, []))
        for name, status in (("localhost", 200), ("127.0.0.1", 200), ("evil.example", 400)):
            told = {"Host": f"{name}:8816"}
            for path in ("/status", "/metrics"):
                answer = httpx.get(f"{http.url}{path}", headers=told, trust_env=False)
                assert answer.status_code == status
        assert get(http.url, "/openapi.json").status_code == 404
    finally:
        http.stop()


def test_a_server_uses_the_pages_that_are_there_already():
    http = HttpService(host="127.0.0.1", port=0)
    http.start()
    server = ParameterServer(ServerConfig(), dim=DIM, http=http)
    server.start()
    try:
        assert server.http_url == http.url
        assert get(http.url, "/health").status_code == 200
    finally:
        server.stop()


def test_health_tells_of_a_failed_checkpoint_until_one_succeeds(tmp_path, connect, monkeypatch):
    config = ServerConfig(min_count=1, state_dir=tmp_path / "state")
    with running_server(config, dim=DIM) as server:
        node = connect(server)
        node.words("말")
        assert get(server.http_url, "/health").status_code == 200

        def full(*args: object) -> None:
            raise OSError(28, "No space left on device")

        recovery = server.recovery
        assert recovery is not None
        with monkeypatch.context() as patch:
            patch.setattr(type(recovery._folder), "write", full)
            with pytest.raises(UnavailableError, match="checkpoint"):
                server_checkpoint(server)
            answer = get(server.http_url, "/health")
            assert answer.status_code == 503
            assert "the last checkpoint failed" in answer.json()["reasons"][0]
            assert value(families(server), "yeoron_checkpoint_failures_total") >= 1
        server_checkpoint(server)
        assert get(server.http_url, "/health").status_code == 200


def server_checkpoint(server) -> None:
    from embedding.server.service import Controls

    Controls(server).checkpoint({})


def test_health_tells_of_a_window_that_could_not_be_published(tmp_path, connect):
    from datetime import UTC, datetime, timedelta

    from embedding.kernel.records import Window

    store = tmp_path / "store"
    config = ServerConfig(min_count=1, snapshots=str(store))
    day = datetime(2020, 1, 1, tzinfo=UTC)
    window = Window(day, day + timedelta(days=1))
    with running_server(config, dim=DIM) as server:
        node = connect(server)
        node.words("말")
        node.push(counts=named(["말"], 9), window=int(day.timestamp()))
        future = server.snapshotter.begin(window)
        future.result()
        assert server.ailing() == []
        broken = server.snapshotter._store
        assert broken is not None
        server.snapshotter._store.publish = None
        later = Window(window.end, window.end + timedelta(days=1))
        with pytest.raises(TypeError):
            server.snapshotter.cut(later)
        (reason,) = get(server.http_url, "/health").json()["reasons"]
        assert "2020-01-02" in reason
        del server.snapshotter._store.publish
        server.snapshotter.cut(later)
        assert get(server.http_url, "/health").status_code == 200


def test_health_tells_that_the_server_closes_and_that_it_is_stuck(monkeypatch):
    import threading

    monkeypatch.setattr("embedding.server.service._STUCK_S", 0.2)
    with running_server(dim=DIM) as server:
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with server.state.lock:
                held.set()
                done.wait(60)

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait(60)
        try:
            answer = get(server.http_url, "/health")
        finally:
            done.set()
            holder.join()
        assert answer.status_code == 503
        assert "were not free" in answer.json()["reasons"][0]
        server.state.close()
        answer = get(server.http_url, "/health")
        assert (answer.status_code, answer.json()["reasons"]) == (503, ["the server is closing."])


def test_text_preparation_is_told_by_node_and_what_is_no_number_is_left_out(server, connect):
    text = {"known_share": 0.7, "cache_bytes": 5, "forgotten_words": "many", "masked": {"phone": 2}}
    for node, report in ((ODD, {"text": text}), ("n1", {}), ("n2", {"text": 3})):
        connect(server, node).client.report(report)
    found = families(server)
    assert value(found, "yeoron_text_known_ratio", node=ODD) == 0.7
    assert value(found, "yeoron_text_cache_bytes", node=ODD) == 5
    assert value(found, "yeoron_text_masked_total", node=ODD, kind="phone") == 2
    assert not found["yeoron_text_forgotten_words"].samples
