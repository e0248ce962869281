"""Takes snapshots: copies the tables under the lock, writes to the store without it.

A revision of a published snapshot has the documents and the use of words that came after it. Its
vectors are those of the snapshot: the model has gone on since. How words were used, and how often,
is computed again from all that was counted and handed in until now.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from embedding.exchange.protocol import Ask, no_counts
from embedding.kernel.errors import RefusedError, SnapshotError, UnavailableError, YeoronError
from embedding.kernel.records import (
    FloatArray,
    IntArray,
    SnapshotData,
    SnapshotRef,
    TimeArray,
    Window,
)
from embedding.kernel.tracing import NO_TRACES, Traces
from embedding.server.config import ServerConfig
from embedding.server.figures.reports import read_held_out, read_setup, read_weights
from embedding.server.parts import Companion
from embedding.server.rows.composing import GramComposer
from embedding.server.rows.tables import RowsCopy
from embedding.server.snapshotting.convergence import WindowConvergence, waits_for
from embedding.server.snapshotting.live import measure_gold
from embedding.server.snapshotting.usage import counted, pulls_of, usage_of
from embedding.server.state import ServerState
from embedding.server.words.digests import WordDigests
from embedding.server.words.inferred import IdRows, InferredVectors
from embedding.server.words.readers import Wait
from embedding.server.words.shifts import PullingContexts
from embedding.server.words.usage import Handed, added_up
from embedding.snapshots.format import AMENDABLE, Manifest, Missing
from embedding.snapshots.nearness import frequent
from embedding.snapshots.pulls import ContextPulls
from embedding.snapshots.readability import spread
from embedding.snapshots.store import SnapshotStore
from embedding.snapshots.usage import Usage

logger = logging.getLogger(__name__)

_Key = tuple[float, float]
_TRIES = 3
"""A shard that was started again while it copied its rows has to copy them again."""
_CONVERGENCE_LOOK_S = 0.1
"""Seconds between two looks whether a window has converged."""
LATE_SHARE = 1e-3
"""Late documents, as a part of those of the snapshot, from which on a revision is made when the
next window is cut; fewer wait until somebody asks for it."""
_NO_STORE = "the server has no snapshot store (setting `snapshots`)."
_NONE: FloatArray = np.empty((0, 0), dtype=np.float32)


@dataclass(frozen=True)
class Copied:
    """A window as it was when it was cut. slots int64 [n]; rows are still being copied.

    tables  counts by starts of windows; before: of windows published before
    rare    what is laid over the vectors of words that were read only a few times
    counts  float64 [n], running counts
    used    how words were used, as processes handed it in
    missing what nobody has handed in
    pulled  which contexts pulled them; None when nobody said
    digests what words without a row are in tables that a checkpoint held
    """

    data: SnapshotData
    tables: dict[int, pa.Table]
    before: dict[int, pa.Table]
    slots: IntArray
    rows: RowsCopy
    rare: InferredVectors
    counts: TimeArray
    used: list[Handed]
    missing: tuple[Missing, ...]
    pulled: PullingContexts | None
    digests: WordDigests

    @property
    def closed(self) -> set[int]:
        """Starts of windows that take no more counts, also one of which nothing was read."""
        return {*self.tables, int(self.data.window.start.timestamp())}

    def complete(
        self, composer: GramComposer, parent: str | None, known: Sequence[str] | None = None
    ) -> SnapshotData:
        """The snapshot's data, once the rows are there.

        known  words of the snapshot before; None where it cannot be read
        """
        data = self.data
        vectors, contexts = composer.copied(self.rows, data.ids, self.slots, data.words)
        vectors = self._with_inferred(vectors, contexts)
        keep = set(data.words)
        # Of words that had their row by then, the snapshots before say it themselves.
        fresh = set() if known is None else keep.difference(known)
        earlier = counted(self.before, self.digests, fresh)
        return replace(
            data,
            vectors=vectors,
            contexts=contexts,
            by_source=counted(self.tables, self.digests, keep),
            parent=parent,
            phrases=tuple(each for each in data.phrases if each.word in keep),
            earlier=earlier if len(earlier.words) else None,
        )

    def usage(self) -> Usage | None:
        """As the snapshot keeps it: words that are in it."""
        return usage_of(added_up(self.used), self.data.ids)

    def pulls(self) -> ContextPulls | None:
        """As the snapshot keeps it: words and contexts that are in it."""
        return None if self.pulled is None else pulls_of(self.pulled, self.data.ids)

    def _with_inferred(self, vectors: FloatArray, contexts: FloatArray) -> FloatArray:
        """The vectors as they are read: inferred ones in place of those of rare words."""
        ids = self.data.ids
        held = self.rare.held(ids, self.counts)
        if not len(held.at):
            return vectors
        reading = self.rare.taught().reading(IdRows(ids, vectors), IdRows(ids, contexts))
        if reading is not None:
            vectors = vectors.copy()
            vectors[held.at] = held.over(vectors[held.at], reading)
        return vectors


class Snapshotter(Companion):
    """Publishes each window once; concurrent and later calls get the same reference.

    _asked   starts of published windows to be amended once all is handed in
    _lacks   documents by start whose use the snapshot lacks
    """

    def __init__(
        self, state: ServerState, config: ServerConfig, traces: Traces = NO_TRACES
    ) -> None:
        self._state = state
        self._traces = traces
        self._config = config
        self._store = None if config.snapshots is None else SnapshotStore(config.snapshots)
        self._lock = threading.Lock()
        self._futures: dict[_Key, Future[SnapshotRef]] = {}
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="cut")
        self._convergence = WindowConvergence(
            state.latest_reports,
            0.0 if config.in_step else config.convergence_seconds,
            self._wait,
        )
        self._asked: set[int] = set()
        self._lacks: dict[int, int] = {}
        self._revising: dict[int, Future[SnapshotRef]] = {}
        refs = [] if self._store is None else self._store.list()
        if self._store is not None and refs:
            held = self._store.manifest(refs[-1].id).timezone
            config.check_timezone(held, f"snapshots {config.snapshots}")
        for ref in refs:
            self._futures[_key(Window(ref.window_start, ref.window_end))] = _done(ref)
        self.forget_published()

    def refs(self) -> list[SnapshotRef]:
        """Published snapshots, by window start."""
        with self._lock:
            futures = list(self._futures.values())
        done = [f.result() for f in futures if f.done() and f.exception() is None]
        return sorted(done, key=lambda ref: (ref.window_start, ref.window_end))

    def ailing(self) -> list[str]:
        """A sentence about a window that could not be published when it was last tried."""
        with self._lock:
            futures = list(self._futures.items())
        for (start, _), future in futures:
            error = future.exception() if future.done() else None
            if error is not None:
                when = datetime.fromtimestamp(start, self._config.calendar.zone).isoformat()
                return [f"the window of {when} could not be published ({type(error).__name__})."]
        return []

    def cut(self, window: Window, *, force: bool = False) -> SnapshotRef:
        """Publish the window, or wait for whoever does, or return what was published before.

        force  without what is not handed in: the snapshot says what it lacks
        """
        if force and _key(window) not in self._futures:
            self._convergence.force(window)
        while _key(window) not in self._futures and not self._convergence.may_cut(window):
            if self._state.closing:
                raise UnavailableError(f"cut {window.label}: the server is ending.")
            time.sleep(_CONVERGENCE_LOOK_S)
        for _ in range(_TRIES - 1):
            try:
                return self.begin(window).result()
            except UnavailableError as error:
                logger.warning("window %s is cut again: %s", window.label, error)
        return self.begin(window).result()

    def asks(self, node: str) -> list[Any]:
        """What a node is asked to hand in, each an `Ask` as a list."""
        with self._state.lock:
            asked = dict.fromkeys(self._open(), True)
            for window in self._convergence.waiting:
                overdue = self._convergence.overdue(window)
                asked.update(dict.fromkeys(self._all_starts(window), overdue))
            published = self._state.accounts.published
            waits = {
                start: self._state.wait([start], closed=start in published)
                for start in sorted(asked)
            }
        return [
            Ask(start, asked[start], wait.lost).to_list()
            for start, wait in waits.items()
            if node in wait.readers or wait.lost
        ]

    @property
    def sentences(self) -> dict[str, str]:
        """For whom each window waits that could be cut or amended, by its label."""
        sentences = self._convergence.sentences
        with self._state.lock:
            for start in self._open():
                window = self._state.accounts.tracker.window(start)
                if wait := self._wait_to_amend(start):
                    sentences[window.label] = waits_for(window, wait)
        return sentences

    def amend(self, start: int, *, force: bool = False) -> tuple[SnapshotRef, Manifest]:
        """Publish a revision of a window (Unix seconds of its start) once its nodes have handed in
        what is missing; RefusedError where that cannot be.

        force  with what is handed in by now
        """
        store = self._store
        if store is None:
            raise RefusedError(f"amend: {_NO_STORE}")
        with self._state.lock:
            self._wait_to_amend(start)
            self._asked.add(start)
        while True:
            with self._state.lock:
                if force or not self._wait_to_amend(start):
                    revising = self._revise(start)
                    break
            if self._state.closing:
                raise UnavailableError("amend: the server is ending.")
            time.sleep(_CONVERGENCE_LOOK_S)
        ref = revising.result()
        return ref, store.manifest(ref.id)

    def tick(self) -> None:
        """Begin to publish windows that are complete, and to revise those of which more is known
        than their snapshots say."""
        if self._config.cut != "watermark":
            return
        for window in self._state.due():
            self.complete(window)
        with self._state.lock:
            for start in self._open():
                says_more = start in self._asked or (
                    _lacking(self._state.missing([start])) < self._lacks[start]
                )
                if says_more and not self._wait_to_amend(start):
                    self._revise(start)

    def _open(self) -> list[int]:
        """Starts of the windows whose nodes are asked to hand in what is missing (under the
        state's lock, as all that follows up to `_revised`)."""
        published = sorted(self._state.accounts.published)
        return [start for start in published if start in self._asked or self._lacks.get(start)]

    def _published(self, start: int, missing: Collection[Missing]) -> None:
        """A snapshot or a revision of a window is there; older ones are forgotten."""
        accounts = self._state.accounts
        self._asked.discard(start)
        self._lacks[start] = _lacking(missing)
        for old in sorted(accounts.published)[:-AMENDABLE]:
            accounts.free([old])
        self._lacks = {known: n for known, n in self._lacks.items() if known in accounts.published}
        for other, documents in accounts.published.items():
            if other != start and accounts.late(other) > LATE_SHARE * sum(documents.values()):
                self._asked.add(other)
        self._asked &= accounts.published.keys()

    def _wait_to_amend(self, start: int) -> Wait:
        """For whom a revision of a window waits; RefusedError where none can be made."""
        if start not in self._state.accounts.published:
            raise RefusedError(
                f"amend: the counts of that window are here no longer; they are kept for the last "
                f"{AMENDABLE} windows that were published. Train on its texts again to have them."
            )
        return self._state.wait([start], closed=True)

    def _revise(self, start: int) -> Future[SnapshotRef]:
        """Begin to revise a window, unless that is under way."""
        under_way = self._revising.get(start)
        if under_way is None:
            under_way = self._revising[start] = self._pool.submit(self._revised, start)
        return under_way

    def _revised(self, start: int) -> SnapshotRef:
        window = self._state.accounts.tracker.window(start)
        try:
            with self._lock:
                ref = self._futures[_key(window)].result()
            revision = self._revision(start, ref)
            with self._lock:
                self._futures[_key(window)] = _done(revision)
            return revision
        except Exception as error:
            # Asked again when something more is handed in, or by a person.
            logger.warning("window %s: no revision: %s", window.label, error)
            with self._state.lock:
                self._asked.discard(start)
            raise
        finally:
            with self._state.lock:
                self._revising.pop(start, None)

    def _revision(self, start: int, ref: SnapshotRef) -> SnapshotRef:
        """Publish a revision with what is known now; RefusedError where it would say less."""
        store, accounts = self._store, self._state.accounts
        if store is None:
            raise RefusedError(f"amend: {_NO_STORE}")
        with self._state.lock:
            self._wait_to_amend(start)
            tables = {start: accounts.windows.table(start)}
            tokens = dict(accounts.windows.tokens.get(start, {}))
            documents = dict(accounts.windows.documents.get(start, {}))
            used, pulled = accounts.usage.held([start]), accounts.shifts.held([start])
            unknown = self._state.missing([start])
        before = store.open(ref.id)
        manifest = before.manifest
        known = sum(documents.values()) - _lacking(unknown)
        fewer = sum(manifest.documents.values()) - _lacking(manifest.missing) - known
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
        unlearnt = [part for part in manifest.missing if part.part == "learning"]
        missing, number = (*unlearnt, *unknown), manifest.revision + 1
        revision = store.publish(data, usage, pulls, revision=number, missing=missing)
        with self._state.lock:
            accounts.close([start], revision, data.documents)
            self._published(start, missing)
        logger.info("snapshot %s: revision %d of %s", revision.id, number, manifest.window.label)
        return revision

    def begin(self, window: Window) -> Future[SnapshotRef]:
        """Begin to publish; the copy is taken before this returns."""
        key = _key(window)
        # The state's lock goes first: a push that completes a window holds it already.
        with self._state.lock, self._lock:
            known = self._futures.get(key)
            if known is not None and not (known.done() and known.exception() is not None):
                return known
            store = self._store
            if store is None:
                raise RefusedError(f"cut: {_NO_STORE}")
            self._refuse_overlap(key, window)
            if window.label in self._state.accounts.closed:
                raise RefusedError(
                    f"cut {window.label}: it was published before and its snapshot was removed "
                    "since; its counts are gone with that, so it cannot be cut again."
                )
            copied = self._copy(window)
            future = self._pool.submit(self._publish, copied, store)
            self._futures[key] = future
            return future

    def complete(self, window: Window) -> None:
        """Begin to publish a complete window that has converged; else it is tried again later."""
        if not self._convergence.may_cut(window):
            return
        try:
            self.begin(window)
        except YeoronError as error:
            logger.warning("window %s: %s", window.label, error)

    def forget_published(self) -> None:
        """Free the counts of windows whose snapshots exist already (after a restart)."""
        refs, accounts = self.refs(), self._state.accounts
        restored = bool(accounts.cut or accounts.windows.windows())
        with self._state.lock:
            for ref in refs:
                window = Window(ref.window_start, ref.window_end)
                starts, start = self._starts(window), int(window.start.timestamp())
                known = start not in accounts.cut or start in accounts.published
                keeps = restored and known and ref in refs[-AMENDABLE:] and self._is_unit(window)
                accounts.close(starts, ref, self._restored(ref) if keeps else None)

    def _restored(self, ref: SnapshotRef) -> dict[str, int] | None:
        """Documents of a published snapshot, that may be amended; None for a damaged one."""
        with suppress(SnapshotError):
            if self._store is not None:
                manifest = self._store.manifest(ref.id)
                self._lacks[int(ref.window_start.timestamp())] = _lacking(manifest.missing)
                return manifest.documents
        return None

    def stop(self) -> None:
        self._pool.shutdown(wait=True)

    def _refuse_overlap(self, key: _Key, window: Window) -> None:
        zone = self._config.calendar.zone
        for (start, end), future in self._futures.items():
            failed = future.done() and future.exception() is not None
            if not failed and start < key[1] and key[0] < end and (start, end) != key:
                raise RefusedError(
                    f"cut {window.label}: it overlaps a window that was cut before, "
                    f"{datetime.fromtimestamp(start, zone):%Y-%m-%dT%H:%M} – "
                    f"{datetime.fromtimestamp(end, zone):%Y-%m-%dT%H:%M}."
                )

    def _starts(self, window: Window) -> list[int]:
        low, high = window.start.timestamp(), window.end.timestamp()
        return [start for start in self._state.accounts.windows.windows() if low <= start < high]

    def _all_starts(self, window: Window) -> list[int]:
        return sorted({int(window.start.timestamp()), *self._starts(window)})

    def _is_unit(self, window: Window) -> bool:
        """Whether it is one window of this server: others are not amended."""
        return self._state.accounts.tracker.window(int(window.start.timestamp())) == window

    def _wait(self, window: Window) -> Wait:
        with self._state.lock:
            return self._state.wait(self._all_starts(window))

    def _copy(self, window: Window) -> Copied:
        """Everything the snapshot needs, consistent; rows follow (see `RowsCopy`)."""
        state, vocabulary = self._state, self._state.vocabulary
        with state.lock:
            state.changes.check()
            began = time.monotonic()
            ids = vocabulary.alive()
            ids = ids[vocabulary.counts(ids) >= 0.5]
            if not len(ids) and not self._config.in_step:
                why = state.words.anonymity.why_withheld()
                raise RefusedError(f"cut {window.label}: no word has a row yet{why}.")
            starts, tokenizers = self._starts(window), sorted(state.accounts.tokenizers)
            mixed = f"mixed:{','.join(tokenizers)}" if tokenizers else ""
            data = SnapshotData(
                window=window,
                words=vocabulary.names(ids),
                ids=ids,
                counts=np.rint(vocabulary.counts(ids)).astype(np.int64),
                last_seen=vocabulary.last_seen(ids),
                vectors=_NONE,
                contexts=_NONE,
                by_source=no_counts(),
                tokens=_sum(state.accounts.windows.tokens.get(start, {}) for start in starts),
                documents=_sum(state.accounts.windows.documents.get(start, {}) for start in starts),
                config=self._described(),
                config_digest=state.reports.digest,
                tokenizer_digest=tokenizers[0] if len(tokenizers) == 1 else mixed,
                phrases=tuple(state.accounts.phrases.values()),
            )
            copy = state.rows.copy()
            rare, running = state.accounts.rare.copied(), vocabulary.counts(ids)
            slots = vocabulary.slots(ids, "cut")
            used = state.accounts.usage.held(starts)
            missing = state.missing(self._all_starts(window))
            pulled = state.accounts.shifts.held(starts)
            # Those that are being published, too: how long that takes says nothing of the text.
            held, start = state.accounts.windows.windows(), window.start.timestamp()
            cut = [each for each in held if each in state.accounts.cut and each < start]
            tables, earlier = (
                {start: state.accounts.windows.table(start) for start in sorted(each)}
                for each in (starts, cut[-AMENDABLE:])
            )
            digests = vocabulary.candidates.digests
            copied = Copied(
                *(data, tables, earlier, slots, copy, rare, running, used, missing, pulled, digests)
            )
            state.accounts.cut |= copied.closed
            state.meters.cut_pause_s = time.monotonic() - began
        return copied

    def _described(self) -> dict[str, object]:
        hidden = {"token_file", "tls_key", "snapshots"}
        return {
            "server": self._config.model_dump(mode="json", exclude=hidden),
            "sync": self._state.machine.config.model_dump(mode="json"),
            "dim": self._state.dim,
            **read_setup(self._reports() or self._state.reports.last.values()),
            **self._state.composer.described(),
        }

    def _publish(self, copied: Copied, store: SnapshotStore) -> SnapshotRef:
        state, window = self._state, copied.data.window
        began = time.time()
        try:
            longest = copied.rows.finish(state.lock)
            state.meters.cut_pause_s = max(state.meters.cut_pause_s, longest)
            before = [ref for ref in self.refs() if ref.window_end <= window.start]
            parent = before[-1].id if before else None
            data = copied.complete(state.composer, parent, _words_of(store, parent))
            quality = state.scores.measure(window, data.ids, data.vectors, data.contexts)
            if self._config.gold is not None:
                quality |= measure_gold(self._config.gold, data.words, data.vectors)
            quality |= self._reported(data) | self._convergence.ended(window)
            missing = copied.missing
            if quality.get("settled") == 0.0:
                missing = (Missing(part="learning", reason="not_converged"), *missing)
            ref = store.publish(
                replace(data, quality=quality), copied.usage(), copied.pulls(), missing=missing
            )
        except Exception as error:
            with state.lock:
                state.accounts.cut -= copied.closed
            if not isinstance(error, YeoronError):
                logger.exception(
                    "window %s could not be cut", window.label, extra={"window": window.label}
                )
            raise
        finally:
            copied.rows.release()
        start = int(window.start.timestamp())
        with state.lock:
            keeps = self._is_unit(window)
            state.accounts.close([*copied.tables], ref, data.documents if keeps else None)
            self._published(start, missing)
        self._traces.snapshot(start, began, time.time(), ref.words)
        logger.info(
            "snapshot %s: %d words",
            ref.id,
            ref.words,
            extra={"window": window.label, "words": ref.words},
        )
        return ref

    def _reported(self, data: SnapshotData) -> dict[str, float]:
        """weight.SOURCE, as the nodes that are there tell of it, and whether the snapshot can be
        read (snapshots/readability.py).
        """
        with self._state.lock:
            reports, last = self._reports(), list(self._state.reports.last.values())
        vectors = np.asarray(data.vectors[frequent(data.counts)])
        return {
            **{f"weight.{name}": weight for name, weight in read_weights(reports).items()},
            "words_read": float(np.asarray(data.counts).sum()),
            **spread(vectors),
            **read_held_out(reports or last),
        }

    def _reports(self) -> list[dict[str, Any]]:
        """What the present nodes reported last."""
        return [report for _, report in self._state.latest_reports()]


def _done(ref: SnapshotRef) -> Future[SnapshotRef]:
    future: Future[SnapshotRef] = Future()
    future.set_result(ref)
    return future


def _words_of(store: SnapshotStore, parent: str | None) -> Sequence[str] | None:
    with suppress(SnapshotError):
        return None if parent is None else store.open(parent).words
    return None


def _key(window: Window) -> _Key:
    """Start and end in Unix seconds: equal for equal windows, whatever their time zone."""
    return window.start.timestamp(), window.end.timestamp()


def _sum(by_source: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for figures in by_source:
        total.update(figures)
    return dict(total)


def _lacking(missing: Collection[Missing]) -> int:
    """Documents whose use nobody has handed in."""
    return sum(part.documents for part in missing if part.part == "usage")
