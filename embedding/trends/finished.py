"""Finished reports: those of a folder that are what would be computed now.

They are of the same snapshots, in the same revisions, and of the same settings. The page, commands,
Python and Airflow ask here first, and compute what is not there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from embedding.kernel.records import SnapshotRef
from embedding.trends import storage
from embedding.trends.material import lineage

if TYPE_CHECKING:
    from embedding.trends.config import TrendsConfig
    from embedding.trends.rows import TrendReport
    from embedding.trends.scoretable import WordScores


class FinishedReports:
    """The reports in a folder that are of these snapshots and settings.

    refs    all snapshots by window start (`SnapshotStore.list`)
    folder  of reports; None: there is none
    """

    def __init__(
        self, refs: Sequence[SnapshotRef], config: TrendsConfig, folder: Path | None
    ) -> None:
        self._refs = {ref.id: ref for ref in refs}
        self._config, self._folder = config, folder
        self._keys: dict[str, str] = {}

    def key(self, id: str) -> str:
        """The key that a report of a snapshot has if it is computed now; "" for an unknown one."""
        if id not in self._keys:
            ref, refs = self._refs.get(id), [*self._refs.values()]
            self._keys[id] = storage.key_of(lineage(refs, ref), self._config) if ref else ""
        return self._keys[id]

    def report(self, id: str) -> TrendReport | None:
        """The finished report of a snapshot; None where there is none, or one of something else."""
        key = self.key(id)
        return storage.load_of(self._folder, id, key) if self._folder and key else None

    def scores(self, id: str) -> WordScores | None:
        """The figures of every word that the finished report compared; None as for `report`."""
        key = self.key(id)
        return storage.load_scores(self._folder, id, key) if self._folder and key else None
