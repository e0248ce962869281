"""Writing a snapshot's word vectors in the formats other tools read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from embedding.kernel.durable import replaced
from embedding.kernel.errors import ConfigError, InputError
from embedding.kernel.records import IntArray
from embedding.snapshots.snapshot import Snapshot


@dataclass(frozen=True)
class Exported:
    """Words written, words left out for the white space in them, and one of those."""

    words: int
    left_out: int = 0
    example: str = ""


def export(snapshot: Snapshot, format: str, out: Path) -> Exported:
    """Write `snapshot.vectors`, most frequent word first.

    `out` is replaced in one step when everything is written. An empty word or one with white space
    in it cannot be told apart in the word2vec formats: it is left out there. Raises InputError for
    an unknown format, a place that cannot be written and when no word is left, ConfigError without
    gensim.
    """
    try:
        write = _WRITERS[format]
    except KeyError as error:
        accepted = ", ".join(_WRITERS)
        raise InputError(
            f"export format {format[:40]!r}: of vectors accepted are {accepted}."
        ) from error
    order = np.argsort(-snapshot.counts, kind="stable")
    left_out: list[str] = []
    if write not in (_keyedvectors, _parquet):
        words = snapshot.words
        fit = np.array([len(words[row].split()) == 1 for row in order], bool)
        left_out = [words[row] for row in order[~fit]]
        order = order[fit]
    if not len(order):
        raise InputError(
            f"snapshot {snapshot.id}: no word is free of white space, and {format} holds no other; "
            "keyedvectors and parquet are accepted."
        )
    try:
        with replaced(out) as file:
            write(snapshot, order, file)
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {error.strerror or error}.") from error
    return Exported(len(order), len(left_out), left_out[0] if left_out else "")


def _binary(snapshot: Snapshot, order: IntArray, file: IO[bytes]) -> None:
    """The binary file of word2vec.c."""
    words, vectors = snapshot.words, snapshot.vectors
    file.write(f"{len(order)} {snapshot.dim}\n".encode())
    for row in order:
        file.write(words[row].encode() + b" " + vectors[row].astype("<f4").tobytes() + b"\n")


def _text(snapshot: Snapshot, order: IntArray, file: IO[bytes]) -> None:
    """Its text file; nine digits, so that float32 survives the round trip."""
    words, vectors = snapshot.words, snapshot.vectors
    line = "%s" + " %.9g" * snapshot.dim + "\n"
    file.write(f"{len(order)} {snapshot.dim}\n".encode())
    for row in order:
        file.write((line % (words[row], *vectors[row].tolist())).encode())


def _keyedvectors(snapshot: Snapshot, order: IntArray, file: IO[bytes]) -> None:
    """gensim's own file (`KeyedVectors.load`), with counts."""
    try:
        from gensim.models import KeyedVectors
    except ImportError as error:
        raise ConfigError(
            "export format keyedvectors: gensim is not installed; install it, or export word2vec."
        ) from error
    vectors = KeyedVectors(snapshot.dim, dtype=np.float32)
    vectors.add_vectors([snapshot.words[row] for row in order], snapshot.vectors[order])
    vectors.expandos["count"] = snapshot.counts[order]
    vectors.save(file)


def _parquet(snapshot: Snapshot, order: IntArray, file: IO[bytes]) -> None:
    """Columns word, count and vector (a list of float32)."""
    vectors = np.ascontiguousarray(snapshot.vectors[order], dtype=np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), snapshot.dim)
    words = [snapshot.words[row] for row in order]
    table = pa.table({"word": words, "count": snapshot.counts[order], "vector": column})
    pq.write_table(table, file, compression="zstd")


_WRITERS: dict[str, Callable[[Snapshot, IntArray, IO[bytes]], None]] = {
    "word2vec": _binary,
    "word2vec-text": _text,
    "keyedvectors": _keyedvectors,
    "parquet": _parquet,
}
