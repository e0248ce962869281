"""Figures of server groups in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from embedding.server.figures.metrics import Figures, by, plain

_GROUP_GAUGES: Figures = {
    "up": (lambda group: int(group["state"] == "up"), "Whether the group is heard of"),
    "lag_seconds": ("lag_s", "Seconds since the group took the changes that it sent last"),
    "waiting_pushes": ("waiting_pushes", "Pushes of its nodes that the leader has not heard of"),
    "waiting_rows": ("waiting_rows", "Rows that moved and that the leader has not heard of"),
    "unconfirmed": ("unconfirmed", "Entries that are in no checkpoint of the leader"),
    "nodes": ("nodes", "Nodes of the group"),
}
_GROUP_COUNTERS: Figures = {
    "entries": ("entries", "Entries applied"),
    "duplicates": ("duplicates", "Entries that had been applied before"),
    "rows_in": ("rows_in", "Changed rows that the group sent"),
    "rows_out": ("rows_out", "Rows that the group fetched"),
    "bytes_in": ("bytes_in", "Bytes received from the group"),
    "bytes_out": ("bytes_out", "Bytes sent to the group"),
}
_FOLLOWING: Figures = {
    "leader_up": (
        lambda following: float(following["state"] == "up"),
        "Whether the leader of this server's group is heard of",
    ),
}


def group_metrics(status: Mapping[str, Any]) -> Iterator[Metric]:
    """From the status of a server that leads or follows; nothing of any other."""
    if groups := {each["group"]: each for each in status["groups"]}:
        yield from by("group", GaugeMetricFamily, _GROUP_GAUGES, groups)
        yield from by("group", CounterMetricFamily, _GROUP_COUNTERS, groups)
    if status.get("following") is not None:
        yield from plain(GaugeMetricFamily, _FOLLOWING, status["following"])
