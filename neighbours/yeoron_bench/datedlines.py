"""The dated lines of a corpus, a line at a time."""

from __future__ import annotations

from collections.abc import Iterator

from embedding.worker.corpus.corpus import CorpusLine, Fault, unsaid
from embedding.worker.corpus.datedlines import dated_columns
from embedding.worker.spec import CorpusShare


def dated_lines(share: CorpusShare, fault: Fault = unsaid) -> Iterator[CorpusLine]:
    """As `dated_columns` has them."""
    for lines in dated_columns(share, fault=fault):
        numbers, when, done = (each.tolist() for each in (lines.numbers, lines.when, lines.done))
        yield from map(
            CorpusLine, numbers, lines.texts.to_pylist(), when, done, lines.sources.to_pylist()
        )
