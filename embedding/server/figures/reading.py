"""Which node reads which source, from what the nodes report of their leases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from embedding.server.figures.families import is_number


def reading(reports: Mapping[str, Any], living: set[str]) -> dict[str, Any]:
    """Sources by name with node and rate, nodes with their rate, JSON-safe.

    sources    {SOURCE: {"node", "tokens_per_second"}}
    nodes      tokens a second by node
    imbalance  the largest of them over their mean; None when nothing is read
    moves      how often a source changed from one living node to another
    """
    sources: dict[str, dict[str, Any]] = {}
    nodes: dict[str, float] = {}
    moves = 0
    for node in sorted(living & set(reports)):
        reading = reports[node].get("reading")
        if not isinstance(reading, dict):
            continue
        moves = max(moves, int(_number(reading.get("moves"))))
        held = reading.get("sources")
        rates = (
            {str(name): _number(rate) for name, rate in held.items()}
            if isinstance(held, dict)
            else {}
        )
        nodes[node] = sum(rates.values())
        for name, rate in rates.items():
            sources[name] = {"node": node, "tokens_per_second": rate}
    total = sum(nodes.values())
    return {
        "sources": sources,
        "nodes": nodes,
        "imbalance": max(nodes.values()) * len(nodes) / total if total > 0 else None,
        "moves": moves,
    }


def _number(value: Any) -> float:
    """What a node reported, if it is a number."""
    return float(value) if is_number(value) else 0.0
