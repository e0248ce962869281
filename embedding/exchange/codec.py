"""Records as messages, and back: one codec for every kind.

A field says what it may be (`kernel/fields.py`). What is no array goes into the header, a row a
record; the last cell of a row has the lengths of its arrays by the names of their dimensions, and
the types of those that may be of several. All arrays of one type, of all records of a field, lie
behind each other in one part: `usage.f4`; those of a table in one of that table: `in.f2`.

`from_message` checks form: names, types, lengths, bounds of single numbers. `check` looks at what
arrays hold, once, where it is about to be used. What depends on the server's state (ids that were
given, the clock, the sequence) is checked by the server.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import pyarrow as pa

from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.wire import DTYPES, Array, Message, kind_of, text_array
from embedding.kernel.errors import RefusedError
from embedding.kernel.fields import (
    Column,
    Entries,
    NotSent,
    RealNumber,
    String,
    WholeNumber,
    WordColumn,
)
from embedding.kernel.records import FloatArray, HalfArray, IntArray, Table

R = TypeVar("R")
MAX_SQUARED_NORM = 1e12
"""Squared norm of an array above which training has diverged; NaN and inf exceed it too."""
_BESIDE = 256
"""Characters from which a string travels beside the header, whose size is limited."""


def to_message(record: Any, **header: Any) -> Message:
    """A record as a message; arrays are not copied. `header`: what it has besides."""
    cls = type(record)
    if op := getattr(cls, "op", None):
        header = {"op": op, **header}
    writer = _Writer(str(header.get("op", header.get("status", ""))))
    header |= _plan(cls).named(record, writer)
    return writer.message(header)


def from_message(cls: type[R], message: Message) -> R:
    """The record in a message; RefusedError says what is wrong with its form."""
    reader = _Reader(message)
    record: R = _plan(cls).of_header(message.header, reader)
    reader.end()
    return record


def with_record(message: Message, name: str, record: Any) -> Message:
    """The message with one more record in its header, under `name`."""
    writer = _Writer(message.kind)
    header = {**message.header, name: _plan(type(record)).write(record, f"{name}.", writer)}
    more = writer.message({})
    return Message(header, {**message.arrays, **more.arrays}, {**message.texts, **more.texts})


def record_of(cls: type[R], message: Message, name: str) -> R | None:
    """Inverse of `with_record`; None where the message has none."""
    if name not in message.header:
        return None
    reader = _Reader(message)
    record: R = _plan(cls).read(message.header[name], name, reader)
    reader.end()
    return record


def check(record: Any, of: str, **sizes: int) -> None:
    """RefusedError unless all arrays of a record hold what its fields say.

    of     what the record is, for the refusal; sizes  of dimensions that are known, as `dim`
    """
    _plan(type(record)).check(record, of, "", sizes)


def bounded(values: FloatArray | HalfArray) -> bool:
    """Whether all are finite and none absurdly large.

    One pass of a dot product finds NaN, infinity and divergence without a temporary.
    """
    flat = (widen(values) if values.dtype == np.float16 else values).reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        norm = float(np.dot(flat, flat))
    return math.isfinite(norm) and norm <= MAX_SQUARED_NORM


def distinct(ids: IntArray) -> bool:
    """Whether no id occurs twice: quick for sorted ids, or two sorted runs of them."""
    if len(ids) < 2 or bool((np.diff(ids) > 0).all()):
        return True
    return bool((np.diff(np.sort(ids, kind="stable")) > 0).all())


@dataclass
class _Writer:
    """Gathers the arrays of a message; `of` names it in a refusal."""

    of: str
    arrays: dict[str, list[Array]] = field(default_factory=dict)
    texts: dict[str, list[pa.Array]] = field(default_factory=dict)

    def add(self, part: str, column: Column, values: Array, sizes: dict[str, int]) -> str:
        """Put an array behind those of its type; the type. Notes the lengths of its dimensions."""
        values = _sent_as(column, np.asarray(values), f"{self.of}: {part}")
        _measure(column, values, sizes, f"{self.of}: {part}")
        kind = kind_of(values)
        if values.size:
            self.arrays.setdefault(part + kind, []).append(values.reshape(-1))
        return kind

    def message(self, header: dict[str, Any]) -> Message:
        return Message(
            header,
            {n: np.concatenate(each) if each[1:] else each[0] for n, each in self.arrays.items()},
            {n: pa.concat_arrays(each) if each[1:] else each[0] for n, each in self.texts.items()},
        )


def _sent_as(column: Column, values: Array, what: str) -> Array:
    """In a type that travels; RefusedError where there is none."""
    kind = kind_of(values)
    if column.whole and kind == "f8":
        whole = values.astype(np.int64)
        return whole if np.array_equal(whole, values) else values
    kinds = column.kinds.split()
    if kind in kinds:
        return values
    if kinds == ["f2"] and kind == "f4":
        largest = np.finfo(np.float16).max
        return narrow(np.clip(values, -largest, largest))
    if kinds[0] in ("i8", "i4") and (values.dtype.kind in "iu" or not values.size):
        return values.astype(np.int64 if kinds[0] == "i8" else np.int32)
    raise _not_of(column, values, what)


def _not_of(column: Column, values: Array, what: str) -> RefusedError:
    return RefusedError(
        f"{what} is {values.dtype} with {values.ndim} dimensions; "
        f"{column.kinds.replace(' ', ' or ')} with {len(column.shape)} is accepted.",
        kind="shape",
    )


def _measure(column: Column, values: Array, sizes: dict[str, int], what: str) -> None:
    """Note how long its dimensions are; RefusedError where others of the same name are not."""
    if values.ndim != len(column.shape):
        raise _not_of(column, values, what)
    for name, length in zip(column.shape, values.shape, strict=True):
        known = name if isinstance(name, int) else sizes.setdefault(name, length)
        if known != length:
            raise RefusedError(
                f"{what} has the shape {values.shape}; {known} is accepted for {name}: columns "
                "of one record must not differ in length.",
                kind="shape",
            )


class _Reader:
    """Takes the arrays of a message one after the other."""

    def __init__(self, message: Message) -> None:
        self.of = message.kind
        self._message = message
        self._taken: dict[str, int] = {}

    def take(self, part: str, kind: str, shape: tuple[int, ...]) -> Array:
        n = math.prod(shape)
        if not n:
            return np.empty(shape, DTYPES[kind])
        flat = self._message.array(part + kind, kind, 1)
        return flat[self._next(part + kind, n, len(flat))].reshape(shape)

    def words(self, part: str, n: int) -> pa.Array:
        if not n:
            return pa.array([], pa.string())
        words = self._message.text(part)
        return words[self._next(part, n, len(words))]

    def _next(self, part: str, n: int, length: int) -> slice:
        start = self._taken.get(part, 0)
        self._taken[part] = end = start + n
        if end > length:
            raise RefusedError(f"{self.of}: part {part!r} is shorter than its records say.")
        return slice(start, end)

    def end(self) -> None:
        """RefusedError where a part has more than was taken of it."""
        for part, taken in self._taken.items():
            whole = self._message.texts.get(part, self._message.arrays.get(part))
            if whole is not None and len(whole) != taken:
                raise RefusedError(f"{self.of}: part {part!r} is longer than its records say.")


class _Scalar:
    """One number, string or name of a table, or a JSON object."""

    def __init__(self, kind: type, note: Any) -> None:
        self._kind = kind
        self._types = (int, float) if kind is float else (kind,)
        self._note: Any = note or {int: WholeNumber(), float: RealNumber(), str: String()}.get(kind)
        self._beside = isinstance(self._note, String) and self._note.most > _BESIDE

    def write(self, value: Any, path: str, writer: _Writer) -> Any:
        if self._beside and type(value) is str and len(value) > _BESIDE:
            writer.texts.setdefault(path[:-1], []).append(pa.array([value], pa.string()))
            return None
        return value

    def read(self, cell: Any, path: str, reader: _Reader) -> Any:
        if self._beside and cell is None:
            cell = reader.words(path, 1)[0].as_py()
        if issubclass(self._kind, Table):
            if not isinstance(cell, str) or cell not in _TABLES:
                raise RefusedError(f"{reader.of}: {path} must be {', '.join(Table)}.")
            return _TABLES[cell]
        if type(cell) not in self._types or not self._fits(cell):
            raise RefusedError(f"{reader.of}: {path} must be {self._says()}.")
        return float(cell) if self._kind is float else cell

    def _fits(self, cell: Any) -> bool:
        note = self._note
        if note is None:
            return True
        size = len(cell) if self._kind is str else cell
        above = getattr(note, "above", None)
        return bool(note.least <= size <= note.most) and (above is None or size > above)

    def _says(self) -> str:
        note = self._note
        if note is None:
            return "true or false" if self._kind is bool else "an object"
        if self._kind is str:
            return f"a string of {note.least} to {note.most:,} characters"
        if self._kind is int:
            return f"a whole number from {note.least:,} to {note.most:,}"
        above = "" if note.above is None else f", above {note.above:g}"
        return f"a finite number from {note.least:g} to {note.most:g}{above}"


_TABLES: dict[str, Table] = {str(table): table for table in Table}


@dataclass(frozen=True)
class _Many:
    """A tuple of records or numbers."""

    each: Any
    note: Entries

    def write(self, values: Any, path: str, writer: _Writer) -> Any:
        return [self.each.write(value, path, writer) for value in values]

    def read(self, cell: Any, path: str, reader: _Reader) -> Any:
        if not isinstance(cell, list) or not self.note.least <= len(cell) <= self.note.most:
            raise RefusedError(
                f"{reader.of}: {path} must be a list of {self.note.least} to {self.note.most:,}."
            )
        return tuple([self.each.read(one, path, reader) for one in cell])


@dataclass(frozen=True)
class _Fixed:
    """A tuple of so many."""

    parts: tuple[Any, ...]

    def write(self, values: Any, path: str, writer: _Writer) -> Any:
        return [part.write(v, path, writer) for part, v in zip(self.parts, values, strict=True)]

    def read(self, cell: Any, path: str, reader: _Reader) -> Any:
        if not isinstance(cell, list) or len(cell) != len(self.parts):
            raise RefusedError(f"{reader.of}: {path} must be a list of {len(self.parts)}.")
        return tuple(p.read(one, path, reader) for p, one in zip(self.parts, cell, strict=True))


@dataclass(frozen=True)
class _Maybe:
    """A record or a number, or none."""

    some: Any

    def write(self, value: Any, path: str, writer: _Writer) -> Any:
        return None if value is None else self.some.write(value, path, writer)

    def read(self, cell: Any, path: str, reader: _Reader) -> Any:
        return None if cell is None else self.some.read(cell, path, reader)


@dataclass(frozen=True)
class _ByTable:
    """An array for each of some tables."""

    column: Column

    def write(self, values: Mapping[Table, Array], path: str, writer: _Writer) -> Any:
        rows = []
        for table, array in values.items():
            sizes: dict[str, int] = {}
            kind = writer.add(f"{path}{table}.", self.column, array, sizes)
            rows.append([str(table), *sizes.values(), kind])
        return rows

    def read(self, cell: Any, path: str, reader: _Reader) -> dict[Table, Array]:
        columns: dict[Table, Array] = {}
        for row in cell if isinstance(cell, list) else [None]:
            if not isinstance(row, list) or len(row) != len(self.column.shape) + 2:
                raise RefusedError(f"{reader.of}: {path} must be rows of table, lengths, type.")
            table, *shape, kind = row
            known = isinstance(table, str) and table in _TABLES and table not in columns
            if not known or kind not in self.column.kinds.split():
                raise RefusedError(
                    f"{reader.of}: {path} must name different tables and types {self.column.kinds}."
                )
            lengths = _shape(shape, path, reader)
            columns[_TABLES[table]] = reader.take(f"{path}.{table}.", kind, lengths)
        return columns


def _shape(sizes: list[Any], path: str, reader: _Reader) -> tuple[int, ...]:
    for size in sizes:
        if type(size) is not int or not 0 <= size < 2**40:
            raise RefusedError(f"{reader.of}: the lengths of {path} must be whole numbers.")
    return tuple(sizes)


class _Plan:
    """How the records of one class travel."""

    def __init__(self, cls: type) -> None:
        self._cls = cls
        self._cells: list[tuple[str, Any]] = []
        self._columns: list[tuple[str, Column]] = []
        self._words: list[tuple[str, WordColumn]] = []
        self._defaults: dict[str, Any] = {}
        self._by_table = ""
        hints = get_type_hints(cls, include_extras=True)
        for each in fields(cls):
            note, hint = _noted(hints[each.name])
            if isinstance(note, NotSent):
                continue
            if each.default is not MISSING:
                self._defaults[each.name] = each.default
            elif each.default_factory is not MISSING:
                self._defaults[each.name] = MISSING
            if isinstance(note, WordColumn):
                self._words.append((each.name, note))
            elif isinstance(note, Column) and get_origin(hint) is not Mapping:
                self._columns.append((each.name, note))
            else:
                self._cells.append((each.name, _spec(hint, note)))
                if hint is Table:
                    self._by_table = each.name
        named = [name for _, column in self._columns for name in column.shape]
        named += [words.length for _, words in self._words]
        self._dims = tuple(dict.fromkeys(name for name in named if isinstance(name, str)))
        self._several = [
            (name, [*c.kinds.split(), *(["i8"] if c.whole else []), *([""] if c.optional else [])])
            for name, c in self._columns
            if " " in c.kinds or c.optional or c.whole
        ]
        self._sized = bool(self._columns or self._words)
        self._fault = getattr(cls, "fault", None)

    def named(self, record: Any, writer: _Writer) -> dict[str, Any]:
        """What a header says of a record of its own; nothing of what is as by default."""
        cells: dict[str, Any] = {}
        for name, spec in self._cells:
            value, default = getattr(record, name), self._defaults.get(name, MISSING)
            if value is default or (not value and not default):
                continue
            cells[name] = spec.write(value, f"{name}.", writer)
        if self._sized:
            cells["sizes"] = self._sizes(record, "", writer)
        return cells

    def of_header(self, header: Mapping[str, Any], reader: _Reader) -> Any:
        values: dict[str, Any] = {}
        for name, spec in self._cells:
            if name in header:
                values[name] = spec.read(header[name], name, reader)
            elif name not in self._defaults:
                raise RefusedError(f"{reader.of}: {name} is missing.")
        if self._sized:
            self._arrays(header.get("sizes"), "", reader, values)
        return self._cls(**values)

    def write(self, record: Any, path: str, writer: _Writer) -> list[Any]:
        cells = [
            spec.write(getattr(record, name), f"{path}{name}.", writer)
            for name, spec in self._cells
        ]
        if self._sized:
            if self._by_table:
                path = f"{getattr(record, self._by_table)}."
            cells.append(self._sizes(record, path, writer))
        return cells

    def read(self, row: Any, path: str, reader: _Reader) -> Any:
        if not isinstance(row, list) or len(row) != len(self._cells) + self._sized:
            names = [*(name for name, _ in self._cells), *(["lengths"] if self._sized else [])]
            raise RefusedError(f"{reader.of}: a row of {path} must be [{', '.join(names)}].")
        values = {
            name: spec.read(cell, f"{path}.{name}", reader)
            for (name, spec), cell in zip(self._cells, row, strict=False)
        }
        if self._sized:
            below = values[self._by_table] if self._by_table else path
            self._arrays(row[-1], f"{below}.", reader, values)
        return self._cls(**values)

    def check(self, record: Any, of: str, path: str, known: Mapping[str, int]) -> None:
        sizes = dict(known)
        for name, column in self._columns:
            values = getattr(record, name)
            if values is not None:
                _measure(column, values, sizes, f"{of}: {path}{name}")
        for name, column in self._columns:
            values = getattr(record, name)
            if values is not None:
                least = getattr(record, column.at_most) if column.at_most else None
                _check(column, values, sizes, least, f"{of}: {path}{name}")
        if self._fault is not None and (why := self._fault(record)):
            raise RefusedError(f"{of}: {path[:-1] or type(record).__name__}: {why}.")
        for name, spec in self._cells:
            inner = getattr(spec, "each", getattr(spec, "some", spec))
            if isinstance(inner, _Plan):
                value = getattr(record, name)
                for item in value if isinstance(spec, _Many) else [value]:
                    if item is not None:
                        inner.check(item, of, f"{path}{name}.", known)

    def _sizes(self, record: Any, path: str, writer: _Writer) -> list[Any]:
        sizes: dict[str, int] = {}
        kinds = {}
        for name, column in self._columns:
            values = getattr(record, name)
            kinds[name] = "" if values is None else writer.add(path, column, values, sizes)
        for name, note in self._words:
            words = text_array(getattr(record, name))
            if sizes.setdefault(note.length, len(words)) != len(words):
                raise RefusedError(
                    f"{writer.of}: {path}{name} and the columns beside it differ in length."
                )
            if len(words):
                writer.texts.setdefault(f"{path}{name}", []).append(words)
        return [*(sizes.get(dim, 0) for dim in self._dims), *(kinds[n] for n, _ in self._several)]

    def _arrays(self, cell: Any, path: str, reader: _Reader, values: dict[str, Any]) -> None:
        if not isinstance(cell, list) or len(cell) != len(self._dims) + len(self._several):
            raise RefusedError(
                f"{reader.of}: {path or 'sizes'} must give the lengths "
                f"{', '.join(self._dims)} and {len(self._several)} types."
            )
        sizes = dict(zip(self._dims, _shape(cell[: len(self._dims)], path, reader), strict=True))
        kinds = {}
        for (name, accepted), kind in zip(self._several, cell[len(self._dims) :], strict=True):
            if kind not in accepted:
                raise RefusedError(
                    f"{reader.of}: {path}{name} is {kind!s}; {' or '.join(accepted)} is accepted."
                )
            kinds[name] = kind
        for name, column in self._columns:
            kind = kinds.get(name, column.kinds)
            if kind == "":
                values[name] = None
                continue
            shape = tuple([each if isinstance(each, int) else sizes[each] for each in column.shape])
            numbers = reader.take(path, kind, shape)
            values[name] = numbers.astype(np.float64) if column.whole else numbers
        for name, note in self._words:
            words = reader.words(f"{path}{name}", sizes[note.length])
            values[name] = words.to_pylist() if note.listed else words


def _check(column: Column, values: Array, sizes: Mapping[str, int], least: Any, what: str) -> None:
    """RefusedError unless the values are as the column says."""
    if least is not None and bool(np.any(values > least)):
        raise RefusedError(f"{what} is somewhere more than {column.at_most}.", kind="values")
    if column.adds_up_to:
        total = sizes[column.adds_up_to]
        within = int(values.min(initial=0)) >= 0 and int(values.max(initial=0)) <= total
        if not within or int(values.sum()) != total:
            raise RefusedError(f"{what} does not add up to the {total} there are.", kind="shape")
    if column.finite and not bounded(values):
        raise RefusedError(
            f"{what} holds values that are not finite or are absurdly large{column.because}.",
            kind="values",
        )
    if values.size and not (column.least is column.most is column.above is None):
        low, high = values.min().item(), values.max().item()
        if not (
            (column.least is None or low >= column.least)
            and (column.above is None or low > column.above)
            and (column.most is None or high <= column.most)
        ):
            named = {"at least": column.least, "above": column.above, "at most": column.most}
            bounds = " and ".join(f"{n} {v:g}" for n, v in named.items() if v is not None)
            raise RefusedError(
                f"{what} holds {low:g} to {high:g}; finite values, {bounds}, are accepted.",
                kind="values",
            )
    if column.distinct and not distinct(values):
        raise RefusedError(f"{what} names one twice.", kind="id")


def _noted(hint: Any) -> tuple[Any, Any]:
    """The note beside a type, and the type."""
    if get_origin(hint) is Annotated:
        hint, *notes = get_args(hint)
        return notes[0], hint
    return None, hint


def _spec(hint: Any, note: Any) -> Any:
    """How a field of this type travels."""
    if get_origin(hint) is Annotated:
        note, hint = _noted(hint)
    args = get_args(hint)
    if isinstance(note, Column):
        return _ByTable(note)
    if get_origin(hint) in (Union, UnionType):
        return _Maybe(_spec(next(arg for arg in args if arg is not type(None)), note))
    if get_origin(hint) is Sequence or (get_origin(hint) is tuple and args[-1] is Ellipsis):
        listed = note if isinstance(note, Entries) else Entries()
        return _Many(_spec(args[0], None), listed)
    if get_origin(hint) is tuple:
        return _Fixed(tuple(_spec(arg, None) for arg in args))
    if is_dataclass(hint):
        return _plan(hint)
    return _Scalar(get_origin(hint) or hint, note)


_PLANS: dict[Any, _Plan] = {}


def _plan(cls: Any) -> _Plan:
    """By which the records of a class travel; made once."""
    plan = _PLANS.get(cls)
    if plan is None:
        plan = _PLANS[cls] = _Plan(cls)
    return plan
