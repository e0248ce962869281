"""What was read: counts by word, source and window, figures by source, progress of event time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from embedding.exchange.pasttexts import TOKEN_BYTES
from embedding.exchange.protocol import Push
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Phrase, SnapshotRef, SourceProgress, TimeArray, Window
from embedding.server.config import ServerConfig
from embedding.server.figures.meters import Meters, SourceMeter
from embedding.server.words.counts import WindowCounts
from embedding.server.words.inferred import InferredVectors
from embedding.server.words.peertexts import MOST_TOKENS, PeerTexts
from embedding.server.words.shifts import ContextShifts
from embedding.server.words.usage import UsageSums
from embedding.server.words.vocabulary import Vocabulary
from embedding.server.words.windows import WindowTracker

_FAR = 400 * 365 * 86_400
"""Seconds from 1970 beyond which a window's start is nonsense."""


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
        """The arrival of a checked push; RefusedError for windows outside any calendar."""
        groups = push.counts.groups
        starts = [group.window for group in groups] + [each.window for each in push.progress]
        starts += [part.window for part in push.usage] + [one.window for one in push.shifts]
        if starts and not -_FAR < min(starts) <= max(starts) < _FAR:
            raise RefusedError(
                f"push {push.sequence} of node {push.node}: a window that starts outside "
                "any calendar; Unix seconds are accepted."
            )
        published = {p.source: p.published for p in push.progress}
        times = [published.get(group.source, float(group.window)) for group in groups]
        lengths = np.diff([0, *(group.stop for group in groups)])
        return cls(push, np.repeat(np.asarray(times, dtype=np.float64), lengths), nbytes)


class Accounts:
    """Everything counted. Not thread-safe: the server's lock guards it.

    peers       what the nodes of a corpus remember
    rare        what stood around words that were read only a few times
    read_again  by window and source, documents that a snapshot holds and that nodes send once more,
                as the server was killed between that snapshot and its next checkpoint
    """

    def __init__(self, config: ServerConfig, vocabulary: Vocabulary, dim: int) -> None:
        self.vocabulary = vocabulary
        self.usage = UsageSums(dim, wanted=config.usage, limit=config.usage_words)
        self.shifts = ContextShifts(wanted=config.usage)
        self.peers = PeerTexts(min(MOST_TOKENS, config.max_message_bytes // TOKEN_BYTES))
        self.windows = WindowCounts(vocabulary.names)
        self.tracker = WindowTracker(
            config.window,
            idle_s=config.source_idle_s,
            lateness_s=config.allowed_lateness_s,
            in_step=config.in_step,
        )
        self.meters = Meters()
        self.rare = InferredVectors(
            vocabulary, mentions=config.rare_mentions, limit=config.rare_words
        )
        self.tokenizers: dict[str, None] = {}
        self.phrases: dict[str, Phrase] = {}
        self.cut: set[int] = set()
        self.read_again: dict[int, dict[str, int]] = {}
        self.closed: dict[str, dict[str, Any]] = {}
        self._on_complete: Callable[[Window], None] | None = None

    def when_complete(self, call: Callable[[Window], None]) -> None:
        """Have `call` called under the lock with a window that a push completes, before the push
        is applied."""
        self._on_complete = call

    def learnt(self, arrival: PushArrival, now: float) -> None:
        """A push was applied."""
        push = arrival.push
        self.meters.dropped_counts += self._count(arrival, _listed(push.counts.words))
        self.windows.add(push.counts, self.cut)
        self.usage.learnt(push, self.cut)
        self.shifts.learnt(push, self.cut)
        self.meters.learnt(push, now)
        self.meters.replayed_tokens += push.replayed
        if push.tokenizer_digest:
            self.tokenizers[push.tokenizer_digest] = None
        self.note(push.phrases)
        for progress in push.progress:
            self._progress(push.node, progress, now)
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

    def close(self, starts: list[int], ref: SnapshotRef) -> None:
        """A snapshot holds these windows: their counts are needed no longer."""
        window = Window(ref.window_start, ref.window_end)
        self.closed[window.label] = self._described(window, starts, ref.id)
        self.cut |= {*starts, int(window.start.timestamp())}
        for start in starts:
            self.windows.free(start)
            self.usage.free(start)
            self.shifts.free(start)

    def expect_again(self, window: int, documents: Mapping[str, int]) -> None:
        """Nodes send documents of a window once more (after a restart).

        documents  by source, of its snapshot, which is newer than the checkpoint: of these nodes
                   send what the checkpoint has not
        """
        known = self.windows.documents.get(window, {})
        self.read_again[window] = {
            source: n - known.get(source, 0)
            for source, n in documents.items()
            if n > known.get(source, 0)
        }

    def describe(self) -> dict[str, Any]:
        """Windows by label, as the status shows them."""
        found = dict(self.closed)
        for start in self.windows.windows():
            window = self.tracker.window(start)
            found[window.label] = self._described(window, [start], None)
        return dict(sorted(found.items(), key=lambda item: str(item[1]["start"])))

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

    def _progress(self, node: str, progress: SourceProgress, now: float) -> None:
        meter = self.read(node, progress, now)
        meter.lags.add(progress.lags)
        self.meters.lags.add(progress.lags)
        if progress.window in self.cut:
            meter.late += progress.documents - self._read_again(progress)
        else:
            self.windows.note(progress.window, progress.source, progress.documents, progress.tokens)

    def _read_again(self, progress: SourceProgress) -> int:
        """How many of these documents of a closed window its snapshot holds already."""
        left = self.read_again.get(progress.window, {})
        found = min(progress.documents, left.get(progress.source, 0))
        if found:
            left[progress.source] -= found
        return found


def by_source(push: Push) -> dict[str, int]:
    """Tokens of each source that a push read."""
    found: dict[str, int] = {}
    for each in push.progress:
        found[each.source] = found.get(each.source, 0) + each.tokens
    return found


def iso(seconds: float | None) -> str | None:
    """Unix seconds as ISO 8601 in UTC."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def _listed(words: Any) -> list[str]:
    """Words as a list, from an Arrow array or any sequence."""
    return words.to_pylist() if isinstance(words, pa.Array) else list(words)
