"""How words are used, by window and source, in units of documents: what moved is judged by these.

When a window closes each node sends sums of unit vectors, one a document and word, of the window
and of the texts before it (`worker/usage/usage.py`). They are kept as they came, by process, and
added up by source and time when the window is published, in the order of the nodes' names: so the
sums do not depend on who was first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.payload import UNITS, ContextSums
from embedding.exchange.protocol import Push
from embedding.kernel.records import CodeArray, FloatArray, HalfArray, IntArray
from embedding.server.parts import Content, Erasure, Moment, Part, Saved
from embedding.server.words.digests import WordsCopy

_ROWS = 1024
"""Sums that are added at a time, so that what they pass through stays in a core's cache."""
_MOST = 60_000.0
"""Within float16."""
_COLUMNS = ("ids", "documents", "sums")
_Key = tuple[str, int]
"""Source, and `time` of `SourceUsage`."""


@dataclass(frozen=True)
class SourceUsage:
    """The sums of one source in one window. Most words are in few of the UNITS, and a sum is held
    for each unit that has one.

    ids        int64 [n], row ids, increasing
    documents  float32 [n, UNITS], how many documents use each word
    units      int32 [n, UNITS], which of `sums` is that of each unit
    sums       float16 [k, dim], of one unit vector a document; the first is 0, that of all units
               without documents
    time       0: texts of the window, by the rows of the model; 1: the same, 2: of the one before
               it, 3: of all older ones, 4 (BUSIEST): of the window's busiest authors, by vectors
               from the counts of all of them
    """

    source: str
    ids: IntArray
    documents: FloatArray
    units: CodeArray
    sums: HalfArray
    time: int = 0


