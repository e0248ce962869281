"""How nodes are kept in step, as `yeoron status` shows it."""

from __future__ import annotations

from typing import Any

from rich.table import Table


def sync_table(server: dict[str, Any]) -> Table | None:
    """The ruling policy and what it did, from the server's status; None when it does not say."""
    sync = server.get("sync")
    if not sync:
        return None
    table = Table("synchronisation", "", title="Policy")
    chosen = sync["policy"]
    if sync["running"] != chosen:
        chosen += f" (now {sync['running']})"
    table.add_row("policy", chosen)
    clocks = sorted((each["clock"], name) for name, each in server.get("nodes", {}).items())
    if clocks:
        (first, slow), (last, fast) = clocks[0], clocks[-1]
        table.add_row("clocks", f"{slow} {first:,} … {fast} {last:,}")
    shares = sorted(each.get("block_share", 1.0) for each in server.get("nodes", {}).values())
    if shares and shares[0] < shares[-1]:
        table.add_row("block sizes, by speed", f"{shares[0]:.2f} … {shares[-1]:.2f} of the setting")
    table.add_row("a push, a pull every", f"{sync['push_every']}, {sync['pull_every']} blocks")
    if sync["variation"] is not None:
        table.add_row("variation of the sources' rates", f"{sync['variation']:.2f}")
    if sync["dropped_pushes"]:
        dropped = f"{sync['dropped_pushes']:,} pushes, {sync['dropped_tokens']:,} tokens"
        table.add_row("too late", dropped)
    rounds = sync.get("rounds", {})
    if rounds.get("rounds"):
        table.add_row(
            "rounds of L-BFGS",
            f"{rounds['rounds']:,} with {rounds['iterations']:,} steps; {rounds['why']}",
        )
        if rounds["last"] is not None:
            table.add_row("loss of the last batch", f"{rounds['first']:.3f} → {rounds['last']:.3f}")
        copies = f"{rounds['copies']:,}, of which {rounds['copies_won']:,} came first"
        table.add_row("portions, by node", _by_node(rounds["by_node"]))
        table.add_row("portions given out twice", copies)
    for switch in sync["switches"][-3:]:
        at = str(switch["at"])[11:19]
        table.add_row(f"{at} {switch['from']} → {switch['to']}", switch["reason"])
    return table


def _by_node(portions: dict[str, int]) -> str:
    return ", ".join(f"{node} {n:,}" for node, n in sorted(portions.items()))
