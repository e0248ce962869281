"""What looks like personal data on boards and is none: the innocent half of `grammar_board`.

In a line `{3}` is a number of three digits without a leading zero, `{p}` a price with commas,
`{y}` a year, `{d}` a date, `{t}` a time of day, `{k}` 1 to 12 and `{w}` 1 to 99.
"""

from __future__ import annotations

import random
import re

from phrases import phrases

DATA = phrases("innocent_board")

LINES = "\n".join(DATA["LINES"])
TEMPLATES = tuple(line for line in LINES.splitlines() if line)
SLOT = re.compile(r"\{(\w+)\}")


def _fill(rng: random.Random, slot: str) -> str:
    match slot:
        case "p":
            return f"{rng.randint(1, 9_999) * rng.choice((100, 1_000, 10_000, 1)) + 1_000:,}"
        case "y":
            return str(rng.randint(1985, 2025))
        case "m":
            return f"{rng.randint(1, 12):02d}"
        case "k":
            return str(rng.randint(1, 12))
        case "w":
            return str(rng.randint(1, 99))
        case "t":
            return f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}"
        case "ip":
            return ".".join(str(rng.randint(1, 254)) for _ in range(4))
        case "d" | "d4":
            year, month, day = rng.randint(2010, 2025), rng.randint(1, 12), rng.randint(1, 28)
            mark = rng.choice((".", "-", "/", ". ")) if slot == "d" else ""
            return mark.join((str(year), f"{month:02d}", f"{day:02d}"))
        case _:
            return str(rng.randint(10 ** (int(slot) - 1), 10 ** int(slot) - 1))


def text(rng: random.Random, opening: str, closing: str) -> str:
    """One innocent text between an opening and a closing."""
    line = SLOT.sub(lambda m: _fill(rng, m[1]), rng.choice(TEMPLATES))
    return opening + line + closing
