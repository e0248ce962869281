"""How far a shard is, and what it holds, as the primary's status shows it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from embedding.server.shards.state import ShardState


def progress(state: ShardState) -> dict[str, Any]:
    """Figures of a shard, JSON-safe (under its lock)."""
    meters = state.meters
    rows = state.next_slot - len(state.free) + state.tables.buckets
    return {
        "position": state.position,
        "durable": state.durable_position,
        "rows": rows,
        "bytes": state.tables.nbytes + state.map.nbytes,
        "pushes": meters.pushes,
        "duplicates": meters.duplicates,
        "lost_pushes": state.lost_pushes,
        "repeated_pushes": state.repeated_pushes,
        "rows_in": meters.rows_in,
        "rows_out": meters.rows_out,
        "rows_spared": meters.rows_spared,
        "bytes_deltas": meters.delta_bytes,
        "bytes_in": meters.bytes_in,
        "bytes_out": meters.bytes_out,
        "bytes_led": state.led.bytes_in + state.led.bytes_out,
        "moved_rows": state.moved_rows,
        "waits_for": None if state.waits_for is None else list(state.waits_for),
        "stuck": state.changing.stuck,
        "pause_ms": meters.checkpoint_pause_s * 1000,
        "uptime_s": time.monotonic() - state.started,
    }
