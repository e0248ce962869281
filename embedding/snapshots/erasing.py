"""Taking a word or a source out of a snapshot that is there, which keeps its id.

A word's row stays, with a made-up name, no vector and no count, because other files name rows by
their places. Everything is written into a folder beside it, which then takes its place: killed in
between, the next who opens the store finishes it (`finish`).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from embedding.kernel.durable import sync
from embedding.kernel.errors import SnapshotError
from embedding.snapshots.files import entry, validate, write_batch
from embedding.snapshots.format import (
    COUNTS,
    EARLIER_FILE,
    MANIFEST,
    PHRASES,
    VECTORS,
    Manifest,
    encoded,
)
from embedding.snapshots.pulls import CONTEXTS_FILE
from embedding.snapshots.snapshot import read_manifest
from embedding.snapshots.usage import BUSIEST_FILE, USAGE

WHOLE = ".erased-"
"""What the folder is called that is to take a snapshot's place, before the snapshot's name."""
_DRAFT = ".publishing-erased-"
_OLD = ".publishing-old-"
"""Folders of these names are cleared away by the next publication."""


def finish(root: Path) -> None:
    """Put what was written whole in the place of what was taken away for it."""
    for whole in root.glob(f"{WHOLE}*"):
        target = root / whole.name.removeprefix(WHOLE)
        if not target.exists():
            whole.rename(target)


def sweep(root: Path) -> None:
    """Finish, and clear away what is left of what was erased. Nobody else may be erasing."""
    finish(root)
    for name in (_DRAFT, _OLD, WHOLE):
        for left in root.glob(f"{name}*"):
            shutil.rmtree(left)


def holds(folder: Path, *, word: str | None = None, source: str | None = None) -> bool:
    """Whether a snapshot's files hold a word or a source."""
    manifest = read_manifest(folder)
    if source is not None and source in {*manifest.tokens, *manifest.documents}:
        return True
    for name in manifest.files:
        table = _read(folder / name)
        for column, wanted in (("word", word), ("source", source)):
            if wanted is None or column not in table.column_names:
                continue
            values = table[column]
            if pa.types.is_integer(values.type):
                continue
            if pc.any(pc.equal(pc.cast(values, pa.string()), wanted)).as_py():
                return True
        if name == PHRASES and word is not None and _phrased(table, word).any():
            return True
    return False


def erase(folder: Path, *, word: str | None = None, source: str | None = None) -> bool:
    """Take a word or a source out of a snapshot's files; whether there was any of it."""
    if not holds(folder, word=word, source=source):
        return False
    manifest = read_manifest(folder)
    draft, whole = (folder.with_name(f"{prefix}{folder.name}") for prefix in (_DRAFT, WHOLE))
    for left in (draft, whole):
        shutil.rmtree(left, ignore_errors=True)
    draft.mkdir()
    words = _read(folder / VECTORS)["word"]
    erased = _Erased(word, source, -1 if word is None else int(pc.index(words, word).as_py()))
    for path in folder.iterdir():
        change = _CHANGES.get(path.name)
        if change is not None:
            table = change(_read(path), erased)
            batches = table.combine_chunks().to_batches()
            empty = pa.RecordBatch.from_pylist([], schema=table.schema)
            write_batch(draft / path.name, batches[0] if batches else empty)
        elif path.name != MANIFEST:
            shutil.copy2(path, draft / path.name)
    changed = manifest.model_copy(
        update={
            **counts_without(manifest, source),
            "quality": {
                name: value
                for name, value in manifest.quality.items()
                if source is None or not name.endswith((f".{source}", f"/{source}"))
            },
            "files": {name: entry(draft / name) for name in manifest.files},
        }
    )
    (draft / MANIFEST).write_text(changed.to_json(), encoding="utf-8")
    for path in (*draft.iterdir(), draft):
        sync(path)
    draft.rename(whole)
    old = _hidden(folder)
    # Whoever opened the store in between has done so already.
    finish(folder.parent)
    sync(folder.parent)
    shutil.rmtree(old, ignore_errors=True)
    return True


def remove(folder: Path) -> None:
    """Remove a snapshot's folder: at once, as whoever lists the store sees it."""
    shutil.rmtree(_hidden(folder))


