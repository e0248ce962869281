"""Why a word moved: the contexts that pulled it, as its snapshot says."""

from __future__ import annotations

from embedding.snapshots.snapshot import Snapshot
from embedding.trends.rows import ContextPull


def pulling(snapshot: Snapshot, word: str) -> tuple[ContextPull, ...]:
    """The contexts that pulled a word in a snapshot's window, the largest shares first.

    Empty where the snapshot does not say it: of one that was cut before 2026-11-25, and of words
    that hardly shifted.
    """
    row = snapshot.index(word)
    if row is None or snapshot.pulls is None:
        return ()
    pulls = snapshot.pulls
    found = [
        ContextPull(
            snapshot.words[int(pulls.contexts[at])],
            float(pulls.share[at]),
            float(pulls.before[at]),
            float(pulls.after[at]),
        )
        for at in pulls.of(row)
    ]
    return tuple(sorted(found, key=lambda one: (-one.share, one.word)))
