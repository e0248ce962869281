"""The share of each node in `yeoron status`, and the order of its sources."""

from __future__ import annotations

from rich.console import Console

from embedding.commands.status_tables import figure_table, sync_table


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


def test_sources_are_in_order_of_their_names_whether_a_node_reads_them_or_not() -> None:
    never = {"published_at": None, "lag_p50_s": None, "lag_p95_s": None}
    read = {"node": "n0", "tokens_per_second": 3.0}
    counts = {"words_per_second": 1.0, "documents": 2, "tokens": 3}
    sources = {name: {**counts, **never} for name in ("c", "a", "b")}
    table = figure_table("Sources", {"sources": sources, "reading": {"sources": {"b": read}}})
    assert table is not None
    names, nodes = (list(column.cells) for column in table.columns[:2])
    assert (names, nodes) == (["a", "b", "c"], ["–", "n0", "–"])