def counts_without(manifest: Manifest, source: str | None) -> dict[str, object]:
    """What changes in a manifest that does not count a source any more."""
    return {
        "tokens": {name: n for name, n in manifest.tokens.items() if name != source},
        "documents": {name: n for name, n in manifest.documents.items() if name != source},
        "erased": manifest.erased + 1,
    }


@dataclass(frozen=True)
class _Erased:
    """A word, with its row (-1: none), or a source."""

    word: str | None
    source: str | None
    row: int


def _vectors(table: pa.Table, erased: _Erased) -> pa.Table:
    row = erased.row
    if row < 0:
        return table
    batch = table.to_batches()[0]
    columns = {}
    for name in batch.schema.names:
        column = batch.column(name)
        if name == "word":
            words = column.to_pylist()
            words[row] = f"<erased {batch.column('id')[row].as_py()}>"
            columns[name] = pa.array(words, pa.string())
        elif name in ("in", "out"):
            values = column.flatten().to_numpy().reshape(len(column), -1).copy()
            values[row] = 0
            columns[name] = pa.FixedSizeListArray.from_arrays(
                pa.array(values.ravel()), values.shape[1]
            )
        elif name == "id":
            columns[name] = column
        else:
            figures = column.to_numpy().copy()
            figures[row] = 0
            columns[name] = pa.array(figures)
    return pa.table(columns)


def _counts(table: pa.Table, erased: _Erased) -> pa.Table:
    plain = [pc.cast(table[name], pa.string()) for name in ("word", "source")]
    gone = np.zeros(table.num_rows, dtype=bool)
    for values, wanted in zip(plain, (erased.word, erased.source), strict=True):
        if wanted is not None:
            gone |= pc.equal(values, wanted).to_numpy(zero_copy_only=False)
    rest = table.filter(pa.array(~gone))
    for name in ("word", "source"):
        # A dictionary would name what no row names any more.
        column = rest.schema.get_field_index(name)
        again = encoded(pc.cast(rest[name], pa.string()).to_pylist())
        rest = rest.set_column(column, name, again)
    return rest


def _usage(table: pa.Table, erased: _Erased) -> pa.Table:
    gone = table["row"].to_numpy() == erased.row
    if erased.source is not None:
        gone |= pc.equal(table["source"], erased.source).to_numpy(zero_copy_only=False)
    return table.filter(pa.array(~gone))


def _contexts(table: pa.Table, erased: _Erased) -> pa.Table:
    gone = [table[name].to_numpy() == erased.row for name in ("word", "context")]
    return table.filter(pa.array(~(gone[0] | gone[1])))


def _phrases(table: pa.Table, erased: _Erased) -> pa.Table:
    word = erased.word
    return table if word is None else table.filter(pa.array(~_phrased(table, word)))


_CHANGES: dict[str, Callable[[pa.Table, _Erased], pa.Table]] = {
    VECTORS: _vectors,
    COUNTS: _counts,
    EARLIER_FILE: _counts,
    USAGE: _usage,
    BUSIEST_FILE: _usage,
    CONTEXTS_FILE: _contexts,
    PHRASES: _phrases,
}


def _phrased(table: pa.Table, word: str) -> np.ndarray:
    """bool [n]: phrases that are the word or have it as a part."""
    rows = zip(table["word"].to_pylist(), table["parts"].to_pylist(), strict=True)
    return np.fromiter((word == whole or word in parts for whole, parts in rows), bool)


def _hidden(folder: Path) -> Path:
    """The folder under a name that the next publication clears away; what had that name is gone."""
    old = folder.with_name(f"{_OLD}{folder.name}")
    shutil.rmtree(old, ignore_errors=True)
    folder.rename(old)
    return old


def _read(path: Path) -> pa.Table:
    try:
        with path.open("rb") as file:
            with pa.ipc.open_file(pa.py_buffer(file.read())) as reader:
                table = reader.read_all()
            validate(table, file.fileno())
        return table
    except (OSError, pa.ArrowException) as error:
        raise SnapshotError(f"{path}: cannot be read: {error}.") from error
