"""What one reading of a dated corpus finds out before the training: what nodes need of it all."""

from __future__ import annotations

import logging
import math
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from embedding.kernel.errors import InputError
from embedding.kernel.records import Calendar
from embedding.training.request import TrainRequest
from embedding.worker.corpus.datedlines import DatedLines, dated_stretches
from embedding.worker.spec import CorpusShare

logger = logging.getLogger(__name__)

COUNTED = 100_000
"""Names that are counted, at most: one that comes behind so many others is not told apart."""


@dataclass(frozen=True)
class CorpusSurvey:
    """sources: those that are told apart, the one with the most text first
    characters: of each window, by its start in Unix seconds; of one share of the corpus each
    """

    sources: tuple[str, ...] = ()
    characters: tuple[tuple[tuple[int, int], ...], ...] = ()


class WindowCharacters:
    """Counts the characters of each window in the share of each of some nodes."""

    def __init__(self, nodes: int, calendar: Calendar) -> None:
        self._calendar = calendar
        self._counted: list[Counter[int]] = [Counter() for _ in range(nodes)]

    def add(self, stretch: int, lines: DatedLines) -> None:
        """Lines of the corpus' n-th stretch: the nodes take stretches in turn."""
        counted = self._counted[stretch % len(self._counted)]
        for start, part in lines.by_window(self._calendar):
            counted[start] += int(part.lengths.sum())

    def by_node(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """As `CorpusSurvey.characters`."""
        return tuple(tuple(sorted(counted.items())) for counted in self._counted)


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
        """Count lines."""
        if not self._most or not lines.name_sources:
            return
        for line, name in enumerate(lines.sources.to_pylist()):
            if not name:
                continue
            if name in self._characters or len(self._characters) < COUNTED:
                self._characters[name] += int(lines.lengths[line])
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


def surveyed(request: TrainRequest, calendar: Calendar) -> CorpusSurvey:
    """What one reading finds out; InputError for a corpus that is not in time order.

    Windows are cut as the dates pass: an earlier date after a later window comes too late.
    """
    sources = SourceCounter(request.corpus, request.sources)
    characters = WindowCharacters(request.nodes, calendar)
    window, latest = -math.inf, -math.inf
    share = CorpusShare(path=str(request.corpus), timezone=request.server.timezone)
    for stretch, lines in dated_stretches(share):
        sources.add(lines)
        characters.add(stretch, lines)
        starts = calendar.starts(lines.when)
        begun = np.maximum.accumulate(np.maximum(starts, window))
        if (starts < begun).any():
            late = int(np.argmax(starts < begun))
            latest = max([latest, *lines.when[:late].tolist()])
            shown, before = (
                _shown(moment, calendar) for moment in (float(lines.when[late]), latest)
            )
            raise InputError(
                f"{request.corpus}: line {lines.numbers[late] + 1} is dated {shown}, after a line "
                f"of {before}; a dated corpus is learnt in time order: sort it by date."
            )
        window, latest = float(begun[-1]), max(latest, float(lines.when.max()))
    return CorpusSurvey(sources.named(), characters.by_node())


def _shown(when: float, calendar: Calendar) -> str:
    """A time in the zone of windows, in days where it is a whole one."""
    moment = datetime.fromtimestamp(int(when), calendar.zone)
    text = moment.isoformat().replace("+00:00", "Z")
    return text if moment.hour or moment.minute or moment.second else text[:10]
