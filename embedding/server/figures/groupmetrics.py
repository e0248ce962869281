"""The metrics of server groups, as their leader knows them, and of one that follows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from embedding.server.figures.families import labelled

_GAUGES = {
    "lag_seconds": ("lag_s", "Seconds since the group took what it told last"),
    "waiting_pushes": ("waiting_pushes", "Pushes of its nodes that the leader has not heard of"),
    "waiting_rows": ("waiting_rows", "Rows that moved and that the leader has not heard of"),
    "unconfirmed": ("unconfirmed", "Entries that are in no checkpoint of the leader"),
    "nodes": ("nodes", "Nodes of the group"),
}
_COUNTERS = {
    "entries": ("entries", "Entries applied"),
    "duplicates": ("duplicates", "Entries that had been applied before"),
    "rows_in": ("rows_in", "Rows that the group told of"),
    "rows_out": ("rows_out", "Rows that the group fetched"),
    "bytes_in": ("bytes_in", "Bytes received from the group"),
    "bytes_out": ("bytes_out", "Bytes sent to the group"),
}


def group_metrics(groups: Sequence[dict[str, Any]]) -> Iterator[Metric]:
    """A sample for each group; nothing where none follows."""
    if not groups:
        return
    up = ((group["group"], int(group["state"] == "up")) for group in groups)
    yield labelled(GaugeMetricFamily, "group_up", "Whether the group is heard of", "group", up)
    for kind, figures in ((GaugeMetricFamily, _GAUGES), (CounterMetricFamily, _COUNTERS)):
        for name, (key, text) in figures.items():
            values = ((group["group"], group.get(key)) for group in groups)
            yield labelled(kind, f"group_{name}", text, "group", values)


def following_metrics(following: Mapping[str, Any] | None) -> Iterator[Metric]:
    """Of a group that follows; nothing where the server does not."""
    if following is not None:
        text = "Whether the leader of this server's group is heard of"
        yield GaugeMetricFamily("yeoron_leader_up", text, float(following["state"] == "up"))
