"""Whether a demo found what its corpus was made with, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from embedding.snapshots.store import SnapshotStore
from embedding.trends.rows import RANKINGS, ROLES
from yeoron_simweb.generated import truth
from yeoron_simweb.sources import PART_OF_SOURCE

DIFFERS = "used differently"
"""What happened to a word that one source uses in its own way; the others are ROLES."""


@dataclass(frozen=True, order=True)
class Called:
    """A word, what happened to it, and where: the label of a window, or a source."""

    where: str
    word: str
    what: str

    def __str__(self) -> str:
        return f"{self.word} ({self.what}, {self.where})"


def planted() -> frozenset[Called]:
    """What the generated corpus was made with, as it says itself."""
    made = truth()
    source_of = {part: source for source, part in PART_OF_SOURCE.items()}
    changes = [
        Called(planted["date"][:7], planted["word"], ROLES[kind])
        for kind in ("born", "moved")
        for planted in made[kind]
    ]
    contrasts = (
        Called(source_of[planted["part"]], planted["word"], DIFFERS) for planted in made["contrast"]
    )
    return frozenset([*changes, *contrasts])


def called(
    trends: Iterable[Mapping[str, Any]], contrasts: Iterable[Mapping[str, Any]]
) -> frozenset[Called]:
    """What a demo's windows and its sources show (`summary.of_report`, `summary.of_sources`)."""
    windows = [
        Called(report["window"], row["word"], ROLES[kind])
        for report in trends
        for kind in RANKINGS
        for row in report[kind]
    ]
    sources = (Called(row["source"], row["word"], DIFFERS) for row in contrasts)
    return frozenset([*windows, *sources])


def astray(
    wanted: frozenset[Called], calls: frozenset[Called]
) -> tuple[list[Called], list[Called]]:
    """What is missing, and what is too much.

    A new word is used more often than in the months before, too, while some of them lack it.
    """
    new = {call.word: call.where for call in wanted if call.what == ROLES["born"]}
    more = {
        call
        for call in calls - wanted
        if not (call.what == ROLES["risen"] and call.word in new and call.where >= new[call.word])
    }
    return sorted(wanted - calls), sorted(more)


def verdict(wanted: frozenset[Called], calls: frozenset[Called]) -> tuple[bool, str]:
    """Whether all that was planted was found and nothing else, and a sentence that says it."""
    missing, more = astray(wanted, calls)
    parts = [f"planted: {', '.join(map(str, sorted(wanted)))}"]
    if not missing and not more:
        return True, f"{parts[0]}; found: all of it, and nothing else"
    parts.append(f"found: {', '.join(map(str, sorted(calls))) or 'nothing'}")
    parts += [f"missing: {', '.join(map(str, missing))}"] if missing else []
    parts += [f"not planted: {', '.join(map(str, more))}"] if more else []
    return False, "; ".join(parts)


def incomplete(store: SnapshotStore) -> list[str]:
    """What the snapshots lack of their windows; nothing where each says how words were used."""
    lacking = []
    for ref in store.list():
        snapshot = store.open(ref.id)
        label = snapshot.manifest.window.label
        lacking += [f"{label} {lacks.part} ({lacks.reason})" for lacks in snapshot.manifest.missing]
        if snapshot.usage is None:
            lacking.append(f"{label} says nothing of how words were used")
    return lacking
