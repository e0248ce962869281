"""How many examples a generated test looks at: what it names, times one scale for all of them."""

from __future__ import annotations

import os

SCALE = float(os.environ.get("EXAMPLES", "0.5"))
"""`make explore` looks at all that a test names, `make test` at half of them, always the same."""
USUAL = 100
"""Examples of a test that names no number, before the scale."""


def examples(number: int = USUAL) -> int:
    """So many examples in `make test`, more or fewer where EXAMPLES says so; one at least."""
    return max(1, round(number * SCALE))
