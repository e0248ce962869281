"""Figures of shards in Prometheus' text format."""

from __future__ import annotations

from typing import Any

from embedding.server.figures.metrics import COUNTER, GAUGE, Figure, Scrape, by

_SHARD_GAUGES: dict[str, tuple[Any, str]] = {
    "up": (lambda shard: int(shard["state"] == "up"), "Whether the shard is used"),
    "rows": ("rows", "Rows held"),
    "bytes": ("bytes", "Memory of rows and their places"),
    "position": ("position", "Entries of the primary's log carried out"),
    "behind": ("behind", "Entries of the primary's log to be carried out"),
}
_SHARD_COUNTERS: dict[str, tuple[Any, str]] = {
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


def _shards(shown: Scrape) -> dict[int, Any] | None:
    return {shard["shard"]: shard for shard in shown["shards"]} or None


def shard_figures() -> tuple[Figure, ...]:
    """Of a server with shards."""
    gauges = by("shard", GAUGE, _SHARD_GAUGES, _shards)
    return (*gauges, *by("shard", COUNTER, _SHARD_COUNTERS, _shards))
