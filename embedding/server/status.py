"""The status of a server as one JSON object (docs/architecture.md)."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from embedding.kernel.records import SnapshotRef
from embedding.server.consistency import NodeSpeed
from embedding.server.figures.reports import is_number, open_alarms, source_faults, topology, total
from embedding.server.ledger.sequence import NodeLedger
from embedding.server.parts import Moment
from embedding.server.state import ServerState


def build_status(
    state: ServerState,
    snapshots: Sequence[SnapshotRef] = (),
    waits: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Everything a person or a program may want to know about a running server.

    waits  for whom windows wait, a sentence each, by label
    """
    at = Moment(time.monotonic(), state.config.calendar.iso)
    with state.lock:
        meters, reports = state.meters, state.reports.last
        status: dict[str, Any] = {
            "epoch": state.epoch,
            "device": str(state.tables.device),
            "dim": state.dim,
            "timezone": state.config.timezone,
            "groups": [],
        }
        for part in state.parts.values():
            for name, field in part.describe(at).items():
                status[name] = status.get(name, {}) | field if isinstance(field, dict) else field
        shards, others = status["shards"], status["groups"]
        nodes = node_status(state, {each["group"] for each in others}, at.now)
        status["bytes"] |= {
            "pushed_per_entry": meters.bytes_per_entry(total(shards, "bytes_deltas")),
            "rows_spared": meters.rows_spared + total(shards, "rows_spared"),
        }
        return status | {
            "topology": topology(reports, meters, shards, others),
            "nodes": nodes,
            "alarms": open_alarms(nodes),
            "faults": source_faults(nodes),
            "sources": _sources(state, at),
            "reading": _reading(reports, state.living()),
            "waits": dict(waits),
            "snapshots": [ref.to_dict() for ref in snapshots],
        }


def node_status(state: ServerState, servers: Collection[str], now: float) -> dict[str, Any]:
    """Each node, here or at another server (under the lock); servers are members, but no nodes.

    Of a node of another server its pushes are those in the books here: that server speaks of them
    earlier or later than of their content.
    """
    nodes = {}
    for name, member in state.machine.board.members.items():
        if name in servers:
            continue
        entry = state.ledger.of(name)
        rate = state.meters.node_words.get(name)
        where = "active" if member.active else "idle" if member.present else "gone"
        nodes[name] = {
            "state": where,
            "clock": member.clock,
            "sequence": entry.accepted,
            "durable": entry.durable,
            "tokens": entry.tokens,
            "words_per_second": 0.0 if rate is None else rate.value(now),
            "block_share": state.machine.balance.nodes.get(name, NodeSpeed()).share,
            # One that a checkpoint names and that has not come since the server began: since then.
            "last_seen_s": now - max(member.last_seen, state.meters.started),
            "report": state.reports.last.get(name, {}),
        }
    for name, guest in state.reports.guests.items():
        if guest.get("state") == "gone" and nodes.get(name, guest)["state"] != "gone":
            continue  # it went over to this server
        entry = state.ledger.nodes.get(name, NodeLedger())
        pushes = {"sequence": entry.accepted, "durable": entry.durable, "tokens": entry.tokens}
        nodes[name] = {**guest, **pushes}
    return nodes


def _sources(state: ServerState, at: Moment) -> dict[str, Any]:
    sources = {}
    for name, known in state.accounts.tracker.sources.items():
        meter = state.meters.source(name)
        score = state.scores.sources.get(name)
        sources[name] = {
            "documents": meter.documents,
            "tokens": meter.tokens,
            "words_per_second": meter.words.value(at.now),
            "late_documents": meter.late,
            "published_at": at.iso(known.published),
            "pending": sum(known.pending.values()),
            "nll": None if score is None else score.smooth,
            "lag_p50_s": meter.lags.quantile(0.5),
            "lag_p95_s": meter.lags.quantile(0.95),
            "idle_s": at.now - known.last_news,
        }
    return sources


def _reading(reports: Mapping[str, Any], living: set[str]) -> dict[str, Any]:
    """Which node reads which source, from what nodes report of their leases; JSON-safe.

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
        moved, held = reading.get("moves"), reading.get("sources")
        moves = max(moves, int(moved) if is_number(moved) else 0)
        rates = {
            str(name): float(rate) if is_number(rate) else 0.0
            for name, rate in (held if isinstance(held, dict) else {}).items()
        }
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
