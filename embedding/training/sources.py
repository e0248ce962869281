"""Which sources of a dated corpus are told apart: those that have the most text."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path

from embedding.kernel.errors import InputError
from embedding.worker.corpus.corpus import named_source
from embedding.worker.corpus.datedlines import DatedLines, listed

logger = logging.getLogger(__name__)

COUNTED = 100_000
"""Names that are counted, at most: one that comes behind so many others is not told apart."""


class SourceCounter:
    """Counts the text of each source that lines name, in one pass and in bounded memory.

    most  sources that are told apart; 0 counts none
    """

    def __init__(self, corpus: Path, most: int) -> None:
        self._corpus = corpus
        self._most = most
        self._characters: Counter[str] = Counter()
        self._passed_over = False

    def add(self, lines: DatedLines) -> None:
        """Count lines; raises InputError naming the line when what it names is no source."""
        if not self._most or not lines.name_sources:
            return
        for at, source in enumerate(listed(lines.sources)):
            try:
                name = named_source(source)
            except InputError as error:
                raise InputError(
                    f"{self._corpus}: line {lines.numbers[at] + 1}: {error}"
                ) from error
            if not name:
                continue
            if name in self._characters or len(self._characters) < COUNTED:
                self._characters[name] += int(lines.lengths[at])
            else:
                self._passed_over = True

    def named(self) -> tuple[str, ...]:
        """Those that are told apart, the one with the most text first; says how many are not."""
        ranked = sorted(self._characters.items(), key=lambda item: (-item[1], item[0]))
        if len(ranked) > self._most:
            many = f"{len(ranked):,}" + (" and more" if self._passed_over else "")
            logger.warning(
                "%s: %s sources; the %d with the most text are told apart, the others are counted "
                "as one (--sources).",
                self._corpus,
                many,
                self._most,
            )
        return tuple(name for name, _ in ranked[: self._most])
