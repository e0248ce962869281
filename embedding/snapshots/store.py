"""Where snapshots are published, listed and opened."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec
import platformdirs

from embedding.kernel.errors import ConfigError, InputError, SnapshotError
from embedding.kernel.records import SnapshotData, SnapshotRef
from embedding.snapshots import erasing, pulls, usage
from embedding.snapshots import format as layout
from embedding.snapshots.backends import Folder, Remote, StoreBackend
from embedding.snapshots.files import entry
from embedding.snapshots.snapshot import Snapshot, check_sizes

NOTE = "withdrawn.json"


@dataclass(frozen=True)
class Withdrawn:
    """When (UTC) a snapshot was withdrawn, and why.

    Its files stay where they are, so that nothing is lost by a mistake; it is in no list, is
    nobody's `latest`, and opening it says why.
    """

    at: datetime
    reason: str


def read_note(text: str | None, where: str) -> dict[str, Withdrawn]:
    """What the note says by snapshot id; SnapshotError when it cannot be read."""
    try:
        return {
            name: Withdrawn(datetime.fromisoformat(entry["at"]), str(entry["reason"]))
            for name, entry in json.loads("{}" if text is None else text).items()
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise SnapshotError(
            f"snapshot store {where}: {NOTE} cannot be read ({type(error).__name__}); put back "
            "a whole one, or remove it to see every snapshot."
        ) from error


def note_of(withdrawn: Mapping[str, Withdrawn]) -> str:
    """Inverse of `read_note`."""
    entries = {
        name: {"at": entry.at.isoformat(), "reason": entry.reason}
        for name, entry in sorted(withdrawn.items())
    }
    return json.dumps(entries, ensure_ascii=False, indent=2) + "\n"


log = logging.getLogger(__name__)

LATEST = "latest"
_SHOWN = 5
"""Windows that a sentence names."""
Refs = list[SnapshotRef]
SnapshotIds = list[str]


class SnapshotStore:
    """Snapshots under one address: a path, `file://…`, or any fsspec URL (`s3://…`).

    `cache` is the folder in which snapshots of a remote address are kept for memory-mapping
    (default: the user's cache folder). Raises ConfigError for an address that cannot work.
    """

    def __init__(self, uri: str | Path, *, cache: Path | None = None) -> None:
        self.uri = str(uri)
        self._logged: set[str] = set()
        if not self.uri.strip():
            raise ConfigError("snapshot store: the address is empty; a path or URL is accepted.")
        try:
            filesystem, root = fsspec.core.url_to_fs(self.uri)
        except (ValueError, ImportError) as error:
            raise ConfigError(
                f"snapshot store {self.uri}: {error}; a path or an fsspec URL is accepted."
            ) from error
        protocol = filesystem.protocol
        self._place: StoreBackend
        if "file" in ((protocol,) if isinstance(protocol, str) else protocol):
            self._place = Folder(Path(root))
        else:
            cache = cache or platformdirs.user_cache_path("yeoron") / "snapshots"
            self._place = Remote(filesystem, root, cache)

    def __repr__(self) -> str:
        return f"SnapshotStore({self.uri!r})"

    def publish(
        self,
        data: SnapshotData,
        use: usage.Usage | None = None,
        pulled: pulls.ContextPulls | None = None,
        *,
        revision: int = 1,
        missing: Sequence[layout.Missing] = (),
    ) -> SnapshotRef:
        """Write everything, sync, and make it visible by one switch.

        use     how words were used in the window; None: nobody added it up
        pulled  which contexts pulled them; None: nobody said
        revision, missing  as in the manifest. A revision takes the place of those before it of the
                same window and parent in every list. The one before it stays, for whoever reads it,
                until `expire`; older ones are removed.

        The same data have the same id, and publishing them again returns the snapshot that is
        there. Raises SnapshotError for data that no reader could use and for a place that
        cannot be written; then nothing is visible.
        """
        layout.check(data)
        if use is not None:
            usage.check(use, len(data.words), data.vectors.shape[1], data.window.label)
        if pulled is not None:
            pulls.check(pulled, len(data.words), data.window.label)
        published: dict[str, layout.Manifest] = {}

        def write(into: Path) -> str:
            parts: list[tuple[str, Callable[..., None], Any]] = [
                (layout.VECTORS, layout.write_vectors, data),
                (layout.COUNTS, layout.write_counts, data.by_source),
                (layout.EARLIER_FILE, layout.write_counts, data.earlier),
                (usage.USAGE, usage.write, use),
                (usage.BUSIEST_FILE, usage.write, None if use is None else use.busiest),
                (pulls.CONTEXTS_FILE, pulls.write, pulled),
                (layout.PHRASES, layout.write_phrases, data.phrases or None),
            ]
            files = {}
            for name, write_part, part in parts:
                if part is not None:
                    write_part(into / name, part)
                    files[name] = entry(into / name)
            manifest = layout.make_manifest(data, files, revision, missing)
            (into / layout.MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
            published["manifest"] = manifest
            return manifest.id

        name = self._place.publish(write)
        if name in self.withdrawn():
            # Whoever cuts it again stands behind it.
            self.reinstate([name])
        for older, manifest in self._revisions(name).items() if revision > 2 else ():
            if manifest.revision < revision - 1:
                self._place.remove(older)
        return published["manifest"].ref(self._place.address(name))

    def list(self) -> Refs:
        """All readable snapshots by window start, end and lineage; broken ones are logged.

        Of several revisions of one it has the newest.
        """
        refs, broken = self._scan()
        for sentence in broken.values():
            # Pages list often: each fault is logged once for this store object.
            if sentence not in self._logged:
                self._logged.add(sentence)
                log.warning("skipped: %s", sentence)
        return refs

    def series(self) -> Refs:
        """One snapshot a window, the last one cut, in event time."""
        by_window = {(ref.window_start, ref.window_end): ref for ref in self.list()}
        return [*by_window.values()]

    def broken(self) -> dict[str, str]:
        """Snapshots that cannot be read, each with the sentence that says why."""
        return self._scan()[1]

    def open(self, id: str = LATEST) -> Snapshot:
        """Open one snapshot, or the `latest` one.

        Raises SnapshotError when there is none of that id or when a file is missing or cut off.
        """
        if id == LATEST:
            refs = self.list()
            if not refs:
                raise SnapshotError(
                    f"snapshot store {self.uri}: it holds no snapshot yet; `yeoron train … --out "
                    "FOLDER` or a running platform writes some."
                )
            id = refs[-1].id
        if not layout.ID.fullmatch(id):
            raise SnapshotError(
                f"snapshot store {self.uri}: {id[:120]!r} is not a snapshot id; one looks like "
                "2020-02-a1b2c3d4, and `latest` is accepted."
            )
        if gone := self.withdrawn().get(id):
            raise SnapshotError(
                f"snapshot {id}: it was withdrawn on {gone.at:%Y-%m-%d} ({gone.reason}); "
                f"`yeoron snapshot reinstate {id}` brings it back."
            )
        if not self._place.holds(id):
            like = [name for name in self._place.names() if name.startswith(id)][:3]
            raise SnapshotError(
                f"snapshot {id}: there is none of that id in {self.uri}; "
                + (f"{', '.join(like)} begins so." if like else "`yeoron snapshot list` names all.")
            )
        return Snapshot(self._place.fetch(id), self._place.address(id))

    def named(self, text: str) -> str:
        """The id of the last snapshot of the window `text` (`2020-02`); other text as it is."""
        # The last of a window that was cut again counts.
        return next((ref.id for ref in reversed(self.list()) if ref.label == text), text)

    def require(self, text: str) -> str:
        """The id of the snapshot with this id, or of this window; `latest` is accepted.

        Raises SnapshotError for one that was withdrawn, InputError for one that is not there.
        """
        named, refs = self.named(text), self.list()
        if named == LATEST or named in {ref.id for ref in refs}:
            return self.open(named).id
        for name in self.withdrawn():
            if text in (name, name.rpartition("-")[0]):
                self.open(name)
        labels = [*dict.fromkeys(ref.label for ref in refs)]
        raise InputError(
            f"{text[:80]!r}: no snapshot and no window of the store; its last windows are "
            f"{', '.join(labels[-_SHOWN:]) or 'none'}."
        )

    def withdraw(self, ids: Sequence[str], reason: str) -> None:
        """Take snapshots out of the series, with the revisions before them; their files stay.

        Raises SnapshotError.
        """
        for name in ids:
            if not self._place.holds(name):
                raise SnapshotError(f"snapshot {name}: there is none of that id in {self.uri}.")
        all_ids = dict.fromkeys([*ids, *(older for name in ids for older in self._revisions(name))])
        now = dict.fromkeys(all_ids, Withdrawn(at=datetime.now(UTC), reason=reason))
        # One that is withdrawn already stays as it is.
        self._note(lambda before: {**now, **before})

    def reinstate(self, ids: Sequence[str]) -> None:
        """Put withdrawn snapshots back into the series; SnapshotError for one that is not."""
        withdrawn = self.withdrawn()
        for name in ids:
            if name not in withdrawn:
                raise SnapshotError(f"snapshot {name}: it is not withdrawn in {self.uri}.")
        self._note(
            lambda withdrawn: {name: one for name, one in withdrawn.items() if name not in ids}
        )

    def _note(self, change: Callable[[dict[str, Withdrawn]], dict[str, Withdrawn]]) -> None:
        self._place.take_note(NOTE, lambda text: note_of(change(read_note(text, self.uri))))

    def withdrawn(self) -> dict[str, Withdrawn]:
        """Snapshots that were withdrawn, by id."""
        return read_note(self._place.note(NOTE), self.uri)

    def manifest(self, id: str) -> layout.Manifest:
        """The manifest of one snapshot without opening its tables; raises SnapshotError."""
        if not layout.ID.fullmatch(id):
            raise SnapshotError(f"snapshot store {self.uri}: {id[:120]!r} is not a snapshot id.")
        return layout.parse_manifest(self._place.manifest(id), f"snapshot {id}: {layout.MANIFEST}")

    def holding(self, *, word: str | None = None, source: str | None = None) -> SnapshotIds:
        """SnapshotIds of all snapshots whose files hold a word or a source, withdrawn ones too."""
        return [
            name
            for name in self._all()
            if erasing.holds(self._place.fetch(name), word=word, source=source)
        ]

    def erase(
        self, ids: Sequence[str], *, word: str | None = None, source: str | None = None
    ) -> None:
        """Take a word or a source out of snapshots, which keep their ids.

        Each changes for all readers at once. After a kill or an error the same call goes on, and
        `sweep` clears away what is left.
        """
        for name in ids:
            self._place.erase(name, word=word, source=source)

    def expire(self, before: float, keep: Collection[str], *, dry: bool = False) -> SnapshotIds:
        """Remove snapshots that were written before a time (Unix seconds), and all revisions that
        have a newer one; their ids.

        The newest stays, and those in `keep`. dry  only say which
        """
        refs = self.list()
        spared = {*keep, *(ref.id for ref in refs[-1:])}
        replaced = {older for ref in refs for older in self._revisions(ref.id)}
        old = [
            name
            for name, written_at in self._all().items()
            if name in replaced or (written_at < before and name not in spared)
        ]
        for name in () if dry else old:
            self._place.remove(name)
        return old

    def sweep(self, before: float = math.inf) -> None:
        """Clear away what killed calls left behind, and copies of what is not there any more.

        before  Unix seconds; what was written since then may belong to a call that goes on. All
                goes by default: nobody else may be publishing or erasing then.
        """
        self._place.sweep(before)

    def _all(self) -> dict[str, float]:
        """When each snapshot was written, withdrawn ones too."""
        times = {name: self._place.written_at(name) for name in self._place.names()}
        return {
            name: at for name, at in times.items() if at is not None and layout.ID.fullmatch(name)
        }

    def _revisions(self, name: str) -> dict[str, layout.Manifest]:
        """The revisions before one, by id; of a damaged one nobody knows any."""
        revisions: dict[str, layout.Manifest] = {}
        with suppress(SnapshotError):
            newest = self.manifest(name)
            begin = f"{newest.window.label}-"
            names = self._place.names() if newest.revision > 1 else []
            for other in (known for known in names if known.startswith(begin) and known != name):
                with suppress(SnapshotError):
                    manifest = self.manifest(other)
                    if _series(manifest) == _series(newest) and manifest.revision < newest.revision:
                        revisions[other] = manifest
        return revisions

    def _scan(self) -> tuple[Refs, dict[str, str]]:
        manifests: dict[str, layout.Manifest] = {}
        broken: dict[str, str] = {}
        newest: dict[tuple[object, ...], int] = {}
        gone = self.withdrawn()
        for name in self._place.names():
            if name in gone:
                continue
            try:
                manifest = manifests[name] = self._read(name)
                newest[_series(manifest)] = max(manifest.revision, newest.get(_series(manifest), 1))
            except SnapshotError as error:
                broken[name] = str(error)
        refs = {
            name: manifest.ref(self._place.address(name))
            for name, manifest in manifests.items()
            if manifest.revision == newest[_series(manifest)]
        }
        return sorted(refs.values(), key=lambda ref: _order(ref, refs)), broken

    def _read(self, name: str) -> layout.Manifest:
        manifest = self.manifest(name)
        if manifest.id != name:
            raise SnapshotError(f"snapshot {name}: its manifest belongs to {manifest.id}.")
        if isinstance(self._place, Folder):
            check_sizes(self._place.fetch(name), manifest)
        return manifest


def _series(manifest: layout.Manifest) -> tuple[object, ...]:
    """What the revisions of one snapshot have in common."""
    return manifest.window.start, manifest.window.end, manifest.parent


def _order(ref: SnapshotRef, refs: dict[str, SnapshotRef]) -> tuple[float, float, int, str]:
    """Window start and end, then lineage: a window cut again comes after its ancestors."""
    depth, seen, parent = 0, {ref.id}, ref.parent
    while parent in refs and parent not in seen:
        seen.add(parent)
        depth, parent = depth + 1, refs[parent].parent
    return ref.window_start.timestamp(), ref.window_end.timestamp(), depth, ref.id
