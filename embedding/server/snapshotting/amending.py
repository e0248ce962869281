"""Revisions of a published snapshot: with the documents and the use of words that came after it.

The vectors of a revision are those of the snapshot: the model has gone on since. How words were
used, and how often, is computed again from all that was counted and handed in until now.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field

from embedding.kernel.errors import RefusedError, SnapshotError
from embedding.kernel.records import SnapshotData, SnapshotRef
from embedding.server.snapshotting.usage import counted, pulls_of, usage_of
from embedding.server.state import ServerState
from embedding.server.words.readers import Wait
from embedding.server.words.usage import added_up
from embedding.snapshots.format import AMENDABLE, Missing
from embedding.snapshots.store import SnapshotStore

logger = logging.getLogger(__name__)

LATE_SHARE = 1e-3
"""Late documents, as a part of those of the snapshot, from which on a revision is made when the
next window is cut; fewer wait until somebody asks for it."""


@dataclass
class Amendments:
    """The windows that may be amended.

    asked   starts of those to be amended once all is handed in
    lacks   documents by start whose use the snapshot lacks
    """

    state: ServerState
    store: SnapshotStore | None
    asked: set[int] = field(default_factory=set)
    lacks: dict[int, int] = field(default_factory=dict)

    @property
    def open(self) -> list[int]:
        """Starts of the windows whose nodes are asked to hand in what is missing (under the
        lock)."""
        published = sorted(self.state.accounts.published)
        return [start for start in published if start in self.asked or self.lacks.get(start)]

    def published(self, start: int, missing: Collection[Missing]) -> None:
        """A snapshot or a revision of a window is there; older ones are forgotten (under the
        lock)."""
        accounts = self.state.accounts
        self.asked.discard(start)
        self.lacks[start] = lacking(missing)
        for old in sorted(accounts.published)[:-AMENDABLE]:
            accounts.forget([old])
        self.lacks = {each: n for each, n in self.lacks.items() if each in accounts.published}
        for each, documents in accounts.published.items():
            if each != start and accounts.late(each) > LATE_SHARE * sum(documents.values()):
                self.asked.add(each)
        self.asked &= accounts.published.keys()

    def wait(self, start: int) -> Wait:
        """For whom a revision of a window waits; RefusedError where none can be made (under the
        lock)."""
        if start not in self.state.accounts.published:
            raise RefusedError(
                f"amend: the counts of that window are here no longer; they are kept for the last "
                f"{AMENDABLE} windows that were published. Train on its texts again to have them."
            )
        return self.state.wait([start], closed=True)

    def due(self) -> list[int]:
        """Windows of which a revision would say more, and for which nothing more is waited for
        (under the lock)."""
        return [
            start
            for start in self.open
            if not self.wait(start)
            and (start in self.asked or lacking(self.state.missing([start])) < self.lacks[start])
        ]

    def revise(self, start: int, ref: SnapshotRef) -> SnapshotRef:
        """Publish a revision with what is known now; RefusedError where it would say less."""
        store = self.store
        if store is None:
            raise RefusedError("amend: the server has no snapshot store (setting `snapshots`).")
        accounts = self.state.accounts
        with self.state.lock:
            self.wait(start)
            tables = {start: accounts.windows.table(start)}
            tokens = dict(accounts.windows.tokens.get(start, {}))
            documents = dict(accounts.windows.documents.get(start, {}))
            used, pulled = accounts.usage.held([start]), accounts.shifts.held([start])
            unknown = self.state.missing([start])
        before = store.open(ref.id)
        manifest = before.manifest
        known = sum(documents.values()) - lacking(unknown)
        fewer = sum(manifest.documents.values()) - lacking(manifest.missing) - known
        if fewer > 0:
            raise RefusedError(
                f"amend {manifest.window.label}: of {fewer} documents the server does not know any "
                "more how they used words; the snapshot does, and stays."
            )
        whole = all(documents.get(s, 0) >= n for s, n in manifest.documents.items())
        digests = accounts.vocabulary.candidates.digests
        data = SnapshotData(
            window=manifest.as_window(),
            words=list(before.words),
            ids=before.ids,
            counts=before.counts,
            last_seen=before.last_seen,
            vectors=before.vectors,
            contexts=before.contexts,
            by_source=counted(tables, digests, before.words) if whole else before.by_source,
            tokens=tokens if whole else manifest.tokens,
            documents=documents if whole else manifest.documents,
            quality=manifest.quality,
            parent=manifest.parent,
            config=manifest.config,
            config_digest=manifest.config_digest,
            tokenizer_digest=manifest.tokenizer_digest,
            phrases=tuple(before.phrases.values()),
            earlier=before.earlier,
        )
        usage, pulls = before.usage, before.pulls
        if used:
            usage = usage_of(added_up(used), before.ids)
            pulls = None if pulled is None else pulls_of(pulled, before.ids)
        kept = [one for one in manifest.missing if one.part == "learning"]
        missing = (*kept, *unknown)
        revision = manifest.revision + 1
        found = store.publish(data, usage, pulls, revision=revision, missing=missing)
        with self.state.lock:
            accounts.close([start], found, data.documents)
            self.published(start, missing)
        logger.info("snapshot %s: revision %d of %s", found.id, revision, manifest.window.label)
        return found

    def restored(self, ref: SnapshotRef) -> dict[str, int] | None:
        """Documents of a published snapshot, that may be amended; None for a damaged one."""
        try:
            manifest = None if self.store is None else self.store.manifest(ref.id)
        except SnapshotError:
            return None
        if manifest is None:
            return None
        self.lacks[int(ref.window_start.timestamp())] = lacking(manifest.missing)
        return manifest.documents


def lacking(missing: Collection[Missing]) -> int:
    """Documents whose use nobody has handed in."""
    return sum(one.documents for one in missing if one.part == "usage")
