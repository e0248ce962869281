"""The product does not grow: what a change adds, it pays for."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST = 79_169
"""Lines of `embedding/` since mechanisms of papers, with server groups and shards, left
for the laboratory (docs/adr/0043-laboratory.md). A change may add where it is needed, and removes
as much."""


def lines_by_room() -> Counter[str]:
    """Lines of each package of `embedding/`; its modules of no package are one room."""
    rooms: Counter[str] = Counter()
    for path in (ROOT / "embedding").rglob("*.py"):
        inside = path.relative_to(ROOT / "embedding").parts
        room = inside[0] if len(inside) > 1 else "modules of no room"
        rooms[room] += len(path.read_text(encoding="utf-8").splitlines())
    return rooms


def test_the_product_does_not_grow() -> None:
    rooms = lines_by_room()
    table = "\n".join(f"{lines:8,}  {room}" for room, lines in rooms.most_common())
    report = f"lines of embedding/ by room\n{table}\n{rooms.total():8,}  in all, {MOST:,} at most"
    sys.stdout.write(f"\n{report}\n")
    assert rooms.total() <= MOST, report
