"""Figures of the laboratory: rounds of L-BFGS, shards, server groups."""

from __future__ import annotations

from typing import Any

from embedding.kernel.registry import NoTraits
from embedding.server.figures.metrics import (
    COUNTER,
    GAUGE,
    SERVER_FIGURES,
    SHOWN,
    Figure,
    Scrape,
    by,
    plain,
)

_STATE = {"state": ("state", "", "state")}

_SHARD_GAUGES = {
    "up": (lambda shard: int(shard["state"] == "up"), "Whether the shard is used"),
    "rows": ("rows", "Rows held", "rows"),
    "bytes": ("bytes", "Memory of rows and their places", "memory"),
    "position": ("position", "Entries of the primary's log carried out", "clock"),
    "behind": ("behind", "Entries of the primary's log to be carried out", "behind"),
}
_SHARD_COUNTERS = {
    "pushes": ("pushes", "Pushes applied", "pushes"),
    "duplicates": ("duplicates", "Pushes that had been taken before"),
    "lost_pushes": ("lost_pushes", "Pushes lost with their node"),
    "repeated_pushes": (
        "repeated_pushes",
        "Pushes whose text is read again and not applied again",
    ),
    "rows_in": ("rows_in", "Rows received in pushes"),
    "rows_out": ("rows_out", "Rows sent in pulls"),
    "bytes_in": ("bytes_in", "Bytes received from nodes"),
    "bytes_out": ("bytes_out", "Bytes sent to nodes"),
    "bytes_led": ("bytes_led", "Bytes between shard and primary"),
}
_RESTARTS = {"restarts": ("restarts", "", "restarts")}

_GROUP_GAUGES = {
    "up": (lambda group: int(group["state"] == "up"), "Whether the group is heard of"),
    "nodes": ("nodes", "Nodes of the group", "nodes"),
    "lag_seconds": (
        "lag_s",
        "Seconds since the group took the changes that it sent last",
        "lag",
    ),
    "waiting_pushes": ("waiting_pushes", "Pushes of its nodes that the leader has not heard of"),
    "waiting_rows": ("waiting_rows", "Rows that moved and that the leader has not heard of"),
    "unconfirmed": ("unconfirmed", "Entries that are in no checkpoint of the leader"),
}
_GROUP_COUNTERS = {
    "entries": ("entries", "Entries applied", "entries"),
    "duplicates": ("duplicates", "Entries that had been applied before"),
    "rows_in": ("rows_in", "Changed rows that the group sent", "rows in"),
    "rows_out": ("rows_out", "Rows that the group fetched", "rows out"),
    "bytes_in": ("bytes_in", "Bytes received from the group", "bytes in"),
    "bytes_out": ("bytes_out", "Bytes sent to the group", "bytes out"),
}
_FOLLOWING = {
    "follows": (lambda of: f"group {of['group']} follows {of['leader']}", "", "this server"),
    "leader_state": ("state", "", "state"),
    "leader_lag_seconds": ("lag_s", "", "lag"),
    "untold_pushes": ("waiting_pushes", "", "pushes to tell"),
    "untold_rows": ("waiting_rows", "", "rows to tell"),
    "leader_reason": ("reason", "", "why"),
}
_LEADER = {
    "leader_up": (
        lambda following: float(following["state"] == "up"),
        "Whether the leader of this server's group is heard of",
    ),
}

_LOSS = {"lbfgs_loss": ("last", "Loss of the last batch at its end, nats a pair", "last loss")}
_BEFORE = {
    "lbfgs_why": ("why", "", "the last one"),
    "lbfgs_by_node": (
        lambda rounds: ", ".join(f"{node} {n:,}" for node, n in sorted(rounds["by_node"].items())),
        "",
        "portions, by node",
    ),
    "lbfgs_first_loss": ("first", "", "first loss"),
}
_ROUND_TOTALS = {
    "lbfgs_rounds": ("rounds", "Rounds of L-BFGS", "rounds"),
    "lbfgs_iterations": ("iterations", "Steps of L-BFGS", "steps"),
    "lbfgs_evaluations": ("evaluations", "Looks at a whole batch"),
    "lbfgs_copies": (
        "copies",
        "Portions given out twice at the end of a batch",
        "portions given out twice",
    ),
    "lbfgs_copies_won": (
        "copies_won",
        "Portions whose copy was answered first",
        "of which the copy came first",
    ),
    "lbfgs_lost_portions": ("lost_portions", "Portions that went with their node"),
    "lbfgs_tokens": ("tokens", "Tokens whose loss was computed, as often as it was"),
}


def _shards(shown: Scrape) -> dict[int, Any] | None:
    return {shard["shard"]: shard for shard in shown.get("shards", ())} or None


def _groups(shown: Scrape) -> dict[str, Any] | None:
    return {group["group"]: group for group in shown.get("groups", ())} or None


@SERVER_FIGURES.register("laboratory", NoTraits())
def laboratory_figures() -> tuple[Figure, ...]:
    """Those that a server's status may have something for."""
    groups, rounds = "Server groups that follow", "Rounds of L-BFGS"
    return (
        *by("shard", SHOWN, _STATE, _shards, "Shards"),
        *by("shard", GAUGE, _SHARD_GAUGES, _shards, "Shards"),
        *by("shard", COUNTER, _SHARD_COUNTERS, _shards, "Shards"),
        *by("shard", SHOWN, _RESTARTS, _shards, "Shards"),
        *by("group", SHOWN, _STATE, _groups, groups),
        *by("group", GAUGE, _GROUP_GAUGES, _groups, groups),
        *by("group", COUNTER, _GROUP_COUNTERS, _groups, groups),
        *plain(SHOWN, _FOLLOWING, "following", "Leader"),
        *plain(GAUGE, _LEADER, "following"),
        *plain(COUNTER, _ROUND_TOTALS, "sync.rounds", rounds),
        *plain(SHOWN, _BEFORE, "sync.rounds", rounds),
        *plain(GAUGE, _LOSS, "sync.rounds", rounds),
        Figure(
            COUNTER,
            "lbfgs_node_portions",
            "Portions that counted, by node",
            "node",
            lambda shown: shown["sync"].get("rounds", {}).get("by_node", {}).items(),
        ),
    )
