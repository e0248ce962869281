"""What was read: counts by word, source and window, figures by source, progress of event time."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from embedding.exchange.protocol import Push
from embedding.exchange.textcounts import READY, SEND, WAIT, TextCounts
from embedding.exchange.wire import text_array
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Phrase, SnapshotRef, SourceProgress, TimeArray, Window
from embedding.server.config import ServerConfig
from embedding.server.figures.meters import Meters, SourceMeter
from embedding.server.parts import Content, Erasure, Moment, Part, Saved
from embedding.server.words.counts import WindowCounts
from embedding.server.words.digests import WordsCopy
from embedding.server.words.inferred import InferredVectors
from embedding.server.words.readers import WindowReaders
from embedding.server.words.shifts import ContextShifts
from embedding.server.words.usage import UsageSums
from embedding.server.words.vocabulary import Vocabulary
from embedding.server.words.windows import WindowTracker

_KEPT = 4
"""Windows, the latest: those that can be amended are among them."""


@dataclass
class _Window:
    """given: counts by node; fixed: those of the sum; None: somebody has yet to hand in."""

    given: dict[str, TextCounts] = field(default_factory=dict)
    fixed: tuple[TextCounts, ...] | None = None


class SharedCounts:
    """Not thread-safe: the server's lock guards it.

    Each node hands its counts in when it has read a window, and waits with reading its documents
    once more until the others have, too. The sum is fixed then: whoever reads documents of this
    window again reads them by the same vectors. Who dies is waited for no longer.

    The state is in memory alone: after a restart the nodes that have a sum bring it back.
    """

    def __init__(self) -> None:
        self._windows: dict[int, _Window] = {}

    def answer(
        self,
        window: int,
        node: str,
        counts: TextCounts | None,
        readers: Collection[str],
        awaited: Collection[str],
    ) -> tuple[str, tuple[TextCounts, ...]]:
        """What a node is to do, and with READY the parts of the sum.

        counts   of this node, in place of what it handed in before
        readers  nodes that read text of the window, or may have yet to
        awaited  those of them that are waited for
        """
        one = self._of(window)
        if one.fixed is None:
            if counts is not None:
                one.given[node] = counts
            if {*readers, *one.given} <= {node}:
                one.fixed = ()
            elif node not in one.given:
                return SEND, ()
            elif not one.given.keys() >= set(awaited):
                return WAIT, ()
            else:
                one.fixed = tuple(counts for _, counts in sorted(one.given.items()))
            one.given.clear()
        return READY, one.fixed

    def fix(self, window: int, total: TextCounts | None) -> None:
        """A node has read a window by this sum; None: by its own counts, as nobody else read it."""
        one = self._of(window)
        if one.fixed is None:
            one.fixed = () if total is None else (total,)
            one.given.clear()

    def _of(self, window: int) -> _Window:
        one = self._windows.setdefault(window, _Window())
        for old in sorted(self._windows)[:-_KEPT]:
            del self._windows[old]
        return one


_FAR = 400 * 365 * 86_400
"""Seconds from 1970 beyond which a window's start or a time of publication is nonsense."""


MOST_PHRASES = 1_000_000
"""Phrases whose parts are remembered."""


@dataclass(frozen=True)
class PushArrival:
    """A push with what could be worked out about it before the lock was taken.

    seen    float64 [n], when each word was read (Unix seconds); nbytes  of the push as it came
    """

    push: Push
    seen: TimeArray
    nbytes: int

    @classmethod
    def prepare(cls, push: Push, nbytes: int) -> PushArrival:
        """The arrival of a checked push; RefusedError for times outside any calendar."""
        groups = push.counts.groups
        starts = [group.window for group in groups] + [each.window for each in push.progress]
        starts += [part.window for part in push.usage] + [one.window for one in push.shifts]
        starts += [one.window for one in push.hand_ins]
        starts += [math.floor(each.published) for each in push.progress]
        if starts and not -_FAR < min(starts) <= max(starts) < _FAR:
            raise RefusedError(
                f"push {push.sequence} of node {push.node}: a window or a publication outside "
                "any calendar; Unix seconds are accepted."
            )
        published = {p.source: p.published for p in push.progress}
        times = [published.get(group.source, float(group.window)) for group in groups]
        lengths = np.diff([0, *(group.stop for group in groups)])
        return cls(push, np.repeat(np.asarray(times, dtype=np.float64), lengths), nbytes)


