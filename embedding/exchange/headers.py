"""Fields of a message's header, checked as they are read: RefusedError says what is accepted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from embedding.kernel.errors import RefusedError


class Accepted(NamedTuple):
    """What a field of a row may be: in words, and whether a value is that."""

    says: str
    fits: Callable[[Any], bool]


def _between(least: int, most: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and least <= value <= most


def _finite(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 1e12


STRING = Accepted("a string", lambda value: isinstance(value, str))
COUNT = Accepted("whole and not negative", _between(0, 2**62))
POSITIVE_COUNT = Accepted("whole and at least 1", _between(1, 2**40))
INTEGER = Accepted("whole, from -2^40 to 2^40", _between(-(2**40), 2**40))
FINITE = Accepted("a finite number", _finite)
FINITES = Accepted(
    "a list of finite numbers", lambda value: isinstance(value, list) and all(map(_finite, value))
)


def rows(
    found: object, name: str, fields: Mapping[str, Accepted], *, most: int, of: str = "push"
) -> list[list[Any]]:
    """The rows of a table in a header, each a list with these fields.

    name  of the table, and `of` the message, for the refusal; most  rows that it may have
    """
    if not isinstance(found, list) or len(found) > most:
        raise RefusedError(f"{of}: `{name}` must be a list of at most {most:,} rows.")
    for row in found:
        if not isinstance(row, list) or len(row) != len(fields):
            raise RefusedError(f"{of}: a row of `{name}` must be [{', '.join(fields)}].")
        for (field, accepted), value in zip(fields.items(), row, strict=True):
            if not accepted.fits(value):
                raise RefusedError(f"{of}: {field} in a row of `{name}` must be {accepted.says}.")
    return found


def position(at: object) -> tuple[int, int] | None:
    """An incarnation of the primary and a position in its log, where a server has shards."""
    if at is None:
        return None
    if not (isinstance(at, list) and len(at) == 2 and all(type(n) is int for n in at)):
        raise RefusedError("message: 'at' must be two whole numbers.")
    return at[0], at[1]


def whole(
    header: Mapping[str, Any],
    name: str,
    *,
    least: int = 0,
    most: int = 2**62 - 1,
    of: str = "message",
) -> int:
    """The whole number `name` of a header, from `least` to `most`; `of` names the message."""
    value = header.get(name)
    if type(value) is not int or not least <= value <= most:
        raise RefusedError(f"{of}: {name!r} must be a whole number of at least {least}.")
    return value


def positive(value: object, name: str, *, most: float = 1e12, of: str = "message") -> float:
    """A finite number above 0, at most `most`."""
    if type(value) not in (int, float) or not 0 < value <= most:  # type: ignore[operator]
        raise RefusedError(f"{of}: {name!r} must be a number above 0.")
    return float(value)  # type: ignore[arg-type]


def string(header: Mapping[str, Any], name: str, most: int = 4096) -> str:
    """The string `name` of a header, of at most `most` characters."""
    value = header.get(name, "")
    if not isinstance(value, str) or len(value) > most:
        raise RefusedError(f"message: {name!r} must be a string of at most {most:,} characters.")
    return value
