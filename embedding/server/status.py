"""The status of a server as one JSON object (docs/architecture.md)."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from embedding.kernel.records import SnapshotRef
from embedding.server.consistency import NodeSpeed
from embedding.server.figures.reports import is_number, open_alarms, source_faults, topology, total
from embedding.server.ledger.sequence import NodeLedger
from embedding.server.state import ServerState

_TOTALS = (
    *("tokens", "replayed_tokens", "documents", "pushes", "duplicates", "refused"),
    *("dropped_rows", "dropped_counts"),
)
"""Of Meters."""


def build_status(
    state: ServerState,
    snapshots: Sequence[SnapshotRef],
    groups: Callable[[float], list[dict[str, Any]]],
    waits: Mapping[str, str],
) -> dict[str, Any]:
    """Everything a person or a program may want to know about a running server.

    groups  at a monotonic time (under the lock): servers that tell of nodes of their own
    waits   for whom windows wait, a sentence each, by label
    """
    now = time.monotonic()
    with state.lock:
        meters, sync = state.meters, state.machine.config
        watermark = state.accounts.tracker.advance(now=now)
        shards, others = state.rows.describe(), groups(now)
        nodes = node_status(state, {each["group"] for each in others}, now)
        return {
            "epoch": state.epoch,
            "uptime_s": now - meters.started,
            "device": str(state.tables.device),
            "policy": sync.policy,
            "staleness": sync.staleness,
            "sync": _sync(state, now),
            "dim": state.dim,
            "vocabulary": len(state.vocabulary),
            "candidates": len(state.vocabulary.candidates),
            "waiting_words": {
                "words": len(state.words.anonymity),
                "withheld": state.words.anonymity.withheld,
            },
            **{name: getattr(meters, name) for name in _TOTALS},
            "loss": meters.loss_sum / meters.pairs if meters.pairs else None,
            "words_per_second": meters.words.value(now),
            "bytes": {
                "in": meters.bytes_in,
                "out": meters.bytes_out,
                "pushed_per_entry": meters.bytes_per_entry(total(shards, "bytes_deltas")),
                "rows_spared": meters.rows_spared + total(shards, "rows_spared"),
                "by_part": meters.parts.describe(),
            },
            "timezone": state.config.timezone,
            "watermark": state.config.calendar.iso(watermark),
            "lag": {"p50_s": meters.lags.quantile(0.5), "p95_s": meters.lags.quantile(0.95)},
            "pause_ms": {
                "checkpoint": meters.checkpoint_pause_s * 1000,
                "cut": meters.cut_pause_s * 1000,
            },
            "topology": topology(state.reports.last, meters, shards, others),
            "shards": shards,
            "groups": others,
            "usage": state.accounts.usage.describe(),
            "rare_words": {
                "held": len(state.accounts.rare),
                "mentions": state.accounts.rare.mentions,
            },
            "rows_per_second": {
                "in": meters.rates["rows_in"].value(now),
                "out": meters.rates["rows_out"].value(now),
            },
            "checkpoint_age_s": None
            if meters.checkpoint_at is None
            else now - meters.checkpoint_at,
            "nodes": nodes,
            "alarms": open_alarms(nodes),
            "faults": source_faults(nodes),
            "sources": _sources(state, now),
            "reading": _reading(state.reports.last, state.living()),
            "windows": state.accounts.describe(),
            "waits": dict(waits),
            "snapshots": [ref.to_dict() for ref in snapshots],
        }


def _sync(state: ServerState, now: float) -> dict[str, Any]:
    """JSON-safe (docs/concepts/synchronisation.md).

    policy       as it was asked for; running: the one that rules, which `auto` chooses
    pooled       nodes whose deltas of the same rows are added up
    push_every, pull_every   blocks of a node
    variation    coefficient of variation of the sources' token rates, null while unknown
    rates        tokens a second of each source at each node, waiting for others left out
    dropped_pushes, dropped_tokens   what came too late (backup)
    rounds, …    of each part that another package adds
    switched     changes of the ruling policy; switches: the last of them
    """
    machine, meters = state.machine, state.meters
    policy, board = machine.policy, machine.board
    pace, nodes = policy.pace(board), board.active()
    wall = time.time()
    return {
        "policy": machine.config.policy,
        "running": policy.name,
        "pooled": pace.pooled,
        "push_every": pace.push_every,
        "pull_every": pace.pull_every,
        "variation": board.speeds.variation(nodes),
        "rates": {f"{node} {source}": n for (node, source), n in board.speeds.rates(nodes).items()},
        "dropped_pushes": meters.dropped_pushes,
        "dropped_tokens": meters.dropped_tokens,
        **{name: part.figures() for name, part in state.parts.items()},
        "switched": machine.switched,
        "switches": [
            {
                "at": state.config.calendar.iso(wall - (now - switch.at)),
                "from": switch.before,
                "to": switch.after,
                "reason": switch.reason,
            }
            for switch in machine.switches
        ],
        "settings": machine.config.model_dump(mode="json"),
    }


def node_status(state: ServerState, servers: Collection[str], now: float) -> dict[str, Any]:
    """Each node, here or at another server (under the lock); servers are members, but no nodes.

    Of a node of another server its pushes are those in the books here: that server speaks of them
    earlier or later than of their content.
    """
    found = {}
    for name, member in state.machine.board.members.items():
        if name in servers:
            continue
        entry = state.ledger.of(name)
        rate = state.meters.node_words.get(name)
        where = "active" if member.active else "idle" if member.present else "gone"
        found[name] = {
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
        if guest.get("state") == "gone" and found.get(name, guest)["state"] != "gone":
            continue  # it went over to this server
        entry = state.ledger.nodes.get(name, NodeLedger())
        pushes = {"sequence": entry.accepted, "durable": entry.durable, "tokens": entry.tokens}
        found[name] = {**guest, **pushes}
    return found


def _sources(state: ServerState, now: float) -> dict[str, Any]:
    found = {}
    for name, known in state.accounts.tracker.sources.items():
        meter = state.meters.source(name)
        score = state.scores.sources.get(name)
        found[name] = {
            "documents": meter.documents,
            "tokens": meter.tokens,
            "words_per_second": meter.words.value(now),
            "late_documents": meter.late,
            "published_at": state.config.calendar.iso(known.published),
            "pending": sum(known.pending.values()),
            "nll": None if score is None else score.smooth,
            "lag_p50_s": meter.lags.quantile(0.5),
            "lag_p95_s": meter.lags.quantile(0.95),
            "idle_s": now - known.last_news,
        }
    return found


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
