"""Words admitted since the last checkpoint, written before their ids are given out.

JSON lines `{"first": id, "words": […], "evicted": [id, …]}`: the same words make room for them when
the journal is read back, whatever the counts were in the checkpoint. A torn last line (the server
was killed while writing) was never answered, so nobody knows its ids and it is left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from embedding.kernel.durable import append, appending
from embedding.kernel.errors import UnavailableError
from embedding.kernel.records import IntArray


@dataclass(frozen=True)
class Entry:
    """Words that got the ids first, first+1, …, and ids int64 that were evicted for them."""

    first: int
    words: list[str]
    evicted: IntArray


class Journal:
    """An append-only file; None writes nothing. `repair` cuts a torn last line off first."""

    def __init__(self, path: Path | None, *, repair: bool = False) -> None:
        self.path = path
        if repair and path is not None and path.exists():
            # A line that is appended to a torn one would be unreadable with it, and its words were
            # given out.
            whole = path.read_bytes().rfind(b"\n") + 1
            os.truncate(path, whole)
        self._file: IO[bytes] | None = None if path is None else appending(path)

    def write(self, first: int, words: Sequence[str], evicted: IntArray) -> None:
        """Note that `words` get the ids first, first+1, …; on the disk on return.

        UnavailableError: it cannot be written now, and nobody may use these ids.
        """
        if self._file is None:
            return
        entry = {"first": first, "words": list(words), "evicted": evicted.tolist()}
        line = json.dumps(entry, ensure_ascii=False)
        try:
            append(self._file, line.encode() + b"\n")
        except OSError as error:
            raise UnavailableError(f"{self.path}: {error.strerror}: no new words now.") from error

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def read_journal(path: Path) -> Iterator[Entry]:
    """Each complete line."""
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            entry = json.loads(line)
        except ValueError:
            # What follows may evict words of this line, so nothing behind it can be carried out.
            return
        yield Entry(
            int(entry["first"]),
            [str(word) for word in entry["words"]],
            np.array(entry["evicted"], dtype=np.int64),
        )
