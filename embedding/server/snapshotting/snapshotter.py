"""Takes snapshots: copies the tables under the lock, writes to the store without it."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.payload import BUSIEST, UNITS
from embedding.exchange.protocol import no_counts
from embedding.kernel.errors import RefusedError, UnavailableError, YeoronError
from embedding.kernel.positions import positions
from embedding.kernel.records import (
    FloatArray,
    HalfArray,
    IntArray,
    SnapshotData,
    SnapshotRef,
    TimeArray,
    Window,
    WordCounts,
)
from embedding.kernel.tracing import NO_TRACES, Traces
from embedding.server.config import ServerConfig
from embedding.server.figures.reports import read_held_out, read_setup, read_weights
from embedding.server.rows.composing import GramComposer
from embedding.server.rows.copying import RowsCopy
from embedding.server.snapshotting.convergence import WindowConvergence
from embedding.server.snapshotting.gold import measure_gold
from embedding.server.state import ServerState
from embedding.server.words.counts import as_word_counts, summed
from embedding.server.words.digests import WordDigests
from embedding.server.words.inferred import InferredVectors
from embedding.server.words.reading import IdRows
from embedding.server.words.shifts import PullingContexts
from embedding.server.words.usage import SourceUsage
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
_ROWS = 1024
"""Sums that are divided at a time, so that they stay in a core's cache."""
_NONE: FloatArray = np.empty((0, 0), dtype=np.float32)


@dataclass(frozen=True)
class Copied:
    """A window as it was when it was cut. slots int64 [n]; rows are still being copied.

    rare    what is laid over the vectors of words that were read only a few times
    counts  float64 [n], running counts
    used    how words were used, by source; None when it is not added up
    pulled  which contexts pulled them; None when nobody said
    digests what words without a row are in tables that a checkpoint held
    """

    data: SnapshotData
    starts: list[int]
    tables: list[pa.Table]
    slots: IntArray
    rows: RowsCopy
    rare: InferredVectors
    counts: TimeArray
    used: list[SourceUsage] | None
    pulled: PullingContexts | None
    digests: WordDigests

    @property
    def closed(self) -> set[int]:
        """Starts of windows that take no more counts, also one of which nothing was read."""
        return {*self.starts, int(self.data.window.start.timestamp())}

    def complete(self, composer: GramComposer, parent: str | None) -> SnapshotData:
        """The snapshot's data, once the rows are there."""
        data = self.data
        vectors, contexts = composer.copied(self.rows, data.ids, self.slots, data.words)
        vectors = self._with_inferred(vectors, contexts)
        keep = set(data.words)
        parts = [
            as_word_counts(self._revealed(table), start, keep)
            for start, table in zip(self.starts, self.tables, strict=True)
        ]
        return replace(
            data,
            vectors=vectors,
            contexts=contexts,
            by_source=_joined(parts),
            parent=parent,
            phrases=tuple(each for each in data.phrases if each.word in keep),
        )

    def _revealed(self, table: pa.Table) -> pa.Table:
        """A window's counts; words that had no row at the last checkpoint are words again."""
        found = self.digests.revealed(table, self.data.words)
        return table if found is table else summed(found)

    def usage(self) -> Usage | None:
        """As the snapshot keeps it: words that are in it."""
        return None if self.used is None else usage_of(self.used, self.data.ids)

    def pulls(self) -> ContextPulls | None:
        """As the snapshot keeps it: words and contexts that are in it."""
        return None if self.pulled is None else pulls_of(self.pulled, self.data.ids)

    def _with_inferred(self, vectors: FloatArray, contexts: FloatArray) -> FloatArray:
        """The vectors as they are read: inferred ones in place of those of young words."""
        ids = self.data.ids
        held = self.rare.held(ids, self.counts)
        if not len(held.at):
            return vectors
        reading = self.rare.taught().reading(IdRows(ids, vectors), IdRows(ids, contexts))
        if reading is not None:
            vectors = vectors.copy()
            vectors[held.at] = held.over(vectors[held.at], reading)
        return vectors


