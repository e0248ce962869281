"""What a node notes of where words were read: addresses, for the words that have a row."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from embedding.crawl.keys import key_digest
from embedding.kernel.records import IntArray, TokenBlock
from embedding.snapshots.evidence import DAY, EVIDENCE_SCHEMA, EvidenceStore, page_of, sampled
from embedding.worker.corpus.authors import GOLDEN, finished

logger = logging.getLogger(__name__)

WRITE_SECONDS = 20.0
MOST_ROWS = 400_000


class EvidenceKeeper:
    """Gathers addresses and writes them now and then; losing some of them loses no count."""

    def __init__(self, folder: Path, node: str) -> None:
        self._store = EvidenceStore(folder)
        self._node = node
        self._parts: list[pa.Table] = []
        self._rows = 0
        self._written = time.monotonic()
        self._lock = threading.Lock()

    def read(self, blocks: Sequence[TokenBlock], tables: Sequence[IntArray]) -> None:
        """Note the documents of each word of `blocks` that has a row (`tables`: id, -1: none)."""
        for block, ids in zip(blocks, tables, strict=True):
            part = _rows_of(block, ids)
            with self._lock:
                self._parts.append(part)
                self._rows += part.num_rows
        if self._rows > MOST_ROWS or time.monotonic() - self._written > WRITE_SECONDS:
            self.write()

    def write(self) -> None:
        """Publish what was gathered; a place that cannot be written is logged, not raised."""
        with self._lock:
            parts, self._parts, self._rows = self._parts, [], 0
        self._written = time.monotonic()
        if not any(part.num_rows for part in parts):
            return
        try:
            self._store.add(sampled(pa.concat_tables(parts)), self._node)
        except (OSError, pa.ArrowException) as error:
            logger.warning("%s: addresses of documents were not kept: %s", self._node, error)


def _rows_of(block: TokenBlock, ids: IntArray) -> pa.Table:
    linked = np.array([key.startswith(("http://", "https://")) for key in block.keys], dtype=bool)
    document = np.repeat(np.arange(block.n_documents), np.diff(block.document_tokens()))
    code = np.asarray(block.codes, dtype=np.int64)
    wanted = linked[document] & (np.asarray(ids)[code] >= 0)
    pairs = np.unique(document[wanted] * len(block.words) + code[wanted])
    at, word = np.divmod(pairs, max(len(block.words), 1))
    pages = [page_of(key) for key in block.keys]
    digests = np.array([key_digest(page) for page in pages], dtype=np.uint64)
    mixed = finished(digests[at] + np.asarray(ids)[word].astype(np.uint64) * GOLDEN)
    return pa.table(
        {
            "word": pa.array(block.words, pa.string()).take(pa.array(word)),
            "source": pa.array([block.source] * len(pairs), pa.string()),
            "day": pa.array((block.published[at] // DAY).astype(np.int32)),
            "hash": pa.array((mixed >> np.uint64(1)).astype(np.int64)),
            "url": pa.array(pages, pa.string()).take(pa.array(at)),
            "published": pa.array(block.published[at].astype(np.float64)),
        },
        schema=EVIDENCE_SCHEMA,
    )
