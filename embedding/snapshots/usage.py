"""How words were used in a snapshot's window: what their contexts say, by source, in replicas.

usage.arrow   past int8 (0: in the window, by the rows of the model; 1: in the window, 2, 3, …: in
              texts of windows before, by vectors that count them all alike), row int32 (of
              vectors.arrow), source string, mentions int64, pairs
              fixed_size_list<float32>[replicas], means fixed_size_list<float16>[replicas · dim];
              sorted by past, source, row
busiest.arrow the same (past: 0) of the documents of the window whose authors wrote most, in the
              space of past 1; only where authors are known
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from embedding.kernel.errors import SnapshotError
from embedding.kernel.records import FloatArray, HalfArray, IntArray
from embedding.snapshots.files import write_batch

USAGE = "usage.arrow"
BUSIEST_FILE = "busiest.arrow"
_ROWS = 1024
"""Words at a time, so that what is copied or looked at stays in a core's cache."""
_INFINITE = np.uint16(0x7C00)
"""The exponent of a float16 that is no finite number."""


def _nothing() -> None:
    """There is no file behind these sums."""


@dataclass(frozen=True)
class Usage:
    """What stood around words (`worker/usage`), n of them; of a replica without any, zeros.

    rows      int64 [n], row of each word in the snapshot
    sources   str [n]; mentions int64 [n]
    pairs     float32 [n, replicas], N: weight of the contexts
    means     float32 or float16 [n, replicas, dim], g / N in output rows of the contexts
    reread    in another space that all of these share: the same of the window first, then of texts
              before it, each of different ones
    busiest   in that space: of the documents of the window whose authors wrote most
    release   lets go of the pages of a mapped file that were looked at
    """

    rows: IntArray
    sources: Sequence[str]
    mentions: IntArray
    pairs: FloatArray
    means: FloatArray | HalfArray
    reread: tuple[Usage, ...] = ()
    busiest: Usage | None = None
    release: Callable[[], None] = field(default=_nothing, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def by_source(self) -> dict[str, IntArray]:
        """Places int64 of each source, by row."""
        names = np.asarray(self.sources, dtype=object)
        return {str(name): np.flatnonzero(names == name) for name in sorted(set(self.sources))}


def check(usage: Usage, words: int, dim: int, where: str) -> None:
    """Refuse sums that do not belong to a snapshot of so many words; raises SnapshotError."""
    n, replicas = len(usage.rows), usage.pairs.shape[1] if usage.pairs.ndim == 2 else -1
    fits = (
        len(usage.sources) == len(usage.mentions) == len(usage.pairs) == n
        and usage.means.shape == (n, replicas, dim)
        and (n == 0 or (int(usage.rows.min()) >= 0 and int(usage.rows.max()) < words))
    )
    if not (fits and all(_finite(part) for part in (usage.means, usage.pairs))):
        raise SnapshotError(
            f"{where}: the sums of usage do not fit {words} words of dimension {dim}, or are not "
            "finite."
        )
    for part in (*usage.reread, *([] if usage.busiest is None else [usage.busiest])):
        check(part, words, dim, where)


def _finite(values: FloatArray | HalfArray) -> bool:
    """Whether all are; numpy looks at one half at a time."""
    if values.dtype != np.float16:
        return bool(np.isfinite(values).all())
    bits = np.ascontiguousarray(values).view(np.uint16)
    some = (bits[start : start + _ROWS] & _INFINITE for start in range(0, len(bits), _ROWS))
    return not any((block == _INFINITE).any() for block in some)


def write(path: Path, usage: Usage) -> None:
    """Write usage.arrow as one record batch."""
    parts = (usage, *usage.reread)
    orders = [np.lexsort((part.rows, np.asarray(part.sources, dtype=str))) for part in parts]
    ordered = list(zip(parts, orders, strict=True))
    rows, mentions = (
        np.concatenate([getattr(part, name)[order] for part, order in ordered])
        for name in ("rows", "mentions")
    )
    sources = [part.sources[row] for part, order in ordered for row in order.tolist()]
    columns = {
        "past": pa.array(np.repeat(np.arange(len(parts), dtype=np.int8), list(map(len, orders)))),
        "row": pa.array(rows.astype(np.int32)),
        "source": pa.array(sources, pa.string()),
        "mentions": pa.array(mentions.astype(np.int64)),
        "pairs": _lists([part.pairs for part in parts], orders, np.float32),
        "means": _lists([part.means for part in parts], orders, np.float16),
    }
    batch = pa.record_batch(columns)
    write_batch(path, batch)


def _lists(
    values: Sequence[FloatArray | HalfArray], orders: Sequence[IntArray], kind: type[np.floating]
) -> pa.Array:
    """Rows [n, …] of several parts, each in its order, as one column of lists."""
    n, length = sum(map(len, orders)), int(np.prod(values[0].shape[1:]))
    flat = np.empty((n, length), dtype=kind)
    first = 0
    for part, order in zip(values, orders, strict=True):
        rows = part.reshape(len(part), length).astype(kind, copy=False)
        # "raise", the usual mode, would write to memory of its own first.
        np.take(rows, order, axis=0, out=flat[first : first + len(order)], mode="clip")
        first += len(order)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1)), length)


def read(batch: pa.RecordBatch, dim: int, release: Callable[[], None] = _nothing) -> Usage:
    """Inverse of `write`; the sums stay on the mapped file."""
    if "past" not in batch.schema.names:  # written before texts were read again
        return replace(_read(batch, dim), release=release)
    past = batch.column("past").to_numpy()
    ends = np.searchsorted(past, np.arange(int(past[-1]) + 1 if len(past) else 1), side="right")
    starts = [0, *ends[:-1].tolist()]
    first, *rest = (
        _read(batch.slice(start, end - start), dim)
        for start, end in zip(starts, ends.tolist(), strict=True)
    )
    parts = tuple(replace(part, release=release) for part in rest)
    return replace(first, reread=parts, release=release)


def _read(batch: pa.RecordBatch, dim: int) -> Usage:
    n = batch.num_rows
    pairs = batch.column("pairs").flatten().to_numpy().reshape(n, -1) if n else np.zeros((0, 1))
    return Usage(
        rows=batch.column("row").to_numpy().astype(np.int64),
        sources=batch.column("source").to_pylist(),
        mentions=batch.column("mentions").to_numpy(),
        pairs=pairs.astype(np.float32, copy=False),
        means=batch.column("means").flatten().to_numpy().reshape(n, pairs.shape[1], dim),
    )