class Snapshotter:
    """Publishes each window once; concurrent and later calls get the same reference."""

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
            state, 0.0 if config.in_step else config.convergence_seconds
        )
        for ref in [] if self._store is None else self._store.list():
            future: Future[SnapshotRef] = Future()
            future.set_result(ref)
            self._futures[_key(Window(ref.window_start, ref.window_end))] = future
        self.forget_published()

    def refs(self) -> list[SnapshotRef]:
        """Published snapshots, by window start."""
        with self._lock:
            futures = list(self._futures.values())
        done = [f.result() for f in futures if f.done() and f.exception() is None]
        return sorted(done, key=lambda ref: (ref.window_start, ref.window_end))

    def failed(self) -> str | None:
        """A sentence about a window that could not be published when it was last tried."""
        with self._lock:
            futures = list(self._futures.items())
        for (start, _), future in futures:
            error = future.exception() if future.done() else None
            if error is not None:
                when = datetime.fromtimestamp(start, UTC).isoformat()
                return f"the window of {when} could not be published ({type(error).__name__})."
        return None

    def cut(self, window: Window) -> SnapshotRef:
        """Publish the window, or wait for whoever does, or return what was published before."""
        while not self._published(window) and not self._convergence.may_cut(window):
            if self._state.closing:
                raise UnavailableError(f"cut {window.label}: the server is ending.")
            time.sleep(_CONVERGENCE_LOOK_S)
        for _ in range(_TRIES - 1):
            try:
                return self.start(window).result()
            except UnavailableError as error:
                logger.warning("window %s is cut again: %s", window.label, error)
        return self.start(window).result()

    @property
    def closing(self) -> int | None:
        """Start (Unix seconds) of the latest window that waits for its nodes; None: none does."""
        return self._convergence.latest

    def _published(self, window: Window) -> bool:
        """Whether the window is being published, or was."""
        with self._lock:
            return _key(window) in self._futures

    def start(self, window: Window) -> Future[SnapshotRef]:
        """Begin to publish; the copy is taken before this returns."""
        key = _key(window)
        # The state's lock goes first: a push that completes a window holds it already.
        with self._state.lock, self._lock:
            known = self._futures.get(key)
            if known is not None and not (known.done() and known.exception() is not None):
                return known
            store = self._store
            if store is None:
                raise RefusedError("cut: the server has no snapshot store (setting `snapshots`).")
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
            self.start(window)
        except YeoronError as error:
            logger.warning("window %s: %s", window.label, error)

    def forget_published(self) -> None:
        """Free the counts of windows whose snapshots exist already (after a restart)."""
        refs, accounts = self.refs(), self._state.accounts
        restored = bool(accounts.cut or accounts.windows.windows())
        with self._state.lock:
            for ref in refs:
                start = int(ref.window_start.timestamp())
                if restored and self._store is not None and start not in accounts.cut:
                    accounts.expect_again(start, self._store.open(ref.id).manifest.documents)
                starts = self._starts(Window(ref.window_start, ref.window_end))
                accounts.close(starts, ref)

    def close(self) -> None:
        """Finish what was begun."""
        self._pool.shutdown(wait=True)

    def _refuse_overlap(self, key: _Key, window: Window) -> None:
        for (start, end), future in self._futures.items():
            failed = future.done() and future.exception() is not None
            if not failed and start < key[1] and key[0] < end and (start, end) != key:
                raise RefusedError(
                    f"cut {window.label}: it overlaps a window that was cut before, "
                    f"{datetime.fromtimestamp(start, UTC):%Y-%m-%dT%H:%M} – "
                    f"{datetime.fromtimestamp(end, UTC):%Y-%m-%dT%H:%M}."
                )

    def _starts(self, window: Window) -> list[int]:
        low, high = window.start.timestamp(), window.end.timestamp()
        return [start for start in self._state.accounts.windows.windows() if low <= start < high]

    def _copy(self, window: Window) -> Copied:
        """Everything the snapshot needs, consistent; rows follow (see rows/copying.py)."""
        state, vocabulary = self._state, self._state.vocabulary
        with state.lock:
            state.changes.check()
            began = time.monotonic()
            ids = vocabulary.alive()
            ids = ids[vocabulary.counts(ids) >= 0.5]
            if not len(ids) and not self._config.in_step:
                why = state.words.anonymity.why_withheld()
                raise RefusedError(f"cut {window.label}: no word has a row yet{why}.")
            starts = self._starts(window)
            tables = [state.accounts.windows.table(start) for start in starts]
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
                tokenizer_digest=_digest(list(state.accounts.tokenizers)),
                phrases=tuple(state.accounts.phrases.values()),
            )
            copy = state.rows.copy()
            rare, running = state.accounts.rare.copied(), vocabulary.counts(ids)
            slots = vocabulary.slots(ids, "cut")
            used = state.accounts.usage.held(starts) or None
            pulled = state.accounts.shifts.held(starts)
            digests = vocabulary.candidates.digests
            copied = Copied(data, starts, tables, slots, copy, rare, running, used, pulled, digests)
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
            data = copied.complete(state.composer, self._parent(window))
            quality = state.scores.measure(window, data.ids, data.vectors, data.contexts)
            if self._config.gold is not None:
                quality |= measure_gold(self._config.gold, data.words, data.vectors)
            quality |= self._reported(data) | self._convergence.ended(window)
            ref = store.publish(replace(data, quality=quality), copied.usage(), copied.pulls())
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
        with state.lock:
            state.accounts.close(copied.starts, ref)
        start = int(window.start.timestamp())
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
        """What the present nodes reported last (under the lock)."""
        members = self._state.machine.board.members
        present = {name for name, member in members.items() if member.present}
        return [one for name, one in self._state.reports.last.items() if name in present]

    def _parent(self, window: Window) -> str | None:
        before = [ref for ref in self.refs() if ref.window_end <= window.start]
        return before[-1].id if before else None


