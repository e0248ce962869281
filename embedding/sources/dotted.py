"""Dotted names into JSON values: `data.items`, `user.name`, `pages.0.url`."""

from __future__ import annotations

from typing import Any


def dotted(value: Any, name: str | None) -> Any:
    """What `name` points at inside `value`; None when it points at nothing; `` is `value`."""
    if name is None:
        return None
    for part in name.split(".") if name else ():
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def dotted_text(value: Any, name: str | None) -> str:
    """`dotted` as text; empty for anything that is no string or number."""
    found = dotted(value, name)
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        return ""
    return str(found)
