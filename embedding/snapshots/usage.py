"""How words were used in a snapshot's window: what their contexts say, by source, in replicas.

usage.arrow   past int8 (0: in the window; 1, 2, …: in texts of windows before, read again by the
              tables that this one began with, different ones in each), row int32 (of
              vectors.arrow), source string, mentions int64, pairs
              fixed_size_list<float32>[replicas], means fixed_size_list<float16>[replicas · dim],
              beside the same of further tables (none in older files); sorted by past, source, row
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from embedding.errors import SnapshotError
from embedding.records import FloatArray, HalfArray, IntArray

USAGE = "usage.arrow"


@dataclass(frozen=True)
class Usage:
    """What stood around words (`worker/usage.py`), n of them; of a replica without any, zeros.

    rows      int64 [n], row of each word in the snapshot
    sources   str [n]; mentions int64 [n]
    pairs     float32 [n, replicas], N: weight of the contexts
    means     float32 or float16 [n, replicas, dim], g / N in output rows of the contexts
    beside    float32 or float16 [n, replicas, k · dim], the same in their rows of k other tables
    reread    the same of texts before the window, in the same space, each of different ones
    """

    rows: IntArray
    sources: Sequence[str]
    mentions: IntArray
    pairs: FloatArray
    means: FloatArray | HalfArray
    reread: tuple[Usage, ...] = ()
    beside: FloatArray | HalfArray | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def tables(self) -> int:
        """In how many tables the rows of contexts were added up."""
        return 1 if self.beside is None else 1 + self.beside.shape[2] // self.means.shape[2]

    def table(self, at: int) -> FloatArray | HalfArray:
        """[n, replicas, dim], g / N in the rows of one of them; 0: output rows."""
        if self.beside is None or at == 0:
            return self.means
        dim = self.means.shape[2]
        return self.beside[..., (at - 1) * dim : at * dim]

    @cached_property
    def by_source(self) -> dict[str, IntArray]:
        """Places int64 of each source, by row."""
        names = np.asarray(self.sources, dtype=object)
        return {str(name): np.flatnonzero(names == name) for name in sorted(set(self.sources))}


def check(usage: Usage, words: int, dim: int, where: str) -> None:
    """Refuse sums that do not belong to a snapshot of so many words; raises SnapshotError."""
    n, replicas = len(usage.rows), usage.pairs.shape[1] if usage.pairs.ndim == 2 else -1
    wide = np.zeros((n, replicas, 0)) if usage.beside is None else usage.beside
    fits = (
        len(usage.sources) == len(usage.mentions) == len(usage.pairs) == n
        and usage.means.shape == (n, replicas, dim)
        and wide.shape[:2] == (n, replicas)
        and wide.shape[2] % dim == 0
        and (n == 0 or (int(usage.rows.min()) >= 0 and int(usage.rows.max()) < words))
    )
    if not (fits and all(np.isfinite(each).all() for each in (usage.means, wide, usage.pairs))):
        raise SnapshotError(
            f"{where}: the sums of usage do not fit {words} words of dimension {dim}, or are not "
            "finite."
        )
    for each in usage.reread:
        check(each, words, dim, where)


def write(path: Path, usage: Usage) -> None:
    """Write usage.arrow as one record batch."""
    parts = [_columns(part, past) for past, part in enumerate((usage, *usage.reread))]
    batch = pa.concat_batches([pa.record_batch(part) for part in parts])
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def _columns(usage: Usage, past: int) -> dict[str, pa.Array]:
    order = np.lexsort((usage.rows, np.asarray(usage.sources, dtype=str)))
    replicas = usage.pairs.shape[1]
    means = {
        name: np.asarray(values, dtype=np.float16)[order]
        for name, values in (("means", usage.means), ("beside", usage.beside))
        if values is not None
    }
    return {
        "past": pa.array(np.full(len(order), past, dtype=np.int8)),
        "row": pa.array(usage.rows[order].astype(np.int32)),
        "source": pa.array([usage.sources[at] for at in order.tolist()], pa.string()),
        "mentions": pa.array(usage.mentions[order].astype(np.int64)),
        "pairs": _lists(usage.pairs[order].astype(np.float32), replicas),
        **{name: _lists(values, replicas * values.shape[2]) for name, values in means.items()},
    }


def read(batch: pa.RecordBatch, dim: int) -> Usage:
    """Inverse of `write`; the sums stay on the mapped file."""
    if "past" not in batch.schema.names:  # written before texts were read again
        return _read(batch, dim)
    past = batch.column("past").to_numpy()
    ends = np.searchsorted(past, np.arange(int(past[-1]) + 1 if len(past) else 1), side="right")
    starts = [0, *ends[:-1].tolist()]
    first, *rest = (
        _read(batch.slice(start, end - start), dim)
        for start, end in zip(starts, ends.tolist(), strict=True)
    )
    return replace(first, reread=tuple(rest))


def _read(batch: pa.RecordBatch, dim: int) -> Usage:
    n = batch.num_rows
    pairs = batch.column("pairs").flatten().to_numpy().reshape(n, -1) if n else np.zeros((0, 1))
    values = {
        name: batch.column(name).flatten().to_numpy().reshape(n, pairs.shape[1], -1 if n else dim)
        for name in ("means", "beside")
        if name in batch.schema.names
    }
    return Usage(
        rows=batch.column("row").to_numpy().astype(np.int64),
        sources=batch.column("source").to_pylist(),
        mentions=batch.column("mentions").to_numpy(),
        pairs=pairs.astype(np.float32, copy=False),
        means=values["means"].reshape(n, pairs.shape[1], dim),
        beside=values.get("beside"),
    )


def _lists(values: FloatArray | HalfArray, length: int) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), length)
