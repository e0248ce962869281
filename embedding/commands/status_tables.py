"""What `yeoron status` shows of a parameter server: its sources and its policy; other packages add
to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import JustifyMethod
from rich.table import Table

from embedding.server.figures.shown import STATUS, StatusTable

WIDE = 110
"""Cells from which every column has room."""
HEADS = ("source", "read by", "words/s", "documents", "tokens", "latest", "lag p50", "lag p95")
LEFT_OUT = {"tokens", "lag p95"}
"""Columns that a narrow terminal has no room for; --json has them all."""


def _titled(title: str, *heads: str) -> Table:
    return Table(*heads, title=title, box=SIMPLE_HEAD)


def service_table(states: Mapping[str, str]) -> Table:
    """The state of each service, in red where it does not run."""
    table = _titled("Services", "service", "state")
    for name, state in states.items():
        table.add_row(name, state, style=None if state == "RUNNING" else "red")
    return table


def status_tables(server: dict[str, Any], width: int) -> list[Table]:
    """The tables of a server's status, without those that it has nothing for."""
    found = [source_table(server, width), sync_table(server)]
    for name in STATUS:
        found += [shown_table(one) for one in STATUS.get(name)(server)]
    return [table for table in found if table is not None]


def shown_table(found: StatusTable) -> Table:
    """A table of another package."""
    table = _titled(found.title, *found.heads)
    for at, row in enumerate(found.rows):
        table.add_row(*row, style="red" if at in found.failed else None)
    return table


def status_lines(server: dict[str, Any]) -> list[str]:
    """What stands below the tables: the whole, how evenly the nodes read."""
    whole = (
        f"{server['tokens']:,} tokens, {server['vocabulary']:,} words, "
        f"{server['words_per_second']:,.0f} words/s, policy {server['policy']}"
    )
    balance = balance_line(server)
    return [whole] if balance is None else [whole, balance]


def source_table(server: dict[str, Any], width: int = WIDE) -> Table:
    """A row for each source that the server knows, with names whole in a terminal of 80 cells.

    width  cells of the terminal
    """
    wide = width >= WIDE
    heads = [head for head in HEADS if wide or head not in LEFT_OUT]
    table = _titled(f"Sources (times of {server.get('timezone', 'UTC')})")
    table.pad_edge = wide
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
        "words/s": f"{source['words_per_second']:,.0f}",
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


def sync_table(server: dict[str, Any]) -> Table | None:
    """The ruling policy and what it did, from the server's status; None when it does not say."""
    sync = server.get("sync")
    if not sync:
        return None
    table = _titled("Policy", "synchronisation", "")
    chosen = sync["policy"]
    if sync["running"] != chosen:
        chosen += f" (now {sync['running']})"
    table.add_row("policy", chosen)
    clocks = sorted((each["clock"], name) for name, each in server.get("nodes", {}).items())
    if clocks:
        (first, slow), (last, fast) = clocks[0], clocks[-1]
        table.add_row("clocks", f"{slow} {first:,} … {fast} {last:,}")
    shares = sorted(each.get("block_share", 1.0) for each in server.get("nodes", {}).values())
    if shares and shares[0] < shares[-1]:
        table.add_row("block sizes, by speed", f"{shares[0]:.2f} … {shares[-1]:.2f} of the setting")
    table.add_row("a push, a pull every", f"{sync['push_every']}, {sync['pull_every']} blocks")
    if sync["variation"] is not None:
        table.add_row("variation of the sources' rates", f"{sync['variation']:.2f}")
    if sync["dropped_pushes"]:
        dropped = f"{sync['dropped_pushes']:,} pushes, {sync['dropped_tokens']:,} tokens"
        table.add_row("too late", dropped)
    for switch in sync["switches"][-3:]:
        at = str(switch["at"])[11:19]
        table.add_row(f"{at} {switch['from']} → {switch['to']}", switch["reason"])
    return table
