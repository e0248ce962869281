"""What a node notes of where words were read: addresses, for the words that have a row."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from embedding.kernel.records import Calendar, IntArray, TokenBlock
from embedding.snapshots.evidence import (
    DAY,
    EVIDENCE_SCHEMA,
    EvidenceStore,
    named,
    page_of,
    sampled,
    unlinked_hashes,
)
from embedding.worker.corpus.authors import mixed, name_marks

logger = logging.getLogger(__name__)

WRITE_SECONDS = 20.0
MOST_ROWS = 400_000


class EvidenceKeeper:
    """Gathers addresses and writes them now and then; losing some of them loses no count."""

    def __init__(self, folder: Path, node: str, calendar: Calendar) -> None:
        self._store = EvidenceStore(folder)
        self._node = node
        self._calendar = calendar
        self._key = os.urandom(16)
        self._parts: list[pa.Table] = []
        self._rows = 0
        self._written = time.monotonic()
        self._lock = threading.Lock()

    def read(self, blocks: Sequence[TokenBlock], tables: Sequence[IntArray]) -> None:
        """Note the documents of each word of `blocks` that has a row (`tables`: id, -1: none)."""
        for block, ids in zip(blocks, tables, strict=True):
            part = _rows_of(block, ids, self._key, self._calendar)
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


def _rows_of(block: TokenBlock, ids: IntArray, key: bytes, calendar: Calendar) -> pa.Table:
    linked = np.array([key.startswith(("http://", "https://")) for key in block.keys], dtype=bool)
    document = np.repeat(np.arange(block.n_documents), np.diff(block.document_tokens()))
    code = np.asarray(block.codes, dtype=np.int64)
    pairs = np.unique((document * len(block.words) + code)[linked[document]])
    at, word = np.divmod(pairs, max(len(block.words), 1))
    pages = np.array([page_of(each) for each in block.keys], dtype=object)
    # Of all words, with or without a row: a document read again later names no others.
    choice = mixed(mixed(name_marks(pages.tolist()))[at] ^ name_marks(block.words)[word])
    place = np.unique(pages, return_inverse=True)[1]
    open_to_all = named(place[at], (choice >> np.uint64(1)).astype(np.int64))
    if len(block.inline):
        open_to_all &= block.inline[at] == 0
    known = np.asarray(ids)[word] >= 0
    at, word, open_to_all = at[known], word[known], open_to_all[known]
    own, words = pages[at], [block.words[i] for i in word]
    days = calendar.days(block.published)[at]
    return pa.table(
        {
            "word": pa.array(words, pa.string()),
            "source": pa.array([block.source] * len(words), pa.string()),
            "day": pa.array(days.astype(np.int32)),
            "hash": pa.array(unlinked_hashes(own.tolist(), words, key)),
            "url": pa.array(np.where(open_to_all, own, ""), pa.string()),
            "published": pa.array(days * float(DAY)),
        },
        schema=EVIDENCE_SCHEMA,
    )
