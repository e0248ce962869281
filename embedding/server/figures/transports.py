"""Rows and bytes by transport, put together from what the nodes report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from embedding.server.figures.meters import Meters

NODE_FIGURES = ("rows_in", "rows_out", "bytes_in", "bytes_out")
"""What a server group tells of its nodes' rows and bytes, each as `node_…`."""


def topology(
    reports: Mapping[str, Mapping[str, Any]],
    meters: Meters,
    shards: Sequence[Mapping[str, Any]] = (),
    groups: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """JSON-safe; the server's part is that of all its shards, and of all server groups.

    kind        topology of the nodes, ps when none has reported one
    bytes       by transport: `server` as the server meters both directions, `groups` between server
                groups, `allreduce` and `host` (between nodes and the aggregator of their group) as
                the nodes sent them
    rows        by transport: those that the server took and sent; those of blocks that were summed
                by all-reduce; those that reached an aggregator
    dense_rows  by table, rows that go by all-reduce
    density     by table, mean share of the known rows that a block moves
    regrouped, lost_tokens, from_server   of nodes that all-reduce (docs/concepts/topologies.md), as
                as the one reports that has seen most
    """
    topologies = [report["topology"] for report in reports.values() if "topology" in report]
    topologies = [each for each in topologies if isinstance(each, dict)]
    rows = {"server": meters.rows_in + meters.rows_out + total(shards, "rows_in", "rows_out")}
    sent = {"server": meters.bytes_in + meters.bytes_out + total(shards, "bytes_in", "bytes_out")}
    if groups:
        rows["server"] += total(groups, "node_rows_in", "node_rows_out")
        # What groups merge is added like pushes.
        rows["server"] -= total(groups, "rows_in")
        rows["groups"] = total(groups, "rows_in", "rows_out")
        sent["server"] += total(groups, "node_bytes_in", "node_bytes_out")
        sent["groups"] = total(groups, "bytes_in", "bytes_out")
    for each in topologies:
        _add(rows, each.get("rows"))
        _add(sent, each.get("bytes"))
    densities = [each["density"] for each in topologies if isinstance(each.get("density"), dict)]
    tables = sorted({table for each in densities for table in each})
    seen = {
        name: max((int(each[name]) for each in topologies if _number(each.get(name))), default=0)
        for name in ("regrouped", "lost_tokens", "from_server")
    }
    return {
        **seen,
        "kind": str(topologies[0].get("kind", "ps")) if topologies else "ps",
        "groups": len({str(each["group"]) for each in topologies if "group" in each}),
        "bytes": sent,
        "rows": rows,
        "dense_rows": next((each["dense_rows"] for each in topologies if "dense_rows" in each), {}),
        "density": {
            table: sum(known) / len(known)
            for table in tables
            if (known := [float(each[table]) for each in densities if _number(each.get(table))])
        },
    }


def total(parts: Sequence[Mapping[str, Any]], *figures: str) -> int:
    """The sum of figures over all shards, or over all groups that follow."""
    found: list[Any] = [part.get(figure) for part in parts for figure in figures]
    return sum(int(each) for each in found if _number(each))


def _add(totals: dict[str, int], part: object) -> None:
    """What the server meters itself is not added again."""
    if isinstance(part, dict):
        for way, n in part.items():
            if way != "server" and _number(n):
                totals[str(way)] = totals.get(str(way), 0) + int(n)


def _number(value: object) -> bool:
    return type(value) in (int, float) and value == value
