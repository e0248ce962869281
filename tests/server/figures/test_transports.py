"""Bytes and rows by way, put together from what nodes report."""

from __future__ import annotations

import httpx

from embedding.server.config import ServerConfig
from embedding.server.service import running_server

REPORT = {
    "topology": {
        "kind": "hybrid",
        "rows": {"server": 5, "allreduce": 7},
        "bytes": {"allreduce": 100},
        "dense_rows": {"in": 3, "out": 4},
        "density": {"in": 0.25, "out": 0.5},
    }
}


def test_the_server_counts_its_own_part_and_nodes_the_rest() -> None:
    other = {"topology": {**REPORT["topology"], "density": {"in": 0.75}}}
    with running_server(ServerConfig(min_count=1), dim=2) as server:
        meters = server.state.meters
        meters.rows_in, meters.rows_out, meters.bytes_in, meters.bytes_out = 10, 20, 300, 400
        for node, report in (("a", REPORT), ("b", other), ("c", {"queue": 1})):
            server.state.report(node, report)
        assert server.status()["topology"] == {
            "kind": "hybrid",
            "groups": 0,
            "bytes": {"server": 700, "allreduce": 200},
            "rows": {"server": 30, "allreduce": 14},
            "dense_rows": {"in": 3, "out": 4},
            "density": {"in": 0.5, "out": 0.5},
            "regrouped": 0,
            "lost_tokens": 0,
            "from_server": 0,
        }


def test_nonsense_in_a_report_is_passed_over() -> None:
    wrong = {"bytes": {"host": "many"}, "rows": [1], "density": {"in": float("nan")}}
    with running_server(ServerConfig(min_count=1), dim=2) as server:
        server.state.report("a", {"topology": "mesh"})
        server.state.report("b", {"topology": wrong})
        shown = server.status()["topology"]
    assert (shown["kind"], shown["bytes"], shown["density"]) == ("ps", {"server": 0}, {})


def test_status_and_metrics_show_them() -> None:
    with running_server(ServerConfig(min_count=1), dim=2) as server:
        server.state.report("a", REPORT)
        assert server.status()["topology"]["bytes"]["allreduce"] == 100
        text = httpx.get(f"{server.http_url}/metrics", timeout=60, trust_env=False).text
    assert 'yeoron_transport_bytes_total{transport="allreduce"} 100.0' in text
    assert 'yeoron_transport_rows_total{transport="allreduce"} 7.0' in text
