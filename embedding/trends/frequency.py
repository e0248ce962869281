"""How often words occur in one window: occurrences and documents by word and source."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from embedding.kernel.records import COUNT_COLUMNS, CountColumns, IntArray, WordCounts
from embedding.snapshots.snapshot import Snapshot

Rates = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Frequency(CountColumns):
    """Counts of one window (or of several, added up).

    words    str [n], those that occur
    sources  str [S], sorted
    counts, documents, authors, voices   int64 [n, S], see `CountColumns`
    total_tokens, total_documents        int64 [S]: everything that was read from the source
    """

    words: Sequence[str]
    sources: tuple[str, ...]
    counts: IntArray
    documents: IntArray
    total_tokens: IntArray
    total_documents: IntArray
    authors: IntArray | None = None
    voices: IntArray | None = None

    @classmethod
    def of(
        cls, by_source: WordCounts, tokens: Mapping[str, int], documents: Mapping[str, int]
    ) -> Frequency:
        """Sum `by_source` over its windows; totals come from `tokens` and `documents`."""
        words, rows = _codes(by_source.words)
        source_names, source_codes = _codes(by_source.sources)
        sources = tuple(sorted({*source_names, *tokens, *documents}))
        place = {name: i for i, name in enumerate(sources)}
        columns = np.asarray([place[name] for name in source_names], dtype=np.int64)[source_codes]
        tables = {name: np.zeros((len(words), len(sources)), np.int64) for name in COUNT_COLUMNS}
        for table, column in zip(tables.values(), by_source.columns, strict=True):
            np.add.at(table, (rows, columns), np.asarray(column, dtype=np.int64))
        return cls(
            words=words,
            sources=sources,
            total_tokens=np.asarray([tokens.get(s, 0) for s in sources], dtype=np.int64),
            total_documents=np.asarray([documents.get(s, 0) for s in sources], dtype=np.int64),
            **tables,
        )

    @classmethod
    def read(cls, snapshot: Snapshot, later: Sequence[Snapshot] = ()) -> Frequency:
        """The window of a snapshot, from its dictionary-encoded table.

        later  snapshots after it, which may count words in it that had no row yet
        """
        manifest = snapshot.manifest
        counted = cls.of(snapshot.encoded_counts, manifest.tokens, manifest.documents)
        for following in later:
            counts = following.earlier_of(manifest.as_window())
            if counts is not None and len(counts.words):
                counted = add([counted, cls.of(counts, {}, {}).without(counted.index)])
        return counted

    def without(self, known: Container[str]) -> Frequency:
        """The same without some words."""
        own = [row for row, word in enumerate(self.words) if word not in known]
        columns: dict[str, Any] = dict(zip(COUNT_COLUMNS, self.columns, strict=True))
        columns = {name: column[own] for name, column in columns.items()}
        return replace(self, words=[self.words[row] for row in own], **columns)

    @cached_property
    def index(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    @property
    def empty(self) -> bool:
        return int(self.total_documents.sum()) == 0 and int(self.counts.sum()) == 0

    def rows(self, words: Sequence[str]) -> IntArray:
        """int64 [len(words)]: row of each word, −1 where it does not occur."""
        get = self.index.get
        return np.asarray([get(word, -1) for word in words], dtype=np.int64)

    def take(self, words: Sequence[str], sources: Sequence[str]) -> tuple[IntArray, IntArray]:
        """(counts, documents) int64 [len(words), len(sources)]; 0 where unknown."""
        counts, documents = self.tables(("counts", "documents"), words, sources)
        return counts, documents

    def column(self, name: str, words: Sequence[str], sources: Sequence[str]) -> IntArray:
        """One of `COUNT_COLUMNS`, int64 [len(words), len(sources)]; 0 where unknown."""
        return next(self.tables((name,), words, sources))

    def tables(
        self, names: Sequence[str], words: Sequence[str], sources: Sequence[str]
    ) -> Iterator[IntArray]:
        """Some of `COUNT_COLUMNS` one after the other, each as `column` has it."""
        place = {source: at for at, source in enumerate(self.sources)}
        columns_of = np.asarray([place.get(source, -1) for source in sources], dtype=np.int64)
        chosen = np.ix_(self.rows(words), columns_of)
        columns = dict(zip(COUNT_COLUMNS, self.columns, strict=True))
        for name in names:
            # With a last row and a last column of zeros, which -1 finds.
            yield np.pad(columns[name], ((0, 1), (0, 1)))[chosen]

    def counts_of(self, words: Sequence[str]) -> IntArray:
        occurrences: IntArray = self.column("counts", words, self.sources).sum(axis=1)
        return occurrences

    def documents_of(self, words: Sequence[str]) -> IntArray:
        """int64 [len(words)]: documents of all sources that hold the word."""
        documents: IntArray = self.column("documents", words, self.sources).sum(axis=1)
        return documents

    def authors_of(self, words: Sequence[str]) -> list[int | None]:
        """Known authors of these documents; None where none is known."""
        known = self.column("authors", words, self.sources).sum(axis=1).tolist()
        return [n or None for n in known]

    def totals(self, sources: Sequence[str]) -> tuple[IntArray, IntArray]:
        """(tokens, documents) int64 [len(sources)] read from each of `sources`; 0 if unknown."""
        place = {name: at for at, name in enumerate(self.sources)}
        at = [place.get(name, -1) for name in sources]
        tokens, documents = (np.append(n, 0)[at] for n in (self.total_tokens, self.total_documents))
        return tokens, documents

    def rate(self, words: Sequence[str]) -> Rates:
        """float64 [len(words)]: documents that hold the word, per 1,000 documents."""
        total = max(int(self.total_documents.sum()), 1)
        rates: Rates = self.documents_of(words) * 1000.0 / total
        return rates

    def usual_rate(self, words: Sequence[str], now: Frequency) -> Rates:
        """float64 [len(words)]: documents of the window `now` that would hold the word, per 1,000.

        Each source is taken to use it as it does here; one that was not read here as all do.
        """
        documents, read = self.take(words, now.sources)[1], self.totals(now.sources)[1]
        whole = self.rate(words) / 1000.0
        rates = np.where(read > 0, documents / np.maximum(read, 1), whole[:, None])
        mix = now.total_documents / max(int(now.total_documents.sum()), 1)
        usual: Rates = rates @ mix * 1000.0
        return usual


def add(parts: Sequence[Frequency]) -> Frequency:
    """The windows of `parts` added up."""
    if len(parts) == 1:
        return parts[0]
    sources = tuple(sorted({name for part in parts for name in part.sources}))
    words = list(dict.fromkeys(word for part in parts for word in part.words))
    tables = {name: np.zeros((len(words), len(sources)), np.int64) for name in COUNT_COLUMNS}
    tokens = np.zeros(len(sources), np.int64)
    read = np.zeros(len(sources), np.int64)
    for part in parts:
        more = part.tables(COUNT_COLUMNS, words, sources)
        for table, column in zip(tables.values(), more, strict=True):
            table += column
        more_tokens, more_read = part.totals(sources)
        tokens += more_tokens
        read += more_read
    return Frequency(words, sources, total_tokens=tokens, total_documents=read, **tables)


def _codes(values: Sequence[str]) -> tuple[list[str], IntArray]:
    """Distinct values in order of appearance and int64 codes into them."""
    if len(values) == 0:
        return [], np.zeros(0, dtype=np.int64)
    column = values if isinstance(values, pa.Array) else pa.array(values, pa.string())
    encoded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    codes: IntArray = encoded.indices.to_numpy().astype(np.int64)
    return [str(value) for value in encoded.dictionary.to_pylist()], codes
