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
    return frozenset(
        [
            Called(one["date"][:7], one["word"], ROLES[kind])
            for kind in ("born", "moved")
            for one in made[kind]
        ]
        + [Called(source_of[one["part"]], one["word"], DIFFERS) for one in made["contrast"]]
    )


def called(
    trends: Iterable[Mapping[str, Any]], contrasts: Iterable[Mapping[str, Any]]
) -> frozenset[Called]:
    """What a demo's windows and its sources show (`summary.of_report`, `summary.of_sources`)."""
    windows = [
        Called(row["window"], one["word"], ROLES[kind])
        for row in trends
        for kind in RANKINGS
        for one in row[kind]
    ]
    return frozenset(
        [*windows, *(Called(one["source"], one["word"], DIFFERS) for one in contrasts)]
    )


def astray(
    wanted: frozenset[Called], found: frozenset[Called]
) -> tuple[list[Called], list[Called]]:
    """What is missing, and what is too much.

    A new word is used more often than in the months before, too, while some of them lack it.
    """
    new = {one.word: one.where for one in wanted if one.what == ROLES["born"]}
    more = {
        one
        for one in found - wanted
        if not (one.what == ROLES["risen"] and one.word in new and one.where >= new[one.word])
    }
    return sorted(wanted - found), sorted(more)


def verdict(wanted: frozenset[Called], found: frozenset[Called]) -> tuple[bool, str]:
    """Whether all that was planted was found and nothing else, and a sentence that says it."""
    missing, more = astray(wanted, found)
    parts = [f"planted: {', '.join(map(str, sorted(wanted)))}"]
    if not missing and not more:
        return True, f"{parts[0]}; found: all of it, and nothing else"
    parts.append(f"found: {', '.join(map(str, sorted(found))) or 'nothing'}")
    parts += [f"missing: {', '.join(map(str, missing))}"] if missing else []
    parts += [f"not planted: {', '.join(map(str, more))}"] if more else []
    return False, "; ".join(parts)


def incomplete(store: SnapshotStore) -> list[str]:
    """What the snapshots lack of their windows; nothing where each says how words were used."""
    found = []
    for ref in store.list():
        snapshot = store.open(ref.id)
        label = snapshot.manifest.window.label
        found += [f"{label} {lacks.part} ({lacks.reason})" for lacks in snapshot.manifest.missing]
        if snapshot.usage is None:
            found.append(f"{label} says nothing of how words were used")
    return found
