"""The shards of a server, as `yeoron status` shows them."""

from __future__ import annotations

from typing import Any

from rich.table import Table


def shard_table(server: dict[str, Any]) -> Table | None:
    """Rows, memory and progress of each shard, from the server's status; None without shards."""
    shards = server.get("shards")
    if not shards:
        return None
    table = Table(
        *("shard", "state", "rows", "memory", "pushes", "clock", "behind", "restarts"),
        title="Shards",
    )
    for shard in shards:
        table.add_row(
            str(shard["shard"]),
            shard["state"],
            f"{shard.get('rows', 0):,}",
            f"{shard.get('bytes', 0) / 2**20:,.0f} MiB",
            f"{shard.get('pushes', 0):,}",
            f"{shard.get('position', 0):,}",
            f"{shard['behind']:,}",
            str(shard["restarts"]),
            style=None if shard["state"] == "up" else "red",
        )
    return table