def _key(window: Window) -> _Key:
    """Start and end in Unix seconds: equal for equal windows, whatever their time zone."""
    return window.start.timestamp(), window.end.timestamp()


def usage_of(sums: Sequence[SourceUsage], ids: IntArray) -> Usage | None:
    """How words were used, by the sums of a window; None where there are none.

    ids  int64 [n], of the words of the snapshot: those of others are left out, and the past of
         words whose use in the window nobody sent, as nothing is compared with it
    """
    order = np.argsort(ids, kind="stable")
    parts: dict[int, list[tuple[IntArray, SourceUsage, IntArray]]] = {0: []}
    used = np.zeros(len(ids), dtype=np.bool_)
    for part in sorted(sums, key=lambda each: each.time):
        at = positions(ids[order], part.ids)
        known = np.flatnonzero(at >= 0)
        if part.time <= 1:
            used[at[known]] = True
        else:
            known = known[used[at[known]]]
        parts.setdefault(part.time, []).append((order[at[known]], part, known))
    if not parts[0]:
        return None
    busiest = parts.pop(BUSIEST, None)
    times = sorted(time for time in parts if time) if 1 in parts else []
    return replace(
        _usage(parts[0]),
        reread=tuple(_usage(parts[time]) for time in times),
        busiest=None if busiest is None else _usage(busiest),
    )


def pulls_of(pulled: PullingContexts, ids: IntArray) -> ContextPulls:
    """The contexts of words by rows of a snapshot. ids: int64 [n], of its words."""
    order = np.argsort(ids, kind="stable")
    words, contexts = (positions(ids[order], each) for each in (pulled.words, pulled.contexts))
    known = np.flatnonzero((words >= 0) & (contexts >= 0))
    rows = order[words[known]]
    known = known[np.argsort(rows, kind="stable")]
    figures = pulled.figures[known]
    return ContextPulls(
        order[words[known]].astype(np.int64),
        order[contexts[known]].astype(np.int64),
        *(np.ascontiguousarray(figures[:, at]) for at in range(3)),
    )


def _usage(parts: Sequence[tuple[IntArray, SourceUsage, IntArray]]) -> Usage:
    """Of some sources: rows in the snapshot, sums, and which of them have these rows."""
    documents = np.concatenate([part.documents[part.places[at]] for _, part, at in parts])
    return Usage(
        rows=np.concatenate([rows for rows, _, _ in parts]),
        sources=[part.source for rows, part, _ in parts for _ in range(len(rows))],
        mentions=documents.sum(axis=1).astype(np.int64),
        pairs=documents,
        means=_means([(part, part.places[at]) for _, part, at in parts]),
    )


def _means(parts: Sequence[tuple[SourceUsage, IntArray]]) -> HalfArray:
    """Means of some places as float16, precise to a thousandth; 0 where nothing was added."""
    shape = sum(len(at) for _, at in parts), UNITS, parts[0][0].sums.shape[1]
    found = np.empty(shape, dtype=np.float16)
    first = 0
    for part, at in parts:
        for some in np.split(at, range(_ROWS, len(at), _ROWS)):
            documents = np.maximum(part.documents[some], np.float32(1e-9))
            wide = widen(part.sums[part.units[some]])
            wide /= documents[..., None]
            found[first : first + len(some)] = narrow(wide)
            first += len(some)
    return found


def _joined(parts: Sequence[WordCounts]) -> WordCounts:
    """Several windows' counts as one record."""
    if not parts:
        return no_counts()
    return WordCounts(
        words=[word for part in parts for word in part.words],
        sources=[source for part in parts for source in part.sources],
        windows=np.concatenate([part.windows for part in parts]),
        counts=np.concatenate([part.counts for part in parts]),
        documents=np.concatenate([part.documents for part in parts]),
    )


def _sum(by_source: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for figures in by_source:
        total.update(figures)
    return dict(total)


def _digest(seen: Sequence[str]) -> str:
    """The tokenizer digest; all of them when nodes used several."""
    return seen[0] if len(seen) == 1 else "mixed:" + ",".join(sorted(seen)) if seen else ""
