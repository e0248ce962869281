"""How many examples a generated test looks at: what it names, times one scale for all of them."""

from __future__ import annotations

import os

SCALE = float(os.environ.get("EXAMPLES", "0.125"))
"""`make explore` and `make test-all` look at all that a test names, `make test` at an eighth.

The last two look at the same ones each time.
"""
LEAST = 6
"""Examples of a test that names more, whatever the scale."""
USUAL = 100
"""Examples of a test that names no number, before the scale."""


def examples(number: int = USUAL) -> int:
    """So many examples at a scale of 1, which `make explore` has."""
    return max(min(number, LEAST), round(number * SCALE))
