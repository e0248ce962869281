"""The sources in `yeoron status`: what was learnt of each, and which node reads it."""

from __future__ import annotations

from typing import Any

from rich.box import HEAVY_HEAD, SIMPLE_HEAD
from rich.console import JustifyMethod
from rich.table import Table

WIDE = 110
"""Cells from which every column has room."""
HEADS = ("source", "read by", "tokens/s", "documents", "tokens", "latest", "lag p50", "lag p95")
LEFT_OUT = {"tokens", "lag p95"}
"""Columns that a narrow terminal has no room for; --json has them all."""


def source_table(server: dict[str, Any], width: int = WIDE) -> Table:
    """A row for each source that the server knows, with names whole in a terminal of 80 cells.

    width  cells of the terminal
    """
    wide = width >= WIDE
    heads = [head for head in HEADS if wide or head not in LEFT_OUT]
    table = Table(title="Sources", box=HEAVY_HEAD if wide else SIMPLE_HEAD, pad_edge=wide)
    for head in heads:
        text = head in ("source", "read by", "latest")
        own = head == "source"  # the one that gives way where there is no room
        justify: JustifyMethod = "left" if text else "right"
        table.add_column(head, justify=justify, overflow="fold", no_wrap=not own)
    read = (server.get("reading") or {}).get("sources", {})
    for name, source in sorted(server.get("sources", {}).items()):
        cells = _cells(name, source, read.get(name), wide=wide)
        table.add_row(*(cells[head] for head in heads))
    return table


def _cells(
    name: str, source: dict[str, Any], reader: dict[str, Any] | None, *, wide: bool
) -> dict[str, str]:
    latest = str(source["published_at"] or "–").replace("T", " ")[:16]
    return {
        "source": name,
        "read by": reader["node"] if reader else "–",
        "tokens/s": f"{reader['tokens_per_second']:,.0f}" if reader else "–",
        "documents": f"{source['documents']:,}",
        "tokens": f"{source['tokens']:,}",
        "latest": latest if wide else latest[-11:],
        "lag p50": _seconds(source.get("lag_p50_s")),
        "lag p95": _seconds(source.get("lag_p95_s")),
    }


def balance_line(server: dict[str, Any]) -> str | None:
    """How evenly the nodes read; None for one node or none."""
    read = server.get("reading") or {}
    nodes = len(read.get("nodes", {}))
    if nodes < 2 or read["imbalance"] is None:
        return None
    moves = read["moves"]
    changed = "1 source has" if moves == 1 else f"{moves} sources have"
    return (
        f"The busiest node reads {read['imbalance']:.2f} times the mean of {nodes} nodes; "
        f"{changed} changed nodes."
    )


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} s"
