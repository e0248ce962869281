"""What `yeoron status` shows of a parameter server: the table of its figures, and its policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from embedding.server.figures.metrics import SHOWN, SOURCES, Figure, all_figures

WIDE = 110
"""Cells from which every column has room."""
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
    titles = dict.fromkeys(figure.table for figure in all_figures() if figure.head)
    tables = [figure_table(title, server, width) for title in titles]
    tables.insert(1, sync_table(server))
    return [table for table in tables if table is not None]


def figure_table(title: str, server: dict[str, Any], width: int = WIDE) -> Table | None:
    """The table of figures with this title: a row for each thing, or for each figure where they
    have no label; None where there is nothing of it. Names are whole in a terminal of 80 cells.

    width  cells of the terminal
    """
    wide = width >= WIDE
    figures = [figure for figure in all_figures() if figure.table == title and figure.head]
    columns = [figure for figure in figures if wide or figure.head not in LEFT_OUT]
    rows: dict[str, dict[str, str]] = {}
    for figure in columns:
        for name, value in figure.values(server) or ():
            cell = _cell(figure, value)
            cell = cell if wide or figure.head != "latest" else cell[-11:]
            rows.setdefault(name if figure.labels else figure.head, {})[figure.head] = cell
    if not rows and title != SOURCES:
        return None
    if not figures[0].labels:
        if not any(value for figure in figures for _, value in figure.values(server) or ()):
            return None
        table = _titled(title, title.lower(), "")
        for head, cells in rows.items():
            table.add_row(head, cells[head])
        return table
    zone = f" (times of {server.get('timezone', 'UTC')})" if title == SOURCES else ""
    table = _titled(title + zone)
    table.pad_edge = wide
    table.add_column(columns[0].labels, overflow="fold")  # gives way where there is no room
    for figure in columns:
        text = figure.kind == SHOWN and not figure.name.endswith(("_second", "_seconds"))
        table.add_column(
            figure.head, justify="left" if text else "right", overflow="fold", no_wrap=True
        )
    for name, cells in rows.items():
        failed = cells.get("state", "up") != "up"
        row = (cells.get(figure.head, "–") for figure in columns)
        table.add_row(str(name), *row, style="red" if failed else None)
    return table


def _cell(figure: Figure, value: Any) -> str:
    """A value, by the unit that its figure's name ends with."""
    unit = figure.name.rpartition("_")[2]
    if value is None or isinstance(value, str):
        return value or "–"
    if unit == "seconds":
        return f"{value:.1f} s"
    if figure.head == "memory" or figure.head.startswith("bytes"):
        return f"{value / 2**20:,.1f} MiB"
    return f"{value:.3f}" if unit == "loss" else f"{value:,.0f}"


def status_lines(server: dict[str, Any]) -> list[str]:
    """What stands below the tables: the whole, how evenly the nodes read."""
    whole = (
        f"{server['tokens']:,} tokens, {server['vocabulary']:,} words, "
        f"{server['words_per_second']:,.0f} words/s, policy {server['policy']}"
    )
    balance = balance_line(server)
    return [whole] if balance is None else [whole, balance]


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
    clocks = sorted((node["clock"], name) for name, node in server.get("nodes", {}).items())
    if clocks:
        (first, slow), (last, fast) = clocks[0], clocks[-1]
        table.add_row("clocks", f"{slow} {first:,} … {fast} {last:,}")
    shares = sorted(node.get("block_share", 1.0) for node in server.get("nodes", {}).values())
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
