"""Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embedding.importing.opening import check_file
from embedding.importing.readers import (
    BATCH_CHARACTERS,
    BATCH_RECORDS,
    LONGEST_RECORD,
    READERS,
    TOO_LONG,
    RawRecords,
    ReaderTraits,
    ReadOptions,
    WrongRecord,
)
from embedding.kernel.errors import InputError
from embedding.kernel.records import IntArray

_UNPACKED = 1 << 28
_RATIO = 100
"""A column of more bytes unpacked in one group of rows, and so many times its size, is no text."""


@READERS.register(
    "parquet", ReaderTraits(noun="Parquet", suffixes=(".parquet", ".pq"), begins=(b"PAR1",))
)
def read_parquet(path: Path, options: ReadOptions, since: int) -> Iterator[RawRecords]:
    """The rows of a file; columns of lists and objects are passed over."""
    import pyarrow.parquet as pq

    del options  # it says itself how its text is written
    check_file(path)
    try:
        with pq.ParquetFile(path) as file:
            names = [f.name for f in file.schema_arrow if not pa.types.is_nested(f.type)]
            size = _rows_at_once(path, file.metadata, names)
        # Equal values stay one: a few bytes can name one of a megabyte in each of many rows.
        with pq.ParquetFile(path, read_dictionary=names) as file:
            number, rows = 0, max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(batch_size=size, columns=names):
                first, number = number, number + len(batch)
                if number > since:
                    yield from _records(batch, first, max(since - first, 0), number / rows)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a complete Parquet file ({error}).") from error


def _rows_at_once(path: Path, metadata: Any, names: Sequence[str]) -> int:
    """Rows that are some `BATCH_CHARACTERS`; InputError for a column that is far too packed."""
    size = BATCH_RECORDS
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            packed, unpacked = chunk.total_compressed_size, chunk.total_uncompressed_size
            if chunk.path_in_schema not in names:
                continue
            if unpacked > max(_UNPACKED, _RATIO * packed):
                raise InputError(
                    f"{path}: column {chunk.path_in_schema!r} unpacks to {unpacked >> 20} MB, more "
                    f"than {_RATIO} times its size; no text does."
                )
            size = min(size, BATCH_CHARACTERS * group.num_rows // max(unpacked, 1))
    return max(size, 1)


def _records(batch: pa.RecordBatch, first: int, begin: int, done: float) -> Iterator[RawRecords]:
    """The rows from `begin` on, no more at once than are `BATCH_CHARACTERS`."""
    lengths = sum(map(_lengths, batch.columns), np.zeros(len(batch), dtype=np.int64))
    fits = lengths <= LONGEST_RECORD
    later = np.arange(len(fits)) >= begin
    wrong = tuple(WrongRecord(first + int(row), TOO_LONG) for row in np.flatnonzero(later & ~fits))
    rows = np.flatnonzero(later & fits)
    step = max(BATCH_CHARACTERS // max(int(lengths[rows].max(initial=1)), 1), 1)
    for start in range(0, max(len(rows), 1), step):
        part = rows[start : start + step]
        taken = batch.take(pa.array(part, pa.int64()))
        columns = {
            name: _strings(column)
            for name, column in zip(taken.schema.names, taken.columns, strict=True)
        }
        # With the last ones: an interrupted import goes on behind the highest number.
        late = wrong if start + step >= len(rows) else ()
        yield RawRecords(tuple((first + part).tolist()), columns, late, done=done)


def _lengths(column: pa.Array) -> IntArray:
    """Bytes of each string, int64 [n]; 0 of numbers and times."""
    lengths: IntArray = np.zeros(len(column), dtype=np.int64)
    if pa.types.is_dictionary(column.type) and len(column.dictionary):
        of_words = pc.binary_length(column.dictionary).fill_null(0).to_numpy().astype(np.int64)
        lengths = of_words[column.indices.fill_null(0).to_numpy()]
    return lengths


def _strings(column: pa.Array) -> pa.StringArray:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(column), pa.string())
