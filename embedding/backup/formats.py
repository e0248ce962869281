"""Versions of all stores that a backup holds; each is refused by itself too, where it is opened."""

from __future__ import annotations

from collections.abc import Mapping

from embedding.crawl.tables import FRONTIER_VERSION
from embedding.kernel.errors import InputError
from embedding.server.recovery.restoring import READABLE
from embedding.server.shards.recovery import SHARD_FORMAT
from embedding.snapshots.evidence import EVIDENCE_FORMAT
from embedding.snapshots.format import SNAPSHOT_FORMAT
from embedding.trends.rows import REPORT_FORMAT

STORED_FORMATS: Mapping[str, int] = {
    "checkpoint": max(READABLE),
    "shard checkpoint": SHARD_FORMAT,
    "snapshot": SNAPSHOT_FORMAT,
    "frontier": FRONTIER_VERSION,
    "evidence": EVIDENCE_FORMAT,
    "report": REPORT_FORMAT,
}
"""The newest format of each store that this version writes and reads."""


def check_formats(found: Mapping[str, int], where: str) -> None:
    """InputError where a store is of a newer version than this one."""
    for name, version in found.items():
        newest = STORED_FORMATS.get(name, 0)
        if version > newest:
            raise InputError(
                f"{where}: its {name} has format {version}, which a newer version of Yeoron wrote; "
                f"this version reads up to {newest}."
            )
