"""How the date of a text is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

DateOrigin = Literal["metadata", "text", "listing", "guess", "lastmod", "fetched", "none"]
"""Where a date comes from, the most trusted first: what the page says to machines or to readers,
the listing that named it, what looks like a date in its text or address, a sitemap's lastmod, the
fetch where the source's `undated` says so; or nobody knows it."""
ORIGINS: tuple[DateOrigin, ...] = get_args(DateOrigin)

_DOUBTFUL = ("guess", "lastmod", "fetched")


def doubtful(dated: Mapping[str, Any]) -> dict[str, Any]:
    """Counts by reason (`reasons.py`) of dates that neither a page nor its listing gave.

    dated  by origin
    """
    return {f"date_{origin}": dated[origin] for origin in _DOUBTFUL if origin in dated}


@dataclass(frozen=True)
class Publication:
    """When a text was published (UTC; None: nobody knows), and how that is known."""

    at: datetime | None = None
    origin: DateOrigin = "none"
