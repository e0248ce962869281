"""The status in Prometheus' text format, from a registry of its own on each request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from embedding.server.meters import Meters

_BUCKETS = (0, 1, 2, 4, 8, 16, 32, 64, 128)

_NODE_GAUGES = {
    "clock": "Clocks the node has finished",
    "sequence": "Last push taken",
    "durable": "Last push in a checkpoint",
    "words_per_second": "Tokens a second over ten seconds",
    "last_seen_s": "Seconds since the node's last sign of life",
}


class _StatusCollector(Collector):
    """One scrape."""

    def __init__(self, status: dict[str, Any], meters: Meters) -> None:
        self._status = status
        self._meters = meters

    def collect(self) -> Iterator[Metric]:
        yield from self._totals()
        yield from self._gauges()
        yield self._staleness()
        yield from self._nodes()
        yield from self._sources()

    def _totals(self) -> Iterator[Metric]:
        meters = self._meters
        for name, text, value in (
            ("tokens", "Tokens learnt", meters.tokens),
            ("documents", "Documents learnt", meters.documents),
            ("pushes", "Pushes applied", meters.pushes),
            ("duplicate_pushes", "Pushes that had been taken before", meters.duplicates),
            ("dropped_pushes", "Pushes whose rows came too late", meters.dropped_pushes),
            ("refused", "Messages refused", meters.refused),
            ("rows_in", "Rows received in pushes", meters.rows_in),
            ("rows_out", "Rows sent in pulls", meters.rows_out),
            ("bytes_in", "Bytes received", meters.bytes_in),
            ("bytes_out", "Bytes sent", meters.bytes_out),
        ):
            yield CounterMetricFamily(f"yeoron_{name}", text, value=value)

    def _gauges(self) -> Iterator[Metric]:
        status = self._status
        lag = status["lag"]
        for name, text, value in (
            ("vocabulary", "Words that have a row", status["vocabulary"]),
            ("candidates", "Words counted without a row", status["candidates"]),
            ("words_per_second", "Tokens a second over ten seconds", status["words_per_second"]),
            ("lag_p50_seconds", "Median lag", lag["p50_s"]),
            ("lag_p95_seconds", "95th percentile of the lag", lag["p95_s"]),
            ("uptime_seconds", "Seconds since the start", status["uptime_s"]),
            ("snapshots", "Snapshots published", len(status["snapshots"])),
        ):
            if value is not None:
                yield GaugeMetricFamily(f"yeoron_{name}", text, value=value)

    def _staleness(self) -> Metric:
        seen = dict(self._meters.staleness)
        buckets = [(str(le), sum(n for s, n in seen.items() if s <= le)) for le in _BUCKETS]
        buckets.append(("+Inf", sum(seen.values())))
        family = HistogramMetricFamily(
            "yeoron_staleness", "Other pushes applied between a node's pull and its push"
        )
        family.add_metric([], buckets, sum(s * n for s, n in seen.items()))
        return family

    def _nodes(self) -> Iterator[Metric]:
        for name, text in _NODE_GAUGES.items():
            family = GaugeMetricFamily(f"yeoron_node_{name}", text, labels=["node"])
            for node, figures in self._status["nodes"].items():
                family.add_metric([node], figures[name])
            yield family
        depth = GaugeMetricFamily("yeoron_node_queue", "Tokens waiting", labels=["node"])
        for node, figures in self._status["nodes"].items():
            queue = figures["report"].get("queue")
            if isinstance(queue, dict):
                queue = queue.get("depth")
            if type(queue) in (int, float):
                depth.add_metric([node], queue)
        yield depth

    def _sources(self) -> Iterator[Metric]:
        for name, text in (
            ("documents", "Documents learnt"),
            ("tokens", "Tokens learnt"),
            ("nll", "Loss before learning"),
            ("lag_p50_s", "Median lag in seconds"),
            ("lag_p95_s", "95th percentile of the lag in seconds"),
        ):
            family = GaugeMetricFamily(f"yeoron_source_{name}", text, labels=["source"])
            for source, figures in self._status["sources"].items():
                if figures[name] is not None:
                    family.add_metric([source], figures[name])
            yield family


def render(status: dict[str, Any], meters: Meters) -> bytes:
    """The metrics page."""
    registry = CollectorRegistry()
    registry.register(_StatusCollector(status, meters))
    page: bytes = generate_latest(registry)
    return page
