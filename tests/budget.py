"""What each room may have at most: a table that falls, and rises only with a reason.

tests/budget.txt has a line for each room: its name, how many lines of Python it may have, and why
it last grew. One more line counts the names of `embedding` that tests import beyond
tests/seams.txt.

python tests/budget.py           lower every line to what is there now
python tests/budget.py --show    print what is there beside what may be
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from seams import names_beyond

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "tests" / "budget.txt"
NAMES = "names beyond tests/seams.txt"
HEAD = """\
# Lines of Python of each room at most (tests/architecture/test_lines.py), and why a room last grew.
# A change that makes a room larger raises its line here and says why behind it.
# `python tests/budget.py` lowers all lines to what is there.
"""


@dataclass(frozen=True)
class Line:
    """One line of the table."""

    most: int
    reason: str = ""

    def written(self, name: str) -> str:
        return f"{name:<32}{self.most:>8,}  {self.reason}".rstrip()


def lines_by_room() -> Counter[str]:
    """Lines of each package of `embedding/`, of each neighbour and of plugins.

    The modules of `embedding/` that are in no package are one room, `embedding`.
    """
    rooms: Counter[str] = Counter()
    for top in ("embedding", "neighbours", "plugins"):
        for path in (ROOT / top).rglob("*.py"):
            inside = path.relative_to(ROOT / top).parts
            alone = top == "plugins" or len(inside) == 1
            rooms[top if alone else f"{top}/{inside[0]}"] += len(
                path.read_text(encoding="utf-8").splitlines()
            )
    return rooms


def counted() -> Counter[str]:
    """All that the table has a line for, as it is now."""
    return lines_by_room() + Counter({NAMES: len(names_beyond())})


def table() -> dict[str, Line]:
    """Room → its line of the table.

    ValueError: a line has no number behind the name of its room.
    """
    found = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, behind = line.partition("  ")
            most, _, reason = behind.strip().partition("  ")
            found[name] = Line(int(most.replace(",", "")), reason)
    return found


def write(lines: dict[str, Line]) -> None:
    """Write the table, rooms by their names."""
    rows = "".join(f"{lines[name].written(name)}\n" for name in sorted(lines))
    TABLE.write_text(HEAD + rows, encoding="utf-8")


def lower() -> None:
    """Lower each line to what is there; a room that is gone has none, a new one gets one."""
    known, now = table() if TABLE.exists() else {}, counted()
    write(
        {
            name: Line(min(n, known[name].most), known[name].reason) if name in known else Line(n)
            for name, n in now.items()
        }
    )


def report() -> str:
    """What there is, beside what may be."""
    lines = table()
    rows = (
        f"{n:8,}  of {lines.get(name, Line(0)).most:8,}  {name}"
        for name, n in counted().most_common()
    )
    return "\n".join(["what there is, of how much (tests/budget.txt)", *rows])


if __name__ == "__main__":
    if sys.argv[1:] == ["--show"]:
        sys.stdout.write(f"{report()}\n")
    else:
        lower()
