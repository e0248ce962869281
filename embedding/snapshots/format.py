"""What a snapshot's directory holds: Arrow files and a manifest.

vectors.arrow   word string, id int64, count int64, last_seen float64 (Unix seconds), in and out
                fixed_size_list<float32>[dim]; one uncompressed record batch,
                so that both tables can be memory-mapped
counts.arrow    word and source dictionary<string>, window int64 (Unix seconds), count int64,
                documents int64: what this window read; authors and voices int64
                (`CountColumns`), which snapshots of before 2026-11-27 lack
earlier.arrow   the same of up to AMENDABLE windows before, of words that had no row when those were
                published, where there are any
phrases.arrow   which words are several read as one, where there are any, sorted by word: word
                string, parts list<string>, since and joined float64 (Unix seconds of event time),
                earlier int64, as `records.Phrase` says
usage.arrow     where the server was told to keep it: how words were used (`usage.py`), and in
                busiest.arrow how the busiest authors used them
contexts.arrow  the same: which contexts pulled them (`pulls.py`)
manifest.json   identity, window, tokens and documents by source, configuration, digests, quality,
                and size and SHA-256 of all files
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from embedding import __version__
from embedding.kernel.config import explain
from embedding.kernel.durable import unreadable
from embedding.kernel.errors import SnapshotError
from embedding.kernel.records import (
    COUNT_COLUMNS,
    PHRASE,
    Phrase,
    SnapshotData,
    SnapshotRef,
    Window,
    WordCounts,
)
from embedding.snapshots.files import MANIFEST as MANIFEST
from embedding.snapshots.files import FileEntry, write_batch
from embedding.snapshots.usage import USAGE

_UNJUDGED = "{label}: no word can be judged to have changed in meaning, as "
_AMEND = " `yeoron snapshot amend {label}` has it read again."
_SENTENCES = {
    "usage_not_handed_in": _UNJUDGED
    + "it was cut before {where} had sent how words were used in it."
    + _AMEND,
    "usage_limit": _UNJUDGED
    + "{where} needed longer than the limit to send how words were used in it."
    + _AMEND,
    "node_lost": _UNJUDGED + "{where} ended before sending how words were used in it." + _AMEND,
    "document_gone": _UNJUDGED
    + "{documents} of its documents could not be read again after a node had ended."
    + _AMEND,
    "not_converged": "{label}: it was cut before its model had learnt it to the end, so closest "
    "words are less sure. A longer server.convergence_seconds gives the next windows more time.",
    "late_documents": "{label}: {documents} documents came after it was cut and are not in it."
    + _AMEND,
    "other": "{label}: its snapshot lacks {part} ({reason})." + _AMEND,
}
"""By `Missing.reason`; `other` is for a reason that this version does not know."""
LACK_REASONS = tuple(_SENTENCES)


class Missing(BaseModel):
    """What a snapshot lacks of its window, and why.

    Whatever shows a window asks here, so that the same reason is given everywhere. The page says
    it in its reader's language, by the same codes (`note_CODE` in the catalogues).
    """

    model_config = ConfigDict(frozen=True)

    part: Literal["usage", "learning", "documents"]
    """`usage`: how words were used, without which nothing is compared; `learning`: it was cut
    before its nodes had learnt it to the end; `documents`: that came after the cut."""
    reason: str
    """Why, as a code of lower-case words joined by `_`; `where` and `documents` say of what."""
    where: tuple[str, ...] = ()
    """Nodes or sources."""
    documents: Annotated[int, Field(ge=0)] = 0
    """How many documents are concerned; 0: not known."""


def sentence(missing: Missing, label: str) -> str:
    """Why, and what to do. label: of the window"""
    template = _SENTENCES.get(missing.reason, _SENTENCES["other"])
    return template.format(
        label=label,
        where=", ".join(missing.where) or "its nodes",
        documents=f"{missing.documents:,}" if missing.documents else "some",
        part=missing.part,
        reason=missing.reason,
    )


SNAPSHOT_FORMAT = 1
ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.+-]{0,119}")
"""How a snapshot may be called."""
VECTORS = "vectors.arrow"
COUNTS = "counts.arrow"
EARLIER_FILE = "earlier.arrow"
PHRASES = "phrases.arrow"
AMENDABLE = 2
"""Published windows of which a server keeps counts and use, the latest ones: for amendments, and to
say in later snapshots how often words occurred in them that had no row yet."""


FileName = Annotated[str, Field(pattern=r"^[a-z_]{1,40}\.arrow$")]
"""A plain file beside the manifest. A manifest may come from a store that others write to, and
what it names is written into a folder here."""


class WindowEntry(BaseModel):
    """Event time covered, half open; both ends with the offset of their time zone."""

    model_config = ConfigDict(frozen=True)

    label: str
    start: datetime
    end: datetime


class Manifest(BaseModel):
    """The content of manifest.json; the id ends in a digest of all the other fields."""

    model_config = ConfigDict(frozen=True)

    format: int
    """Version of this layout."""
    id: str
    """`<window label>-<8 hex digits>`."""
    parent: str | None
    """Id of the snapshot before it in the same stream."""
    window: WindowEntry
    """Event time covered."""
    words: int
    """Rows of vectors.arrow."""
    dim: int
    """Length of a vector."""
    tokens: dict[str, int]
    """This window's tokens by source."""
    documents: dict[str, int]
    """This window's documents by source."""
    config: dict[str, Any]
    """Settings it was trained with."""
    config_digest: str
    """SHA-256 of those settings."""
    tokenizer_digest: str
    """Digest of tokenizer, dictionary and normaliser."""
    code_version: str
    """Version of the program that wrote it."""
    quality: dict[str, float]
    """Quality figures by name, finite ones only."""
    files: dict[FileName, FileEntry]
    """Size and digest of every other file."""
    erased: Annotated[int, Field(ge=0)] = 0
    """How often a word or a source was erased from it since (`erasing.py`): it keeps its id."""
    revision: Annotated[int, Field(ge=1)] = 1
    """1, then one more each time the window's snapshot was amended."""
    missing: tuple[Missing, ...] = ()
    """What it lacks of its window; empty: nothing."""

    def to_json(self) -> str:
        """Canonical text: sorted keys, two-space indent, one final line end."""
        content = self.model_dump(mode="json", exclude=self._defaults())
        return json.dumps(content, ensure_ascii=False, sort_keys=True, indent=2) + "\n"

    def expected_id(self) -> str:
        """The id that belongs to this content."""
        content = self.model_dump(mode="json", exclude={"id", "erased", *self._defaults()})
        text = json.dumps(content, ensure_ascii=False, sort_keys=True)
        return f"{self.window.label}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def _defaults(self) -> set[str]:
        """Fields that older snapshots do not have: they are left out where they say nothing."""
        later = {"erased": 0, "revision": 1, "missing": ()}
        return {name for name, value in later.items() if getattr(self, name) == value}

    @property
    def lacking(self) -> tuple[Missing, ...]:
        """`missing`; of an older snapshot as its figures and files show.

        Those say with `settled` that they were cut before their nodes had learnt the window.
        """
        if self.missing or self.quality.get("settled") != 0.0:
            return self.missing
        server = self.config.get("server")
        counted = isinstance(server, dict) and server.get("usage", True)
        unlearnt = Missing(part="learning", reason="not_converged")
        if USAGE in self.files or not counted:
            return (unlearnt,)
        return (Missing(part="usage", reason="usage_not_handed_in"), unlearnt)

    @property
    def judgeable(self) -> bool:
        """Whether nothing of how words were used in the window is known to be missing."""
        return all(missing.part != "usage" for missing in self.lacking)

    def ref(self, uri: str) -> SnapshotRef:
        """A pointer to this snapshot at `uri`."""
        return SnapshotRef(
            id=self.id,
            uri=uri,
            window_start=self.as_window().start,
            window_end=self.as_window().end,
            words=self.words,
            parent=self.parent,
            revision=self.revision,
            lacks=tuple(sentence(one, self.window.label) for one in self.lacking),
        )

    @property
    def timezone(self) -> str:
        """Time zone in which its window begins; UTC of a snapshot that does not say."""
        server = self.config.get("server")
        return str(server.get("timezone", "UTC")) if isinstance(server, dict) else "UTC"

    def as_window(self) -> Window:
        """The window as the record that other rooms use."""
        return Window(self.window.start, self.window.end)