def added_up(handed: Iterable[Handed]) -> list[SourceUsage]:
    """What processes said of some windows, by source and time, added in this order."""
    parts: dict[_Key, list[ContextSums]] = {}
    for part in (part for one in handed for part in one.sums_of(0) if len(part.ids)):
        parts.setdefault((part.source, part.part // UNITS), []).append(part)
    return [_added(source, time, parts[source, time]) for source, time in sorted(parts)]


def _added(source: str, time: int, parts: Sequence[ContextSums]) -> SourceUsage:
    """Parts, each of which names a word once. What one process alone says is copied as it is."""
    place = np.zeros(max(int(part.ids.max()) for part in parts) + 1, dtype=np.int64)
    for part in parts:
        place[part.ids] = 1
    ids = np.flatnonzero(place)
    place[ids] = np.arange(len(ids))
    documents = np.zeros((len(ids), UNITS), dtype=np.float32)
    units = np.zeros((len(ids), UNITS), dtype=np.int32)
    most, used = 1 + sum(len(part.ids) for part in parts), 1
    sums = np.zeros((most, parts[0].sums.shape[1]), dtype=np.float16)
    for part in parts:
        at, unit = place[part.ids], part.part % UNITS
        documents[at, unit] += part.documents
        new = at[units[at, unit] == 0]
        units[new, unit] = np.arange(used, used + len(new))
        if len(new) == len(at):
            sums[used : used + len(new)] = part.sums
        else:
            for start in range(0, len(at), _ROWS):
                some = slice(start, start + _ROWS)
                rows = units[at[some], unit]
                whole = widen(sums[rows]) + widen(part.sums[some])
                sums[rows] = narrow(np.clip(whole, -_MOST, _MOST))
        used += len(new)
    return SourceUsage(source, ids, documents, units, sums, time)


@dataclass(frozen=True)
class Handed:
    """What a process said of a window, or a portion of it, as it came.

    parts      source, which documents (`ContextSums.part`) and how many words, row after row
    ids        int64 [n], row ids; documents float32 [n]; sums float16 [n, dim]
    """

    parts: tuple[tuple[str, int, int], ...]
    ids: IntArray
    documents: FloatArray
    sums: HalfArray

    @classmethod
    def of(cls, parts: Sequence[ContextSums], dim: int) -> Handed:
        """Copies: off the wire they would keep a whole message alive."""
        sums = [
            part.sums
            if part.sums.dtype == np.float16
            else narrow(np.clip(part.sums, -_MOST, _MOST))
            for part in parts
        ]
        return cls(
            tuple((part.source, part.part, len(part.ids)) for part in parts),
            np.concatenate([np.empty(0, np.int64), *(part.ids for part in parts)]),
            np.concatenate([np.empty(0, np.float32), *(part.documents for part in parts)]),
            np.concatenate([np.empty((0, dim), np.float16), *sums]),
        )

    def sums_of(self, window: int) -> Iterator[ContextSums]:
        """Part after part; no copies."""
        first = 0
        for source, part, n in self.parts:
            own = slice(first, first + n)
            yield ContextSums(
                window, source, part, self.ids[own], self.sums[own], self.documents[own]
            )
            first += n

    def without(self, source: str) -> Handed:
        """All but a source."""
        kept = [part for part in self.sums_of(0) if part.source != source]
        return Handed.of(kept, self.sums.shape[1])

    def forgetting(self, ids: IntArray) -> Handed:
        """Without these words (row ids int64 [n]), of which 0 documents are left."""
        gone = np.isin(self.ids, ids)
        documents, sums = self.documents.copy(), self.sums.copy()
        documents[gone], sums[gone] = 0.0, 0.0
        return replace(self, documents=documents, sums=sums)

    @cached_property
    def words(self) -> dict[int, int]:
        """How many words of all sources there are for each time."""
        found, words = dict[_Key, list[IntArray]](), Counter[int]()
        for part in self.sums_of(0):
            found.setdefault((part.source, part.part // UNITS), []).append(part.ids)
        for (_, time), ids in found.items():
            words[time] += int(np.count_nonzero(np.bincount(np.concatenate(ids))))
        return dict(words)


_Owner = tuple[int, str, str]
"""Window, node, and the mark of its process."""


class UsageSums(Part):
    """What nodes handed in, of all windows that are not forgotten. Not thread-safe: the server's
    lock guards it.

    What a process says of a window comes in portions and counts once the last one is there. It
    takes the place of what the same process said before. So nothing is added twice, and of a
    process that died in the middle nothing stays.

    dim    of a row
    wanted False keeps none
    limit  most words of a window, summed over sources, for each time: later ones are passed over
           and counted in `dropped`
    """

    def __init__(self, dim: int, *, wanted: bool, limit: int) -> None:
        self.dim, self.wanted, self.limit = dim, wanted, limit
        self.dropped: Counter[int] = Counter()
        self._handed: dict[_Owner, Handed] = {}
        self._words: dict[_Owner, dict[int, int]] = {}
        self._portions: dict[_Owner, dict[int, Handed]] = {}

    def __len__(self) -> int:
        return sum(words.get(0, 0) for words in self._words.values())

    def describe(self, at: Moment) -> dict[str, Any]:
        del at
        before = sum(sum(words.values()) for words in self._words.values()) - len(self)
        units = UNITS if self.wanted else 0
        dropped = sum(self.dropped.values())
        usage = {"held": len(self), "before": before, "dropped": dropped, "units": units}
        return {"usage": usage}

    def learnt(self, push: Push, closed: Collection[int]) -> None:
        """A push was taken; what belongs to closed windows is passed over."""
        if not self.wanted:
            return
        ended = {one.window: one.first for one in push.hand_ins}
        named = {part.window for part in push.usage}
        if not push.incarnation:  # of a node that says all in one push
            ended |= dict.fromkeys(named, push.sequence)
        for window in {*ended, *named}.difference(closed):
            owner = window, push.node, push.incarnation
            portion = Handed.of([part for part in push.usage if part.window == window], self.dim)
            self._portions.setdefault(owner, {})[push.sequence] = portion
            if window in ended:
                self._complete(owner, ended[window])

    def _complete(self, owner: _Owner, first: int) -> None:
        """The last portion is there; those before `first` are of a try given up."""
        portions = self._portions.pop(owner)
        ours = [one for number, one in portions.items() if number >= first]
        parts = [part for each in ours for part in each.sums_of(owner[0])]
        self._handed.pop(owner, None)
        self._words.pop(owner, None)
        self._put(owner, self._within_limit(owner[0], Handed.of(parts, self.dim)))

    def _put(self, owner: _Owner, handed: Handed) -> None:
        self._handed[owner], self._words[owner] = handed, handed.words

    def _within_limit(self, window: int, handed: Handed) -> Handed:
        """Without the words that there is no room for beside those of others."""
        held: Counter[int] = Counter()
        for owner, words in self._words.items():
            if owner[0] == window:
                held.update(words)
        if all(held[time] + n <= self.limit for time, n in handed.words.items()):
            return handed
        found, known = [], dict[_Key, IntArray]()
        for part in handed.sums_of(window):
            time = part.part // UNITS
            ids = known.get((part.source, time), np.empty(0, np.int64))
            new = np.flatnonzero(~np.isin(part.ids, ids))
            over = new[max(0, self.limit - held[time]) :]
            self.dropped[window] += len(over)
            held[time] += len(new) - len(over)
            if len(over):
                part = replace(
                    part,
                    ids=np.delete(part.ids, over),
                    sums=np.delete(part.sums, over, axis=0),
                    documents=np.delete(part.documents, over),
                )
            known[part.source, time] = np.union1d(ids, part.ids)
            found.append(part)
        return Handed.of(found, self.dim)

    def begin(self, node: str, life: str) -> None:
        """A process speaks for its node: portions of the one before it will not be completed."""
        for owner in [one for one in self._portions if one[1] == node and one[2] != life]:
            del self._portions[owner]

    def drop(self, window: int, life: str, source: str) -> None:
        """Another process speaks now for what this one read of a source."""
        for owner, handed in list(self._handed.items()):
            theirs = (owner[0], owner[2]) == (window, life)
            if theirs and any(name == source for name, _, _ in handed.parts):
                self._put(owner, handed.without(source))

    def held(self, starts: Collection[int]) -> list[Handed]:
        """What was handed in whole of some windows, by node; nobody changes it any more."""
        return [self._handed[owner] for owner in sorted(self._handed) if owner[0] in starts]

    def free(self, start: int) -> None:
        """Forget a window."""
        self.dropped.pop(start, None)
        for owner in [owner for owner in self._portions if owner[0] == start]:
            del self._portions[owner]
        for owner in [owner for owner in self._handed if owner[0] == start]:
            del self._handed[owner], self._words[owner]

    def erase(self, erasure: Erasure) -> None:
        def erased(one: Handed) -> Handed:
            kept = one if erasure.source is None else one.without(erasure.source)
            return kept.forgetting(erasure.ids)

        for owner, handed in list(self._handed.items()):
            self._put(owner, erased(handed))
        for owner, portions in self._portions.items():
            self._portions[owner] = {n: erased(each) for n, each in portions.items()}

    def _all(self) -> list[tuple[_Owner, int, Handed]]:
        """All that is kept, by whom; 0: handed in whole, else the push of a portion."""
        return [(owner, 0, one) for owner, one in sorted(self._handed.items())] + [
            (owner, number, one)
            for owner, portions in sorted(self._portions.items())
            for number, one in portions.items()
        ]

    def save(self, words: WordsCopy) -> Saved:
        del words
        held = self._all()
        facts = [[*owner, n, [list(part) for part in one.parts]] for owner, n, one in held]
        arrays = {
            f"usage.{number}.{name}": getattr(one, name)
            for number, (_, _, one) in enumerate(held)
            for name in _COLUMNS
        }
        return Saved({"usage": facts}, lambda: arrays)

    def load(self, content: Content) -> None:
        """See Part; sums of another dimension are passed over."""
        for number, fact in enumerate(content.facts["usage"] if self.wanted else ()):
            window, node, incarnation, portion, parts = fact
            columns = (np.array(content.arrays[f"usage.{number}.{name}"]) for name in _COLUMNS)
            one = Handed(tuple((s, p, n) for s, p, n in parts), *columns)
            owner = int(window), str(node), str(incarnation)
            if one.sums.shape[-1] != self.dim:
                continue
            if portion:
                self._portions.setdefault(owner, {})[portion] = one
            else:
                self._put(owner, one)
