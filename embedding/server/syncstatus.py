"""What the status says of how nodes are kept in step."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from embedding.server.state import ServerState
from embedding.server.words.accounting import iso


def sync_status(state: ServerState, now: float) -> dict[str, Any]:
    """JSON-safe (docs/concepts/synchronisation.md).

    policy       as it was asked for; running: the one that rules, which `auto` chooses
    pooled       nodes whose deltas of the same rows are added up
    push_every, pull_every   blocks of a node
    variation    coefficient of variation of the sources' token rates, null while unknown
    rates        tokens a second of each source at each node, waiting for others left out
    dropped_pushes, dropped_tokens   what came too late (backup)
    rounds       what the rounds of L-BFGS did (sandblaster)
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
        "rounds": asdict(state.rounds.figures),
        "switched": machine.switched,
        "switches": [
            {
                "at": iso(wall - (now - switch.at)),
                "from": switch.before,
                "to": switch.after,
                "reason": switch.reason,
            }
            for switch in machine.switches
        ],
        "settings": machine.config.model_dump(mode="json"),
    }
