"""The sources in `yeoron status`: what was learnt of each, and which node reads it."""

from __future__ import annotations

from typing import Any

from rich.table import Table


def source_table(server: dict[str, Any]) -> Table:
    """A row for each source that the server knows."""
    read = (server.get("reading") or {}).get("sources", {})
    heads = ("source", "read by", "tokens/s", "documents", "tokens", "latest", "lag p50", "lag p95")
    table = Table(*heads, title="Sources")
    for name, source in sorted(server.get("sources", {}).items()):
        reader = read.get(name)
        table.add_row(
            name,
            reader["node"] if reader else "–",
            f"{reader['tokens_per_second']:,.0f}" if reader else "–",
            f"{source['documents']:,}",
            f"{source['tokens']:,}",
            str(source["published_at"] or "–")[:16],
            _seconds(source.get("lag_p50_s")),
            _seconds(source.get("lag_p95_s")),
        )
    return table


def balance_line(server: dict[str, Any]) -> str | None:
    """How evenly the nodes read; None for one node or none."""
    read = server.get("reading") or {}
    nodes = len(read.get("nodes", {}))
    if nodes < 2 or read["imbalance"] is None:
        return None
    return (
        f"The busiest node reads {read['imbalance']:.2f} times the mean of {nodes} nodes; "
        f"{read['moves']} sources have changed nodes."
    )


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} s"
