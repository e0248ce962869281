"""Alarms and faults on their way from a node's report to status and metrics."""

from __future__ import annotations

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.service import running_server

ALARM = {"event": "blocked", "since": "2026-01-01T00:00:00+00:00", "sentence": "it refuses"}


def test_an_alarm_is_in_status_and_metrics_and_goes_again(connect) -> None:
    counts = {"errors": {"http_4xx": 7}, "dated": {"metadata": 5, "guess": 2}}
    row = {**counts, "alarms": {"blocked": 2}, "alarm": ALARM, "fetched": 30}
    with running_server(ServerConfig(device="cpu"), SyncConfig(policy="asp"), dim=4) as server:
        node = connect(server, "n0")
        node.client.report({"sources": {"뉴스": row}})
        status = httpx.get(f"{server.http_url}/status", timeout=60, trust_env=False).json()
        assert status["alarms"] == {"뉴스": {"node": "n0", **ALARM}}
        assert status["faults"] == {"뉴스": {"http_4xx": 7, "date_guess": 2}}
        samples = scrape(server.http_url)
        assert samples["yeoron_source_faults_total", "뉴스", "date_guess"] == 2
        assert samples["yeoron_source_alarm", "뉴스", "blocked"] == 1
        assert samples["yeoron_source_alarms_total", "뉴스", "blocked"] == 2
        assert samples["yeoron_source_faults_total", "뉴스", "http_4xx"] == 7
        assert samples["yeoron_source_fetched_pages_total", "뉴스", ""] == 30
        connect(server, "n1").client.report({"sources": {"뉴스": row}})
        samples = scrape(server.http_url)
        assert samples["yeoron_source_faults_total", "뉴스", "http_4xx"] == 14
        assert samples["yeoron_source_alarms_total", "뉴스", "blocked"] == 4
        assert samples["yeoron_source_fetched_pages_total", "뉴스", ""] == 60
        assert samples["yeoron_source_alarm", "뉴스", "blocked"] == 1
        for each in ("n0", "n1"):
            connect(server, each).client.report({"sources": {"뉴스": {**row, "alarm": None}}})
        status = httpx.get(f"{server.http_url}/status", timeout=60, trust_env=False).json()
        assert status["alarms"] == {}
        assert ("yeoron_source_alarm", "뉴스", "blocked") not in scrape(server.http_url)


def scrape(url: str) -> dict[tuple[str, str, str], float]:
    """Samples of sources by (name, source, reason or event)."""
    page = httpx.get(f"{url}/metrics", timeout=60, trust_env=False).text
    found = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            label = sample.labels.get("event") or sample.labels.get("reason") or ""
            if "source" in sample.labels and "quantile" not in sample.labels:
                assert (sample.name, sample.labels["source"], label) not in found
            found[sample.name, sample.labels.get("source", ""), label] = sample.value
    return found


@pytest.mark.parametrize(
    "report",
    [
        {},
        {"sources": 3},
        {"sources": {"a": None}},
        {"sources": {"a": {"alarm": "blocked", "errors": [1], "alarms": {"x": "many"}}}},
        {"sources": {"a": {"alarm": {"event": 'bad"} 1'}, "errors": {"no space": 1, "x": -3}}}},
    ],
)
def test_rubbish_in_a_report_is_no_alarm_and_no_label(connect, report: dict[str, object]) -> None:
    with running_server(ServerConfig(device="cpu"), SyncConfig(policy="asp"), dim=4) as server:
        connect(server, "n0").client.report(report)
        status = server.status()
        assert status["alarms"] == {}
        assert all(set(faults.values()) <= {0} for faults in status["faults"].values())


def test_a_node_that_is_gone_has_no_alarms(connect) -> None:
    with running_server(ServerConfig(device="cpu"), SyncConfig(policy="asp"), dim=4) as server:
        node = connect(server, "n0")
        node.client.report({"sources": {"a": {"alarm": ALARM}}})
        assert server.status()["alarms"]
        server.state.leave("n0", server.state.ledger.of("n0").session)
        assert server.status()["alarms"] == {}
