"""Figures of server groups in Prometheus' text format."""

from __future__ import annotations

from typing import Any

from embedding.server.figures.metrics import COUNTER, GAUGE, Scrape, by, plain

_GROUP_GAUGES: dict[str, tuple[Any, str]] = {
    "up": (lambda group: int(group["state"] == "up"), "Whether the group is heard of"),
    "lag_seconds": ("lag_s", "Seconds since the group took the changes that it sent last"),
    "waiting_pushes": ("waiting_pushes", "Pushes of its nodes that the leader has not heard of"),
    "waiting_rows": ("waiting_rows", "Rows that moved and that the leader has not heard of"),
    "unconfirmed": ("unconfirmed", "Entries that are in no checkpoint of the leader"),
    "nodes": ("nodes", "Nodes of the group"),
}
_GROUP_COUNTERS: dict[str, tuple[Any, str]] = {
    "entries": ("entries", "Entries applied"),
    "duplicates": ("duplicates", "Entries that had been applied before"),
    "rows_in": ("rows_in", "Changed rows that the group sent"),
    "rows_out": ("rows_out", "Rows that the group fetched"),
    "bytes_in": ("bytes_in", "Bytes received from the group"),
    "bytes_out": ("bytes_out", "Bytes sent to the group"),
}
_FOLLOWING: dict[str, tuple[Any, str]] = {
    "leader_up": (
        lambda following: float(following["state"] == "up"),
        "Whether the leader of this server's group is heard of",
    ),
}


def _groups(shown: Scrape) -> dict[str, Any] | None:
    return {each["group"]: each for each in shown["groups"]} or None


GROUP_FIGURES = (
    *by("group", GAUGE, _GROUP_GAUGES, _groups),
    *by("group", COUNTER, _GROUP_COUNTERS, _groups),
    *plain(GAUGE, _FOLLOWING, "following"),
)
"""Of a server that leads or follows."""
