"""What one reading of a dated corpus finds out before the training: what nodes need of it all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from embedding.kernel.records import WindowUnit
from embedding.worker.corpus.datedlines import DatedLines


@dataclass(frozen=True)
class CorpusSurvey:
    """sources: those that are told apart, the one with the most text first
    characters: of each window, by its start in Unix seconds; of one share of the corpus each
    """

    sources: tuple[str, ...] = ()
    characters: tuple[tuple[tuple[int, int], ...], ...] = ()


class WindowCharacters:
    """Counts the characters of each window in the share of each of some nodes."""

    def __init__(self, nodes: int, unit: WindowUnit) -> None:
        self._unit = unit
        self._counted: list[Counter[int]] = [Counter() for _ in range(nodes)]

    def add(self, stretch: int, lines: DatedLines) -> None:
        """Lines of the corpus' n-th stretch: stretches are dealt out to the nodes in turn."""
        counted = self._counted[stretch % len(self._counted)]
        for start, part in lines.by_window(self._unit):
            counted[start] += int(part.lengths.sum())

    def by_node(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """As `CorpusSurvey.characters`."""
        return tuple(tuple(sorted(counted.items())) for counted in self._counted)
