"""Whole snapshots, by their id or by the name of their window."""

from __future__ import annotations

from embedding.kernel.errors import InputError
from embedding.snapshots.store import LATEST, SnapshotStore

_SHOWN = 5
"""Windows that a sentence names."""


def of_window(store: SnapshotStore, text: str) -> str:
    """The id of the last snapshot of the window `text` (`2020-02`); other text as it is."""
    refs = store.list()
    if text == LATEST or text in {ref.id for ref in refs}:
        return text
    # The last of a window that was cut again counts.
    found = [ref.id for ref in refs if store.manifest(ref.id).window.label == text]
    return found[-1] if found else text


def snapshot_named(store: SnapshotStore, text: str) -> str:
    """The id of the snapshot with this id, or of this window (`2020-02`); `latest` is accepted.

    Raises SnapshotError for one that was withdrawn, InputError for one that is not there.
    """
    named = of_window(store, text)
    labels = {ref.id: store.manifest(ref.id).window.label for ref in store.list()}
    if named == LATEST or named in labels:
        return store.open(named).id
    for name in store.withdrawn():
        if text == name or store.manifest(name).window.label == text:
            store.open(name)
    known = f"{', '.join([*dict.fromkeys(labels.values())][-_SHOWN:])}" if labels else "none"
    raise InputError(
        f"{text[:80]!r}: no snapshot and no window of the store; its last windows are {known}."
    )
