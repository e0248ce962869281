"""A stream of which one month was cut before its nodes had sent how words were used."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from embedding.kernel.records import SnapshotData
from embedding.snapshots.store import SnapshotStore

JANUARY = 2
"""Number of the month that lacks it; February is the last one."""
CUT_EARLY = {"settled": 0.0}


def parts(planted: ModuleType, windows: int = 4) -> list[SnapshotData]:
    """The months from November 2019 on, of a server that keeps how words are used."""
    plan = planted.Plan(windows=windows, fillers=120)
    return [
        replace(data, config={**data.config, "server": {"usage": True}})
        for data in planted.stream(plan)
    ]


def incomplete_store(
    folder: Path, planted: ModuleType, lacking: Collection[int] = (JANUARY,)
) -> SnapshotStore:
    """Months from November 2019 to February 2020.

    lacking  numbers of those without how words were used, as older servers left them
    """
    store, parent = SnapshotStore(str(folder)), None
    for at, data in enumerate(parts(planted)):
        quality = dict(data.quality) | (CUT_EARLY if at in lacking else {"settled": 1.0})
        use = None
        if at not in lacking:
            own = (len(data.words), data.vectors.shape[1], sorted(data.documents))
            now, before = (planted.source_usage(*own) for _ in range(2))
            use = replace(now, reread=(now, before))
        parent = store.publish(replace(data, parent=parent, quality=quality), use).id
    return store
