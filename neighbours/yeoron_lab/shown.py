"""What `yeoron status` shows of the laboratory: rounds of L-BFGS, shards, server groups."""

from __future__ import annotations

from typing import Any

from embedding.kernel.registry import NoTraits
from embedding.server.figures.shown import STATUS, StatusTable


@STATUS.register("laboratory", NoTraits())
def laboratory_tables(server: dict[str, Any]) -> list[StatusTable]:
    """Those that a server's status has something for."""
    line = following_line(server)
    tables = [round_table(server), shard_table(server), group_table(server)]
    tables.append(None if line is None else StatusTable(line))
    return [table for table in tables if table is not None]


def round_table(server: dict[str, Any]) -> StatusTable | None:
    """Steps and losses of the rounds of L-BFGS; None where there was none."""
    rounds = (server.get("sync") or {}).get("rounds") or {}
    if not rounds.get("rounds"):
        return None
    rows = [
        ("rounds, steps", f"{rounds['rounds']:,}, {rounds['iterations']:,}"),
        ("the last one", str(rounds["why"])),
    ]
    if rounds["last"] is not None:
        rows.append(("loss of its batch", f"{rounds['first']:.3f} → {rounds['last']:.3f}"))
    portions = ", ".join(f"{node} {n:,}" for node, n in sorted(rounds["by_node"].items()))
    copies = f"{rounds['copies']:,}, of which {rounds['copies_won']:,} came first"
    rows += [("portions, by node", portions), ("portions given out twice", copies)]
    return StatusTable("Rounds of L-BFGS", ("rounds", ""), rows)


def shard_table(server: dict[str, Any]) -> StatusTable | None:
    """Rows, memory and progress of each shard; None without shards."""
    shards = server.get("shards")
    if not shards:
        return None
    rows = [
        (
            str(shard["shard"]),
            shard["state"],
            f"{shard.get('rows', 0):,}",
            f"{shard.get('bytes', 0) / 2**20:,.0f} MiB",
            f"{shard.get('pushes', 0):,}",
            f"{shard.get('position', 0):,}",
            f"{shard['behind']:,}",
            str(shard["restarts"]),
        )
        for shard in shards
    ]
    heads = ("shard", "state", "rows", "memory", "pushes", "clock", "behind", "restarts")
    return StatusTable("Shards", heads, rows, _failed(shards))


def group_table(server: dict[str, Any]) -> StatusTable | None:
    """Lag, entries, rows and bytes of each group that follows; None where none does."""
    groups = server.get("groups")
    if not groups:
        return None
    rows = [
        (
            group["group"],
            group["state"],
            str(group["nodes"]),
            "" if group.get("lag_s") is None else f"{group['lag_s']:.1f} s",
            f"{group['entries']:,}",
            f"{group['rows_in']:,}",
            f"{group['rows_out']:,}",
            f"{group['bytes_in'] / 2**20:,.1f} MiB",
            f"{group['bytes_out'] / 2**20:,.1f} MiB",
        )
        for group in groups
    ]
    heads = ("group", "state", "nodes", "lag", "entries", "rows in", "rows out", "bytes in")
    title = "Server groups that follow"
    return StatusTable(title, (*heads, "bytes out"), rows, _failed(groups))


def _failed(parts: list[dict[str, Any]]) -> list[int]:
    return [at for at, part in enumerate(parts) if part["state"] != "up"]


def following_line(server: dict[str, Any]) -> str | None:
    """How a group that follows stands to its leader; None for any other server."""
    following = server.get("following")
    if not following:
        return None
    line = (
        f"group {following['group']} follows {following['leader']}: {following['state']}, lag "
        f"{following['lag_s']:.1f} s, {following['waiting_pushes']:,} pushes and "
        f"{following['waiting_rows']:,} rows to tell"
    )
    return line if following["reason"] is None else f"{line}; {following['reason']}"
