"""Lines of a date and a text with a tab between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from embedding.importing.opening import opened
from embedding.importing.readers import READERS, RawRecords, ReaderTraits, ReadOptions, in_columns

EXAMPLE = "".join(f"2020-02-0{at + 1}\t글 {at} 의 본문입니다\n" for at in range(3)).encode()


@READERS.register(
    "outside-tabs", ReaderTraits(noun="a file of tabs", suffixes=(".outside-tabs",), named=True)
)
def read_tabs(path: Path, options: ReadOptions, since: int) -> Iterator[RawRecords]:
    with opened(path) as file:
        lines = file.read(1 << 20).decode(options.encoding or "utf-8", "replace").splitlines()
        pairs = (line.split("\t") for line in lines)
        records = (
            dict(zip(("date", "text"), pair, strict=True)) if len(pair) == 2 else "no two values"
            for pair in pairs
        )
        numbered = ((at, record) for at, record in enumerate(records) if at >= since)
        yield from in_columns(numbered, lambda: file.done)
