"""JSON that can be sent on: no NaN, no infinity, no half of a surrogate pair.

Python's reader takes all three, and whoever shows them to others as JSON then fails.
"""

from __future__ import annotations

import json
import math
from typing import Any


def loads(data: bytes) -> Any:
    """The value of JSON in UTF-8; ValueError for anything else, also when it is nested too deep."""
    text = data.decode("utf-8")
    try:
        value = json.loads(text, parse_constant=_constant, parse_float=_float)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if "\\u" in text:
        # Only an escape can smuggle half a surrogate pair in: such a text cannot be encoded again.
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def _constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large")
    return value
