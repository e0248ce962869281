"""The share of each node in `yeoron status`."""

from __future__ import annotations

from rich.console import Console

from embedding.commands.status_tables import sync_table


def shown(shares: list[float]) -> str:
    sync = {
        "policy": "bsp",
        "running": "bsp",
        "push_every": 1,
        "pull_every": 1,
        "variation": None,
        "dropped_pushes": 0,
        "switches": [],
    }
    nodes = {f"n{i}": {"clock": 7, "block_share": share} for i, share in enumerate(shares)}
    console = Console(width=120)
    with console.capture() as captured:
        console.print(sync_table({"sync": sync, "nodes": nodes}))
    return captured.get()


def test_unlike_blocks_are_shown_and_alike_ones_are_not() -> None:
    assert "0.13 … 1.29" in shown([1.29, 0.13, 1.0])
    assert "block sizes" not in shown([1.0, 1.0])
    assert "block sizes" not in shown([])
