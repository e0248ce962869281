"""The server groups, as `yeoron status` shows them."""

from __future__ import annotations

from typing import Any

from rich.table import Table


def group_table(server: dict[str, Any]) -> Table | None:
    """Lag, entries, rows and bytes of each group that follows; None where none does."""
    groups = server.get("groups")
    if not groups:
        return None
    table = Table(
        *("group", "state", "nodes", "lag", "entries", "rows in", "rows out", "bytes in"),
        "bytes out",
        title="Server groups that follow",
    )
    for group in groups:
        lag = group.get("lag_s")
        table.add_row(
            group["group"],
            group["state"],
            str(group["nodes"]),
            "" if lag is None else f"{lag:.1f} s",
            f"{group['entries']:,}",
            f"{group['rows_in']:,}",
            f"{group['rows_out']:,}",
            f"{group['bytes_in'] / 2**20:,.1f} MiB",
            f"{group['bytes_out'] / 2**20:,.1f} MiB",
            style=None if group["state"] == "up" else "red",
        )
    return table


def following_line(server: dict[str, Any]) -> str | None:
    """How a group that follows stands to its leader; None for any other server."""
    found = server.get("following")
    if not found:
        return None
    line = (
        f"group {found['group']} follows {found['leader']}: {found['state']}, lag "
        f"{found['lag_s']:.1f} s, {found['waiting_pushes']:,} pushes and "
        f"{found['waiting_rows']:,} rows to tell"
    )
    return line if found["reason"] is None else f"{line}; {found['reason']}"
