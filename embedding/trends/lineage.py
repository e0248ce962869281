"""Which snapshots lie before a snapshot: its ancestors, one for each window."""

from __future__ import annotations

from collections.abc import Sequence

from embedding.kernel.records import SnapshotRef


def lineage(refs: Sequence[SnapshotRef], ref: SnapshotRef) -> list[SnapshotRef]:
    """The snapshots before `ref`, oldest first, `ref` itself last.

    refs  all snapshots by window start (`SnapshotStore.list`)

    Parents are followed as far as the store holds them; where a parent is missing (pruned, or
    the stream began again) the latest snapshot of an earlier window takes its place. A window that
    was cut again counts once, with its latest cut.
    """
    by_id = {one.id: one for one in refs}
    chain = [ref]
    current: SnapshotRef | None = ref
    seen = {ref.id}
    while current is not None:
        parent = by_id.get(current.parent or "")
        if parent is None or parent.id in seen:
            earlier = [one for one in refs if one.window_start < current.window_start]
            parent = earlier[-1] if earlier else None
        if parent is not None:
            seen.add(parent.id)
            if parent.window_start < chain[-1].window_start:
                chain.append(parent)
        current = parent
    return chain[::-1]