class Accounts(Part):
    """Everything counted. Not thread-safe: the server's lock guards it.

    readers     who read text of a window, and has handed in how it used words
    shared      what nodes counted in their texts of a window
    rare        what stood around words that were read only a few times
    cut         starts of windows that are published, or are being published
    published   of those of them whose counts are kept for amendments: documents by source in
                the snapshot
    """

    def __init__(self, config: ServerConfig, vocabulary: Vocabulary, dim: int) -> None:
        self.vocabulary = vocabulary
        self.usage = UsageSums(dim, wanted=config.usage, limit=config.usage_words)
        self.readers = WindowReaders(moves=not config.in_step)
        self.shifts = ContextShifts(wanted=config.usage)
        self.shared = SharedCounts()
        self.windows = WindowCounts(vocabulary.names)
        self.tracker = WindowTracker(
            config.calendar,
            idle_s=config.source_idle_s,
            in_step=config.in_step,
        )
        self.meters = Meters()
        self.rare = InferredVectors(
            vocabulary, mentions=config.rare_mentions, limit=config.rare_words
        )
        self.tokenizers: dict[str, None] = {}
        self.phrases: dict[str, Phrase] = {}
        self.cut: set[int] = set()
        self.published: dict[int, dict[str, int]] = {}
        self.closed: dict[str, dict[str, Any]] = {}
        self._on_complete: Callable[[Window], None] | None = None

    @property
    def parts(self) -> dict[str, Part]:
        """All that is counted here, in the order in which a checkpoint is restored."""
        return {
            "rare": self.rare,
            "usage": self.usage,
            "shifts": self.shifts,
            "readers": self.readers,
            "windows": self.windows,
            "sources": self.tracker,
            "figures": self.meters,
            "accounts": self,
        }

    def when_complete(self, call: Callable[[Window], None]) -> None:
        """Have `call` called under the lock with a window that a push completes, before the push
        is applied."""
        self._on_complete = call

    def learnt(self, arrival: PushArrival, now: float) -> None:
        """A push was applied."""
        push = arrival.push
        self.meters.dropped_counts += self._count(
            arrival, text_array(push.counts.words).to_pylist()
        )
        forgotten = self.cut - self.published.keys()
        self.windows.add(push.counts, forgotten)
        self.meters.learnt(push, now)
        self.meters.replayed_tokens += push.replayed
        if push.tokenizer_digest:
            self.tokenizers[push.tokenizer_digest] = None
        self.note(push.phrases)
        for progress in push.progress:
            self._progress(push, progress, now)
        self.usage.learnt(push, forgotten)
        self.shifts.learnt(push, forgotten)
        for one in push.hand_ins:
            for life, source in self.readers.hand_in(push.node, push.incarnation, one):
                self.usage.drop(one.window, life, source)
                self.shifts.drop(one.window, life)
        self.rare.learnt(push)

    def note(self, phrases: Iterable[Phrase]) -> None:
        """Nodes read these as one word; of too many the ones noted first are forgotten."""
        for phrase in phrases:
            known = self.phrases.get(phrase.word)
            self.phrases[phrase.word] = phrase if known is None else known.merged(phrase)
        while len(self.phrases) > MOST_PHRASES:
            del self.phrases[next(iter(self.phrases))]

    def _count(self, arrival: PushArrival, words: Sequence[str]) -> int:
        """Words with a row are counted by id, others by name, if `words` has these; how many
        occurrences were dropped."""
        counts, seen = arrival.push.counts, arrival.seen
        known = counts.ids >= 0
        named = ~known if len(words) else np.zeros_like(known)
        return self.vocabulary.count(
            counts.ids[known],
            counts.counts[known],
            seen[known],
            words,
            counts.counts[named],
            seen[named],
            arrival.push.tokens,
        )

    def complete(self, arrivals: Sequence[PushArrival], now: float) -> None:
        """Cut what these pushes show to be complete, while the rows know nothing of them yet.

        A window of which they hold something themselves is left for later, with those after it:
        windows are cut in order.
        """
        if self._on_complete is None:
            return
        own = set()
        for arrival in arrivals:
            for each in arrival.push.progress:
                self.tracker.progress(each.source, each.published, now=now, node=arrival.push.node)
                own.add(each.window)
        for window in self.due(now):
            if int(window.start.timestamp()) in own:
                break
            self._on_complete(window)

    def due(self, now: float) -> list[Window]:
        """Windows that the watermark has passed and that were not cut."""
        starts = [start for start in self.windows.windows() if start not in self.cut]
        return self.tracker.due(starts, now=now)

    def greet(self, node: str, life: str) -> None:
        """A process speaks for its node from now on."""
        self.readers.greet(node, life)
        self.usage.begin(node, life)

    def close(
        self, starts: list[int], ref: SnapshotRef, documents: Mapping[str, int] | None = None
    ) -> None:
        """A snapshot holds these windows.

        documents  by source, where it may be amended: what is counted of it is kept. A server that
                   was killed after it was published counts again what no checkpoint had.
        """
        window = Window(ref.window_start, ref.window_end)
        start = int(window.start.timestamp())
        self.closed[window.label] = self._described(window, starts, ref.id)
        self.cut |= {*starts, start}
        if documents is None:
            self.forget([start, *starts])
        else:
            self.published[start] = dict(documents)

    def forget(self, starts: Iterable[int]) -> None:
        for start in starts:
            self.published.pop(start, None)
            for each in (self.windows, self.usage, self.shifts, self.readers):
                each.free(start)

    def late(self, start: int) -> int:
        """Documents of a published window that are not in its snapshot."""
        held, published = self.windows.documents.get(start, {}), self.published.get(start, {})
        return sum(max(0, n - published.get(source, 0)) for source, n in held.items())

    def save(self, words: WordsCopy) -> Saved:
        del words
        known = list(self.phrases.values())
        rows = self.vocabulary.ids([phrase.word for phrase in known])
        # Any other may be a rare name.
        listed = [phrase for phrase, row in zip(known, rows.tolist(), strict=True) if row >= 0]
        facts = {
            "tokenizers": list(self.tokenizers),
            "phrases": [list(vars(each).values()) for each in listed],
            "cut": sorted(self.cut),
            "amendable": {str(start): dict(each) for start, each in self.published.items()},
            "closed": dict(self.closed),
        }
        return Saved(facts)

    def load(self, content: Content) -> None:
        """See Part; the counts of windows are there already."""
        facts, held = content.facts, set(self.windows.windows())
        self.tokenizers.update(dict.fromkeys(facts["tokenizers"]))
        self.note(Phrase(word, tuple(parts), *rest) for word, parts, *rest in facts["phrases"])
        self.closed.update(facts["closed"])
        self.published = {int(start): dict(each) for start, each in facts["amendable"].items()}
        # A window whose counts are still there was being published. Its snapshot may not exist, so
        # it is cut again, before those after it; if it exists, `Snapshotter.forget_published`
        # closes it.
        self.cut |= set(facts["cut"]) - (held - self.published.keys())

    def erase(self, erasure: Erasure) -> None:
        word = erasure.word
        self.phrases = {
            name: one
            for name, one in self.phrases.items()
            if name != word and word not in one.parts
        }
        for documents in self.published.values():
            documents.pop(erasure.source or "", None)

    def describe(self, at: Moment) -> dict[str, Any]:
        """Windows by label."""
        del at
        found = dict(self.closed)
        for start in self.windows.windows():
            window = self.tracker.window(start)
            if start in self.cut and start in self.published:
                found[window.label] = {**found[window.label], "late_documents": self.late(start)}
                continue
            found[window.label] = self._described(window, [start], None)
        return {"windows": dict(sorted(found.items(), key=lambda item: str(item[1]["start"])))}

    def _described(self, window: Window, starts: list[int], snapshot: str | None) -> dict[str, Any]:
        held = {"documents": self.windows.documents, "tokens": self.windows.tokens}
        return {
            "start": window.start.isoformat(),
            "end": window.end.isoformat(),
            **{
                name: sum(sum(each.get(start, {}).values()) for start in starts)
                for name, each in held.items()
            },
            "snapshot": snapshot,
        }

    def read(self, node: str, progress: SourceProgress, now: float) -> SourceMeter:
        """A node has read so much more of a source; the figures of that source."""
        self.meters.documents += progress.documents
        meter = self.meters.source(progress.source)
        meter.documents += progress.documents
        meter.tokens += progress.tokens
        meter.words.add(progress.tokens, now)
        self.tracker.progress(progress.source, progress.published, now=now, node=node)
        return meter

    def _progress(self, push: Push, progress: SourceProgress, now: float) -> None:
        meter = self.read(push.node, progress, now)
        meter.lags.add(progress.lags)
        self.meters.lags.add(progress.lags)
        start, source, documents = progress.window, progress.source, progress.documents
        if start in self.cut and start not in self.published:
            meter.late += documents
            return
        before = self.late(start) if start in self.cut else 0
        self.windows.note(start, source, documents, progress.tokens)
        if start in self.cut:
            meter.late += self.late(start) - before
        if self.usage.wanted:
            self.readers.read(start, push.node, push.incarnation, source, documents)


def by_source(push: Push) -> dict[str, int]:
    """Tokens of each source that a push read."""
    found: dict[str, int] = {}
    for each in push.progress:
        found[each.source] = found.get(each.source, 0) + each.tokens
    return found
