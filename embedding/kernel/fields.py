"""What a field of a record may be, said beside its type: `ids: Annotated[IntArray, Column(…)]`.

A field without a note is what its type says: `int` whole and not negative, `float` finite, `str` of
at most 4,096 characters. `exchange/codec.py` writes, reads and checks records by this.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """An array.

    kinds     accepted types, as `f4 f2`; an array of another is converted to the only one there is
    shape     a name or a number for each dimension: equal names of a record are equally long
    least, most  bounds of its values; above: all are greater than this
    distinct  no value occurs twice
    finite    neither NaN nor infinite, nor so large that training has diverged
    adds_up_to  name of a dimension: the values are its lengths
    at_most   name of a column that is nowhere smaller
    optional  None is accepted
    whole     float64 of which many are whole: these travel as whole numbers, in fewer bytes
    because   what a refusal of its values says besides
    """

    kinds: str
    shape: tuple[str | int, ...]
    least: float | None = None
    most: float | None = None
    above: float | None = None
    distinct: bool = False
    finite: bool = False
    adds_up_to: str = ""
    at_most: str = ""
    optional: bool = False
    whole: bool = False
    because: str = ""


@dataclass(frozen=True)
class WordColumn:
    """Strings, `length` of them by name, as an Arrow array; `listed`: as a list."""

    length: str
    listed: bool = False


@dataclass(frozen=True)
class WholeNumber:
    """A whole number within bounds."""

    least: int = 0
    most: int = 2**62 - 1


@dataclass(frozen=True)
class RealNumber:
    """A finite number within bounds; above: greater than this."""

    least: float = -1e12
    most: float = 1e12
    above: float | None = None


@dataclass(frozen=True)
class String:
    """A string of `least` to `most` characters."""

    most: int = 4096
    least: int = 0


@dataclass(frozen=True)
class Entries:
    """`least` to `most` entries of a tuple."""

    most: int = 100_000
    least: int = 0


@dataclass(frozen=True)
class NotSent:
    """A field of one process alone; who reads a message gets its default."""


MOMENT = WholeNumber(-(2**40), 2**40)
"""A time in Unix seconds."""
IDS = Column("i8", ("n",))
"""Row ids or counts, int64 [n]."""
DISTINCT_IDS = Column("i8", ("n",), distinct=True)
