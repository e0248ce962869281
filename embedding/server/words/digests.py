"""Words without a row as keyed digests: they can be counted, and nobody can read them on a disk.

Most words that only a few people used are names. A digest is eight bytes of BLAKE2b under a key of
the state folder (mode 600): without the key nobody can look a name up, and with it a word is known
again when it comes with its text.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embedding.kernel.records import IntArray, TimeArray

KEY_BYTES = 32
DIGEST_BYTES = 8
_MARK = "\0"
"""What a hidden word begins with in a column of words, where its digest follows in hex."""


class WordDigests:
    """Digests of words under one key of `KEY_BYTES` bytes; without one it is random.

    refused  digests of words that get no row: somebody asked for them to be forgotten
    """

    def __init__(self, key: bytes | None = None, refused: Collection[bytes] = ()) -> None:
        self._key = key or secrets.token_bytes(KEY_BYTES)
        self._refused = frozenset(refused)

    def allowed(self, words: Sequence[str]) -> list[str]:
        """Those of words that may get a row."""
        if not self._refused:
            return list(words)
        return [word for word in words if self.of(word) not in self._refused]

    def of(self, word: str) -> bytes:
        """The digest of a word, `DIGEST_BYTES` bytes."""
        text = word.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self._key, digest_size=DIGEST_BYTES).digest()

    def hidden(self, words: pa.ChunkedArray, shown: pa.ChunkedArray) -> pa.ChunkedArray:
        """A column of words in which those that are not among `shown` are digests."""
        encoded = pc.dictionary_encode(words.combine_chunks())
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        names: pa.Array = encoded.dictionary
        is_shown = pc.is_in(names, value_set=shown)
        written: list[str] = []
        for piece in pieces(zip(names.to_pylist(), is_shown.to_pylist(), strict=True)):
            written += [word if known else self.written(word) for word, known in piece]
        return pa.chunked_array([pa.array(written, pa.string()).take(encoded.indices)])

    def revealed(self, table: pa.Table, words: Sequence[str]) -> pa.Table:
        """A table in whose column `word` the digests of `words` are these words again."""
        column = table["word"]
        if not pc.any(pc.starts_with(column, _MARK)).as_py():
            return table
        known = {self.written(word): word for word in words}
        shown = pa.array([known.get(word, word) for word in column.to_pylist()], pa.string())
        return table.set_column(table.schema.get_field_index("word"), "word", shown)

    def written(self, word: str) -> str:
        return word if word.startswith(_MARK) else f"{_MARK}{self.of(word).hex()}"


T = TypeVar("T")

_PIECE = 20_000
_BREATH_S = 0.0005


def pieces(values: Iterable[T]) -> Iterator[list[T]]:
    """The values in pieces, with a pause after each.

    Arrow reads a list of strings without letting go of the interpreter: a million of them at once
    would hold every request up as a lock would.
    """
    source = iter(values)
    while piece := list(islice(source, _PIECE)):
        yield piece
        time.sleep(_BREATH_S)


def digest_column(values: Iterable[bytes], width: int) -> pa.ChunkedArray:
    """Digests of `width` bytes as a column."""
    kind = pa.binary(width)
    return pa.chunked_array([pa.array(piece, kind) for piece in pieces(values)], kind)


def float_column(values: Iterable[float], n: int) -> TimeArray:
    """float64 [n]."""
    column = np.empty(n, dtype=np.float64)
    source = iter(values)
    for at in range(0, n, _PIECE):
        size = min(_PIECE, n - at)
        column[at : at + size] = np.fromiter(source, np.float64, count=size)
        time.sleep(_BREATH_S)
    return column


@dataclass(frozen=True)
class WordsCopy:
    """The words that had a row at some moment: ids int64 [n], increasing, and names str [n]."""

    ids: IntArray
    names: list[str]
    digests: WordDigests

    @cached_property
    def column(self) -> pa.ChunkedArray:
        """The names as a column."""
        chunks = [pa.array(piece, pa.string()) for piece in pieces(self.names)]
        return pa.chunked_array(chunks, pa.string())

    def named(self, ids: IntArray) -> pa.Array:
        """The names of some of the ids."""
        taken = self.column.take(pa.array(np.searchsorted(self.ids, ids)))
        return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken

    def written(self, words: pa.ChunkedArray) -> pa.ChunkedArray:
        """A column of words as a checkpoint may hold it: those without a row as digests."""
        return self.digests.hidden(words, self.column)
