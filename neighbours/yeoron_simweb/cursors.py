"""Cursors over a growing list: they name a position from its old end, so that they stay valid."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fastapi import HTTPException

from yeoron_simweb.library import LibraryItem


def newest_before(
    items: Sequence[LibraryItem], cursor: str, size: int
) -> tuple[list[LibraryItem], str | None]:
    """The `size` newest items before a cursor (empty: from the newest on), newest first.

    Returns them with the cursor of what follows, None at the end; 400 for a foreign cursor.
    """
    end = len(items)
    if cursor:
        if not re.fullmatch(r"c[0-9]{1,12}", cursor):
            raise HTTPException(400, "cursor: not one that this endpoint gave out")
        end = min(int(cursor[1:]), end)
    start = max(end - size, 0)
    return list(reversed(items[start:end])), f"c{start}" if start else None
