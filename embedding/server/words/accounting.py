"""What was read: counts by word, source and window, figures by source, progress of event time."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from embedding.exchange.protocol import Push
from embedding.exchange.wire import text_array
from embedding.kernel.records import Phrase, SnapshotRef, SourceProgress, Window
from embedding.server.config import ServerConfig
from embedding.server.figures.meters import Meters, SourceMeter
from embedding.server.parts import Content, Erasure, Moment, Part, PushArrival, Saved
from embedding.server.words.counts import WindowCounts
from embedding.server.words.inferred import InferredVectors
from embedding.server.words.readers import WindowReaders
from embedding.server.words.shifts import ContextShifts
from embedding.server.words.usage import UsageSums
from embedding.server.words.vocabulary import Vocabulary
from embedding.server.words.windows import WindowTracker

MOST_PHRASES = 1_000_000
"""Phrases whose parts are remembered."""


class Accounts(Part):
    """Everything counted. Not thread-safe: the server's lock guards it.

    readers     who read text of a window, and has handed in how it used words
    rare        what stood around words that were read only a few times
    cut         starts of windows that are published, or are being published
    published   of those of them whose counts are kept for amendments: documents by source in
                the snapshot
    on_complete  called under the lock with a window that a push completes, before that is applied
    """

    def __init__(self, config: ServerConfig, vocabulary: Vocabulary, dim: int) -> None:
        self.vocabulary = vocabulary
        self.usage = UsageSums(dim, wanted=config.usage, limit=config.usage_words)
        self.readers = WindowReaders(moves=not config.in_step)
        self.shifts = ContextShifts(wanted=config.usage)
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
        self.on_complete: Callable[[Window], None] | None = None

    @property
    def parts(self) -> dict[str, Part]:
        """All that is counted here. Words are counted first: rare ones are told by their counts."""
        return {
            "accounts": self,
            "rare": self.rare,
            "usage": self.usage,
            "shifts": self.shifts,
            "readers": self.readers,
            "windows": self.windows,
            "sources": self.tracker,
            "figures": self.meters,
        }

    @property
    def forgotten(self) -> set[int]:
        """Starts of published windows that take nothing any more."""
        return self.cut - self.published.keys()

    def learnt(self, arrival: PushArrival, now: float, closed: Container[int]) -> None:
        push = arrival.push
        self.meters.dropped_counts += self._count(
            arrival, text_array(push.counts.words).to_pylist()
        )
        if push.tokenizer_digest:
            self.tokenizers[push.tokenizer_digest] = None
        self.note(push.phrases)
        for progress in push.progress:
            self._progress(push, progress, now)
        for given in push.hand_ins:
            for incarnation, source in self.readers.hand_in(push.node, push.incarnation, given):
                self.usage.drop(given.window, incarnation, source)
                self.shifts.drop(given.window, incarnation)

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
        if self.on_complete is None:
            return
        own = set()
        for arrival in arrivals:
            for each in arrival.push.progress:
                self.tracker.progress(each.source, each.published, now=now, node=arrival.push.node)
                own.add(each.window)
        for window in self.due(now):
            if int(window.start.timestamp()) in own:
                break
            self.on_complete(window)

    def due(self, now: float) -> list[Window]:
        """Windows that the watermark has passed and that were not cut."""
        starts = [start for start in self.windows.windows() if start not in self.cut]
        return self.tracker.due(starts, now=now)

    def greet(self, node: str, incarnation: str) -> None:
        """A process speaks for its node from now on."""
        self.readers.greet(node, incarnation)
        self.usage.begin(node, incarnation)

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
            self.free([start, *starts])
        else:
            self.published[start] = dict(documents)

    def free(self, starts: Iterable[int]) -> None:
        for start in starts:
            self.published.pop(start, None)
            for each in (self.windows, self.usage, self.shifts, self.readers):
                each.free(start)

    def late(self, start: int) -> int:
        """Documents of a published window that are not in its snapshot."""
        held, published = self.windows.documents.get(start, {}), self.published.get(start, {})
        return sum(max(0, n - published.get(source, 0)) for source, n in held.items())

    def save(self) -> Saved:
        known = list(self.phrases.values())
        rows = self.vocabulary.ids([phrase.word for phrase in known])
        # Any other may be a rare name.
        listed = [phrase for phrase, row in zip(known, rows.tolist(), strict=True) if row >= 0]
        facts = {
            "tokenizers": list(self.tokenizers),
            "phrases": [list(vars(each).values()) for each in listed],
            "closed_windows": sorted(self.cut),
            "revisable": {str(start): dict(each) for start, each in self.published.items()},
            "snapshots": dict(self.closed),
        }
        return Saved(facts)

    def load(self, content: Content) -> None:
        facts = content.facts
        counted = {int(name[7:]) for name in content.tables if name.startswith("window.")}
        self.tokenizers.update(dict.fromkeys(facts["tokenizers"]))
        self.note(Phrase(word, tuple(parts), *rest) for word, parts, *rest in facts["phrases"])
        self.closed.update(facts["snapshots"])
        self.published = {int(start): dict(each) for start, each in facts["revisable"].items()}
        # A window whose counts are still there was being published. Its snapshot may not exist, so
        # it is cut again, before those after it; if it exists, `Snapshotter.forget_published`
        # closes it.
        self.cut |= set(facts["closed_windows"]) - (counted - self.published.keys())

    def forget(self, erasure: Erasure) -> None:
        word = erasure.word
        self.phrases = {
            name: phrase
            for name, phrase in self.phrases.items()
            if name != word and word not in phrase.parts
        }
        for documents in self.published.values():
            documents.pop(erasure.source or "", None)

    def describe(self, at: Moment) -> dict[str, Any]:
        """Windows by label."""
        windows = dict(self.closed)
        for start in self.windows.windows():
            window = self.tracker.window(start)
            if start in self.cut and start in self.published:
                windows[window.label] = windows[window.label] | {"late_documents": self.late(start)}
            else:
                windows[window.label] = self._described(window, [start], None)
        return {"windows": dict(sorted(windows.items(), key=lambda item: str(item[1]["start"])))}

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
    tokens: dict[str, int] = {}
    for each in push.progress:
        tokens[each.source] = tokens.get(each.source, 0) + each.tokens
    return tokens
