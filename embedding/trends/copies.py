"""Text that repeats itself counts once where words are tested, and is named.

Tests count one document of each author, but a thousand accounts that paste one text are as many
authors. A snapshot's sums of usage read each passage once (`worker/usage/contexts.py`)
and so say in how many texts a word stands. They leave out some documents of all words, too, in
which nothing stands beside a word: so texts are compared with those of a usual word of the same
source. A word that has less than a quarter of what is usual stands mostly in copies; its documents
are then as many as its texts would usually be of. From there to half of what is usual its documents
rise to all of them: with an edge a word on it would rise or fall where nothing happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from embedding.kernel.records import IntArray
from embedding.snapshots.snapshot import Snapshot
from embedding.trends.frequency import Frequency
from embedding.trends.material import Mask, ReportInput, Windows
from embedding.trends.rows import Note
from embedding.trends.significance import TestArray

LEAST_COPIED = 8
"""Documents below which copies are not looked for."""
UNTOLD = 2.0
"""Most texts of a word that has no sums: those of fewer than three are not sent."""
COPIED = 0.25
"""Share of a source's documents that hold its average word, if they are copies of few texts."""
_FULL = 0.9
"""Share of the sums that a server keeps at most, behind which a word without any says nothing."""
_USUAL = 30
"""Documents of a word, or a source, that tell what is usual."""
_WORDS = 20
"""Such words of a source below which each document is taken to be a text."""
_NAMED = 5
_COPIES = 30
"""Documents beyond its texts that a word has to have to be named."""
_MENTIONS = 500
"""Mentions beyond those usual in so many documents, from which on a word is named."""


def counted_once(counted: Frequency, snapshot: Snapshot) -> Frequency:
    """A snapshot's window with one document of each author, and copies once where it says which.

    So are its `documents` counted where words are tested.
    """
    usage = snapshot.usage
    documents = counted.columns[3].copy()
    if usage is not None and len(usage) >= _FULL * _limit(snapshot):
        return replace(counted, documents=documents)
    by_source = {} if usage is None else usage.by_source
    rows = snapshot.rows(counted.words) if by_source else None
    for column, name in enumerate(counted.sources):
        written, own = documents[:, column], by_source.get(name)
        if usage is not None and rows is not None and own is not None:
            texts = np.zeros(len(snapshot) + 1)
            texts[usage.rows[own]] = usage.pairs[own].sum(axis=1)
            documents[:, column] = _once(written, texts[rows], known=rows >= 0)
        elif few_texts(written, int(counted.total_documents[column])):
            # Of others that do not say it, a node may have died before it told.
            documents[:, column] = np.minimum(written, int(UNTOLD))
    if usage is not None:
        usage.release()
    return replace(counted, documents=documents)


def with_copies_once(material: ReportInput, windows: int) -> ReportInput:
    """The window and those before it with one document of each author.

    In this window and in so many before it, copies of a text are counted once, too.
    """
    first = max(0, len(material.past) - windows)

    @lru_cache(maxsize=windows)
    def once(window: int) -> Frequency:
        return counted_once(material.past[window], material.earlier[window])

    def read(window: int) -> Frequency:
        past = material.past[window]
        return replace(past, documents=past.columns[3]) if window < first else once(window)

    now = counted_once(material.now, material.snapshot)
    return replace(material, now=now, past=Windows(len(material.past), read))


def few_texts(holding: IntArray, read: int) -> bool:
    """Whether an average word is in so many of the documents as in copies of few texts alone.

    holding  int64 [n], documents of each word; read: all documents
    """
    used = holding[holding > 0]
    return read >= _USUAL and len(used) > 0 and float(used.mean()) >= COPIED * read


def _once(documents: IntArray, texts: TestArray, known: Mask) -> IntArray:
    """Documents [n], fewer for words that stand mostly in copies. documents: copies too."""
    often = known & (documents >= _USUAL)
    usual = float(np.median(texts[often] / documents[often])) if often.sum() >= _WORDS else 1.0
    once = np.maximum(texts, np.minimum(documents, UNTOLD)) / max(usual, 1e-9)
    own = np.clip(4.0 * once / np.maximum(documents, 1) - 1.0, 0.0, 1.0)
    own[~known | (documents < LEAST_COPIED)] = 1.0
    fewer = np.ceil(np.minimum(once + own * (documents - once), documents))
    rounded: IntArray = fewer.astype(np.int64)
    return rounded


def _limit(snapshot: Snapshot) -> float:
    """Most words that the server kept sums of: behind it, one without any says nothing."""
    server = snapshot.manifest.config.get("server")
    return float(server.get("usage_words", np.inf)) if isinstance(server, dict) else np.inf


def repetition_notes(material: ReportInput, once: Frequency, baseline: Frequency) -> list[Note]:
    """Which words copies of few texts, or few authors, write much more often than is usual.

    once  the window's counts, with copies counted once
    """
    now, label = material.now, material.snapshot.manifest.window.label
    words = [*now.words]
    names = ("counts", "voices")
    counts, documents = (now.column(n, words, now.sources).sum(axis=1) for n in names)
    notes = []
    usual = baseline.usual_rate(words, now) * now.total_documents.sum() / 1000.0
    copies = documents - once.documents.sum(axis=1)
    copied = (copies >= _COPIES) & (documents >= 3.0 * usual)
    if copied.any():
        named = _names(words, np.where(copied, copies / (usual + 1.0), 0))
        sentence = f"{label}: {named} stand mostly in copies of the same text; copies count once."
        notes.append(Note("copied_text", sentence, words=named))
    before, holding = (n.sum(axis=1) for n in baseline.take(words, baseline.sources))
    usual_each = np.where(holding > 0, before / np.maximum(holding, 1), 1.0)
    beyond = counts - 4.0 * documents * np.maximum(usual_each, 1.0)
    if (beyond >= _MENTIONS).any():
        named = _names(words, np.where(beyond >= _MENTIONS, beyond, 0))
        sentence = f"{label}: few authors write {named} over and over; each of them counts once."
        notes.append(Note("repeated_word", sentence, words=named))
    return notes


def _names(words: Sequence[str], much: TestArray) -> str:
    order = np.argsort(-much, kind="stable")[:_NAMED]
    named = ", ".join(words[place][:40] for place in order.tolist() if much[place] > 0)
    return named + (" …" if int((much > 0).sum()) > _NAMED else "")
