"""Finding snapshots: by id, by window, as a series."""

from __future__ import annotations

from embedding.kernel.errors import SnapshotError
from embedding.kernel.records import SnapshotRef, Window
from embedding.snapshots.store import SnapshotStore


class Catalogue:
    """The snapshots of a store at one moment; reads manifests only."""

    def __init__(self, store: SnapshotStore) -> None:
        self.store = store
        self.refs = store.list()
        self._by_id = {ref.id: ref for ref in self.refs}

    def ref(self, id: str) -> SnapshotRef:  # noqa: A002 - the field's name
        """The pointer with this id (or `latest`); raises SnapshotError."""
        if id == "latest" and self.refs:
            return self.refs[-1]
        try:
            return self._by_id[id]
        except KeyError as error:
            known = ", ".join(ref.id for ref in self.refs[-3:]) or "none"
            raise SnapshotError(
                f"snapshot {id[:120]}: there is none of that id in {self.store.uri} "
                f"(newest there: {known})."
            ) from error

    def series(self) -> list[SnapshotRef]:
        """One snapshot a window, the last one cut, in event time."""
        by_window = {(ref.window_start, ref.window_end): ref for ref in self.refs}
        return list(by_window.values())

    def window(self, label: str) -> SnapshotRef:
        """The last snapshot cut of the window with this label (`2020-02`); SnapshotError."""
        for ref in reversed(self.refs):
            if Window(ref.window_start, ref.window_end).label == label:
                return ref
        labels = [Window(ref.window_start, ref.window_end).label for ref in self.series()]
        held = f"{labels[0]} … {labels[-1]}" if labels else "no window"
        raise SnapshotError(f"{self.store.uri}: no snapshot of window {label!r}; it holds {held}.")
