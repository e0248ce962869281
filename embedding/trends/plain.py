"""Records as JSON has them, and texts as XML can hold them."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, cast, get_args, get_origin, get_type_hints

_DIGITS = 6
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_plain(value: Any) -> Any:
    """Records to dicts, tuples to lists, numbers rounded to six digits."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value) if "apart" not in f.metadata]
        return {name: to_plain(getattr(value, name)) for name in fields}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, float):
        return round(value, _DIGITS) + 0.0 if math.isfinite(value) else None
    return value


def from_plain(kind: Any, value: Any) -> Any:
    """Inverse of `to_plain`: a record of this kind, or what a field of this type holds.

    Raises KeyError for a field that is unknown, TypeError for one that is missing.
    """
    if dataclasses.is_dataclass(kind):
        make = cast("Any", kind)
        types = _types(make)
        return make(**{name: from_plain(types[name], item) for name, item in value.items()})
    inner = get_args(kind)
    if value is None or not inner:
        return value
    if isinstance(value, Mapping) and get_origin(kind) is Mapping:
        return {name: from_plain(inner[1], item) for name, item in value.items()}
    if isinstance(value, list):
        return tuple(from_plain(inner[0], item) for item in value)
    return from_plain(inner[0], value)


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def in_xml(text: str) -> str:
    """A text with the replacement character for what XML cannot hold."""
    return _NO_XML.sub("\ufffd", text)
