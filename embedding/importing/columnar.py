"""Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from embedding.importing.opening import check_file
from embedding.importing.readers import (
    BATCH_RECORDS,
    READERS,
    RawRecords,
    ReaderTraits,
    ReadOptions,
)
from embedding.kernel.errors import InputError


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
            rows = file.metadata.num_rows
            names = [each.name for each in file.schema_arrow if not pa.types.is_nested(each.type)]
            number = 0
            for batch in file.iter_batches(batch_size=BATCH_RECORDS, columns=names):
                first, number = number, number + len(batch)
                if number > since:
                    later = batch.slice(max(since - first, 0))
                    columns = {
                        name: _strings(column)
                        for name, column in zip(later.schema.names, later.columns, strict=True)
                    }
                    at = number - len(later)
                    yield RawRecords(range(at, number), columns, done=number / max(rows, 1))
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a complete Parquet file ({error}).") from error


def _strings(column: pa.Array) -> pa.StringArray:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(column), pa.string())
