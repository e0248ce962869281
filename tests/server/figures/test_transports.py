"""Bytes and rows by way, put together from what nodes report."""

from __future__ import annotations

from embedding.server.config import ServerConfig
from embedding.server.figures.meters import Meters
from embedding.server.figures.metrics import render
from embedding.server.figures.reports import topology
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
    meters = Meters(rows_in=10, rows_out=20, bytes_in=300, bytes_out=400)
    other = {"topology": {**REPORT["topology"], "density": {"in": 0.75}}}
    shards = [{"rows_in": 1, "rows_out": 2, "bytes_in": 3, "bytes_out": 4}]
    found = topology({"a": REPORT, "b": other, "c": {"queue": 1}}, meters, shards)
    assert found == {
        "kind": "hybrid",
        "groups": 0,
        "bytes": {"server": 707, "allreduce": 200},
        "rows": {"server": 33, "allreduce": 14},
        "dense_rows": {"in": 3, "out": 4},
        "density": {"in": 0.5, "out": 0.5},
        "regrouped": 0,
        "lost_tokens": 0,
        "from_server": 0,
    }


def test_nonsense_in_a_report_is_passed_over() -> None:
    reports = {
        "a": {"topology": "mesh"},
        "b": {
            "topology": {"bytes": {"host": "many"}, "rows": [1], "density": {"in": float("nan")}}
        },
    }
    found = topology(reports, Meters())
    assert (found["kind"], found["bytes"], found["density"]) == ("ps", {"server": 0}, {})


def test_status_and_metrics_show_them() -> None:
    with running_server(ServerConfig(min_count=1), dim=2) as server:
        server.state.report("a", REPORT)
        assert server.status()["topology"]["bytes"]["allreduce"] == 100
        text = render(server.status(), server.state.meters).decode()
    assert 'yeoron_transport_bytes_total{transport="allreduce"} 100.0' in text
    assert 'yeoron_transport_rows_total{transport="allreduce"} 7.0' in text
