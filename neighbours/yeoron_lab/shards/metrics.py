"""Figures of shards in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from embedding.server.figures.metrics import Figures, by

_SHARD_GAUGES: Figures = {
    "up": (lambda shard: int(shard["state"] == "up"), "Whether the shard is used"),
    "rows": ("rows", "Rows held"),
    "bytes": ("bytes", "Memory of rows and their places"),
    "position": ("position", "Entries of the primary's log carried out"),
    "behind": ("behind", "Entries of the primary's log to be carried out"),
}
_SHARD_COUNTERS: Figures = {
    "pushes": ("pushes", "Pushes applied"),
    "duplicates": ("duplicates", "Pushes that had been taken before"),
    "lost_pushes": ("lost_pushes", "Pushes lost with their node"),
    "repeated_pushes": (
        "repeated_pushes",
        "Pushes whose text is read again and not applied again",
    ),
    "rows_in": ("rows_in", "Rows received in pushes"),
    "rows_out": ("rows_out", "Rows sent in pulls"),
    "bytes_in": ("bytes_in", "Bytes received from nodes"),
    "bytes_out": ("bytes_out", "Bytes sent to nodes"),
    "bytes_led": ("bytes_led", "Bytes between shard and primary"),
}


def shard_metrics(status: Mapping[str, Any]) -> Iterator[Metric]:
    """From the status of their server; nothing where it has none."""
    if shards := {each["shard"]: each for each in status["shards"]}:
        yield from by("shard", GaugeMetricFamily, _SHARD_GAUGES, shards)
        yield from by("shard", CounterMetricFamily, _SHARD_COUNTERS, shards)