def parse_manifest(text: str, where: str) -> Manifest:
    """Read manifest.json; raises SnapshotError that names the place and the field."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise SnapshotError(f"{where}: not valid JSON: {error}.") from error
    except RecursionError as error:
        raise SnapshotError(f"{where}: it is nested too deeply.") from error
    version = content.get("format") if isinstance(content, dict) else None
    if why := unreadable(version, (SNAPSHOT_FORMAT,)):
        raise SnapshotError(f"{where}: {why}.")
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        raise SnapshotError(explain(error, where, Manifest)) from error


def check(data: SnapshotData) -> None:
    """Refuse data that would make a snapshot nobody can read; raises SnapshotError."""
    n, where = len(data.words), f"snapshot of {data.window.label}"
    shape = data.vectors.shape
    if len(shape) != 2 or shape[0] != n or shape[1] < 1 or data.contexts.shape != shape:
        raise SnapshotError(
            f"{where}: vectors and contexts of shape [{n}, dim] belong to {n} words, got "
            f"{list(shape)} and {list(data.contexts.shape)}."
        )
    if not len(data.ids) == len(data.counts) == len(data.last_seen) == n:
        raise SnapshotError(f"{where}: ids, counts and last_seen need one entry for each word.")
    rows = data.by_source
    if len({len(each) for each in (rows.words, rows.sources, rows.windows, *rows.columns)}) > 1:
        raise SnapshotError(f"{where}: the columns of counts by source differ in length.")
    if len(set(data.words)) != n or len(np.unique(data.ids)) != n:
        raise SnapshotError(f"{where}: a word or an id occurs twice; each must occur once.")
    for name, table in (("vectors", data.vectors), ("contexts", data.contexts)):
        bad = n - int(np.isfinite(table).all(axis=1).sum())
        if bad:
            raise SnapshotError(
                f"{where}: {bad} rows of {name} are not finite; nothing was published "
                "(a smaller learning rate keeps them finite)."
            )


def write_vectors(path: Path, data: SnapshotData) -> None:
    """Write vectors.arrow as one record batch."""
    columns = {
        "word": pa.array(data.words, pa.string()),
        "id": pa.array(np.ascontiguousarray(data.ids, np.int64)),
        "count": pa.array(np.ascontiguousarray(data.counts, np.int64)),
        "last_seen": pa.array(np.ascontiguousarray(data.last_seen, np.float64)),
        "in": _table(data.vectors),
        "out": _table(data.contexts),
    }
    write_batch(path, pa.record_batch(columns))


VALUE_COLUMNS = ("count", *COUNT_COLUMNS[1:])
"""Columns of counts.arrow, in the order of `COUNT_COLUMNS`."""


def write_counts(path: Path, rows: WordCounts) -> None:
    """Write counts.arrow or earlier.arrow as one record batch, sorted by (word, source, window)."""
    columns = {
        "word": encoded(rows.words),
        "source": encoded(rows.sources),
        "window": pa.array(np.asarray(rows.windows, np.int64)),
    }
    for name, column in zip(VALUE_COLUMNS, rows.columns, strict=True):
        columns[name] = pa.array(np.asarray(column, np.int64))
    word, source = (columns[name].indices.to_numpy() for name in ("word", "source"))
    order = pa.array(np.lexsort((columns["window"].to_numpy(), source, word)))
    write_batch(path, pa.record_batch(columns).take(order))


def write_phrases(path: Path, phrases: Iterable[Phrase]) -> None:
    """Write phrases.arrow as one record batch."""
    rows = [asdict(phrase) for phrase in sorted(phrases, key=lambda phrase: phrase.word)]
    write_batch(path, pa.RecordBatch.from_pylist(rows, schema=pa.schema(PHRASE)))


def make_manifest(
    data: SnapshotData,
    files: dict[str, FileEntry],
    revision: int = 1,
    missing: Sequence[Missing] = (),
) -> Manifest:
    """The manifest of `data` whose files have been written."""
    config = json.loads(json.dumps(data.config, default=str))
    draft = Manifest(
        format=SNAPSHOT_FORMAT,
        id="",
        parent=data.parent,
        window=WindowEntry(label=data.window.label, start=data.window.start, end=data.window.end),
        words=len(data.words),
        dim=int(data.vectors.shape[1]),
        tokens={source: int(n) for source, n in data.tokens.items()},
        documents={source: int(n) for source, n in data.documents.items()},
        config=config,
        config_digest=data.config_digest,
        tokenizer_digest=data.tokenizer_digest,
        code_version=__version__,
        quality={k: float(v) for k, v in data.quality.items() if math.isfinite(v)},
        files=files,
        revision=revision,
        missing=tuple(missing),
    )
    return draft.model_copy(update={"id": draft.expected_id()})


def _table(values: npt.NDArray[np.float32]) -> pa.Array:
    """float32 [n, dim] as a fixed-size-list column, without a copy when it is contiguous."""
    flat = np.ascontiguousarray(values, np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])


def encoded(values: Sequence[str]) -> pa.DictionaryArray:
    """Dictionary-encode with a sorted dictionary, so that equal content has equal bytes."""
    column = pa.array(values, pa.string())
    dictionary = column.unique().sort()
    codes = pc.index_in(column, value_set=dictionary)
    return pa.DictionaryArray.from_arrays(codes, dictionary)
