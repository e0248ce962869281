"""GDELT's Global Knowledge Graph 2.x: tab-separated, without a line of names."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from embedding.importing.opening import lines_of, opened
from embedding.importing.readers import (
    READERS,
    RawRecords,
    ReaderTraits,
    ReadOptions,
    Record,
    in_columns,
)

_COLUMNS = 27
_DATE, _SOURCE, _EXTRAS = 1, 3, 26
"""V2.1DATE, V2SOURCECOMMONNAME, V2EXTRASXML of the GKG 2.1 codebook."""
_TITLE = re.compile(r"<PAGE_TITLE>([^<]*+(?:<(?!/?PAGE_TITLE>)[^<]*+)*+)</PAGE_TITLE>")


@READERS.register("gkg", ReaderTraits(noun="GDELT's GKG", suffixes=(".gkg",), named=True))
def read_gkg(path: Path, options: ReadOptions, since: int) -> Iterator[RawRecords]:
    """Date, headline and site of each article; GDELT hands out no more of its text."""
    with opened(path) as file:
        encoding = options.encoding or "utf-8"
        lines = lines_of(file.read, lambda data: data.split(b"\n"))
        articles = islice(enumerate(line for line in lines if line.strip()), since, None)
        records = ((number, _record(line.decode(encoding, "replace"))) for number, line in articles)
        yield from in_columns(records, lambda: file.done)


def _record(line: str) -> Record:
    cells = line.rstrip("\r").split("\t")
    if len(cells) != _COLUMNS:
        return f"{len(cells)} values for {_COLUMNS} columns"
    title = _TITLE.search(cells[_EXTRAS])
    if title is None:
        return "no headline"
    return {
        "date": cells[_DATE],
        "text": html.unescape(title[1]).strip(),
        "source": cells[_SOURCE] or None,
    }
