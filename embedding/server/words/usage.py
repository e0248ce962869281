"""How words are used, by window and source, in units of documents: what moved is judged by these.

When a window closes each node sends sums of unit vectors, one a document and word, of the window
and of the texts before it (`worker/usage/usage.py`). They are kept as they came, by process, and
added up by source and time when the window is published, in the order of the nodes' names: so the
sums do not depend on who was first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.payload import TIMES, UNITS, ContextSums
from embedding.kernel.records import CodeArray, FloatArray, HalfArray, IntArray
from embedding.server.parts import Content, Erasure, Moment, Part, PushArrival, Saved

_ROWS = 1024
"""Sums that are added at a time, so that what they pass through stays in a core's cache."""
_MOST = 60_000.0
"""Within float16."""
_COLUMNS = ("ids", "sums", "documents")
_Key = tuple[str, int]
"""Source, and `time` of `SourceUsage`."""


@dataclass(frozen=True)
class Handed:
    """What a process said of a window, or a portion of it, as a checkpoint takes it: without a
    copy.

    labels     source, part, number of words, and mark of the process that learnt it, of each of
               its parts
    ids        int64 [n], of all parts behind each other, as `documents` float32 [n] and `sums`
               float16 [n, dim]
    """

    window: int
    labels: Sequence[tuple[str, int, int, str]]
    ids: IntArray
    sums: HalfArray
    documents: FloatArray

    @classmethod
    def of(cls, window: int, parts: Sequence[ContextSums], dim: int) -> Handed:
        """Copies: off the wire they would keep a whole message alive."""
        half: list[Any] = [np.empty((0, dim), np.float16)]
        for part in parts:
            fits = part.sums.dtype == np.float16
            half.append(part.sums if fits else narrow(np.clip(part.sums, -_MOST, _MOST)))
        return cls(
            window,
            [(part.source, part.part, len(part.ids), part.incarnation) for part in parts],
            np.concatenate([np.empty(0, np.int64), *(part.ids for part in parts)]),
            np.concatenate(half),
            np.concatenate([np.empty(0, np.float32), *(part.documents for part in parts)]),
        )

    def parts(self) -> list[ContextSums]:
        """Views, no copies."""
        ends = np.cumsum([n for _, _, n, _ in self.labels], dtype=np.int64)[:-1]
        columns = [np.split(getattr(self, name), ends) for name in _COLUMNS]
        return [
            ContextSums(self.window, source, part, ids, sums, documents, incarnation)
            for (source, part, _, incarnation), ids, sums, documents in zip(
                self.labels, *columns, strict=False
            )
        ]

    @cached_property
    def words(self) -> dict[int, int]:
        """How many words of all sources there are for each time."""
        ids: dict[_Key, list[IntArray]] = {}
        for part in self.parts():
            ids.setdefault((part.source, part.part // UNITS), []).append(part.ids)
        words = Counter[int]()
        for (_, time), parts in ids.items():
            words[time] += int(np.count_nonzero(np.bincount(np.concatenate(parts))))
        return dict(words)


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
    for part in (part for said in handed for part in said.parts() if len(part.ids)):
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


_Owner = tuple[int, str, str]
"""Window, the node that says it, and the mark of the process that learnt the text."""


class UsageSums(Part):
    """What nodes handed in, of all windows that are not forgotten. Not thread-safe: the server's
    lock guards it.

    What a process says of a window comes in portions and counts once the last one is there. It
    takes the place of what the same process said before, and of what anybody said of the same text:
    heirs of a dead process say under its mark what it had learnt, and two may do so when a source
    changes nodes. So nothing is added twice, and of a process that died in the middle nothing
    stays.

    dim    of a row
    wanted False keeps none
    limit  most words of a window, summed over sources, for each time: later ones are passed over
           and counted in `dropped`
    """

    def __init__(self, dim: int, *, wanted: bool, limit: int) -> None:
        self.dim, self.wanted, self.limit = dim, wanted, limit
        self.dropped: Counter[int] = Counter()
        self._handed: dict[_Owner, Handed] = {}
        self._portions: dict[_Owner, dict[int, Handed]] = {}

    def __len__(self) -> int:
        return sum(handed.words.get(0, 0) for handed in self._handed.values())

    def describe(self, at: Moment) -> dict[str, Any]:
        whole = sum(sum(handed.words.values()) for handed in self._handed.values())
        units = UNITS if self.wanted else 0
        dropped = sum(self.dropped.values())
        usage = {"held": len(self), "before": whole - len(self), "dropped": dropped, "units": units}
        return {"usage": usage}

    def learnt(self, arrival: PushArrival, now: float, closed: Container[int]) -> None:
        push = arrival.push
        if not self.wanted:
            return
        ended = {given.window: given.first for given in push.hand_ins}
        named = {part.window for part in push.usage}
        if not push.incarnation:  # of a node that says all in one push
            ended |= dict.fromkeys(named, push.sequence)
        for window in {window for window in (*ended, *named) if window not in closed}:
            owner = window, push.node, push.incarnation
            parts = [part for part in push.usage if part.window == window]
            portion = Handed.of(window, parts, self.dim)
            self._portions.setdefault(owner, {})[push.sequence] = portion
            if window in ended:
                self._complete(owner, ended[window])

    def _complete(self, owner: _Owner, first: int) -> None:
        """The last portion is there; those before `first` are of a try given up."""
        window, node, own = owner
        by_process: dict[str, list[ContextSums]] = {own: []}
        for number, portion in self._portions.pop(owner).items():
            for part in portion.parts() if number >= first else ():
                by_process.setdefault(part.incarnation or own, []).append(part)
        self._handed.pop(owner, None)
        for incarnation, parts in by_process.items():
            if incarnation != own:
                self._drop(
                    window, incarnation, {(each.source, each.part // UNITS) for each in parts}
                )
                if (rest := self._handed.pop((window, node, incarnation), None)) is not None:
                    parts += rest.parts()
        every = [part for parts in by_process.values() for part in parts]
        whole = self._within_limit(Handed.of(window, every, self.dim))
        if len(by_process) == 1:
            self._handed[owner] = whole
            return
        for incarnation in by_process:
            parts = [part for part in whole.parts() if (part.incarnation or own) == incarnation]
            self._handed[window, node, incarnation] = Handed.of(window, parts, self.dim)

    def _within_limit(self, handed: Handed) -> Handed:
        """Without the words that there is no room for beside those of others."""
        by_node: dict[str, list[Handed]] = {}
        for (window, node, _), other in self._handed.items():
            if window == handed.window:
                by_node.setdefault(node, []).append(other)
        held: Counter[int] = Counter()
        for first, *more in by_node.values():
            # A node may say the same words under several marks.
            parts = [part for other in (first, *more) for part in other.parts()] if more else []
            held.update(Handed.of(handed.window, parts, self.dim).words if more else first.words)
        if all(held[time] + n <= self.limit for time, n in handed.words.items()):
            return handed
        within, known = [], dict[_Key, IntArray]()
        for part in handed.parts():
            time = part.part // UNITS
            ids = known.get((part.source, time), np.empty(0, np.int64))
            new = np.flatnonzero(~np.isin(part.ids, ids))
            over = new[max(0, self.limit - held[time]) :]
            self.dropped[handed.window] += len(over)
            held[time] += len(new) - len(over)
            if len(over):
                part = replace(
                    part,
                    ids=np.delete(part.ids, over),
                    sums=np.delete(part.sums, over, axis=0),
                    documents=np.delete(part.documents, over),
                )
            known[part.source, time] = np.union1d(ids, part.ids)
            within.append(part)
        return Handed.of(handed.window, within, self.dim)

    def begin(self, node: str, incarnation: str) -> None:
        """A process speaks for its node: portions of the one before it will not be completed."""
        for owner in [key for key in self._portions if key[1] == node and key[2] != incarnation]:
            del self._portions[owner]

    def drop(self, window: int, incarnation: str, source: str) -> None:
        """Another process speaks now for what this one read of a source."""
        self._drop(window, incarnation, {(source, time) for time in range(TIMES)})

    def _drop(self, window: int, incarnation: str, texts: Container[_Key]) -> None:
        for owner, handed in self._handed.items():
            if (owner[0], owner[2]) == (window, incarnation):
                parts = handed.parts()
                left = [part for part in parts if (part.source, part.part // UNITS) not in texts]
                if len(left) < len(parts):
                    self._handed[owner] = Handed.of(window, left, self.dim)

    def held(self, starts: Collection[int]) -> list[Handed]:
        """What was handed in whole of some windows, by node; nobody changes it any more."""
        return [self._handed[owner] for owner in sorted(self._handed) if owner[0] in starts]

    def free(self, start: int) -> None:
        """Forget a window."""
        self.dropped.pop(start, None)
        for owner in [owner for owner in self._portions if owner[0] == start]:
            del self._portions[owner]
        for owner in [owner for owner in self._handed if owner[0] == start]:
            del self._handed[owner]

    def forget(self, erasure: Erasure) -> None:
        def erased(handed: Handed) -> Handed:
            """Of words that go 0 documents are left."""
            parts = [part for part in handed.parts() if part.source != erasure.source]
            left = Handed.of(handed.window, parts, self.dim)
            gone = np.isin(left.ids, erasure.ids)
            left.documents[gone], left.sums[gone] = 0.0, 0.0
            return left

        self._handed = {owner: erased(handed) for owner, handed in self._handed.items()}
        for owner, portions in self._portions.items():
            self._portions[owner] = {n: erased(portion) for n, portion in portions.items()}

    def save(self) -> Saved:
        # By whom; 0: handed in whole, else the push of a portion.
        held = [(owner, 0, handed) for owner, handed in sorted(self._handed.items())] + [
            (owner, number, handed)
            for owner, portions in sorted(self._portions.items())
            for number, handed in portions.items()
        ]
        facts = [[*owner, n, [list(label) for label in handed.labels]] for owner, n, handed in held]
        arrays = {
            f"usage.{number}.{name}": getattr(handed, name)
            for number, (_, _, handed) in enumerate(held)
            for name in _COLUMNS
        }
        return Saved({"usage": facts}, lambda _: arrays)

    def load(self, content: Content) -> None:
        """See Part; sums of another dimension are passed over. Before protocol 19 labels had no
        mark."""
        for number, fact in enumerate(content.facts["usage"] if self.wanted else ()):
            window, node, incarnation, portion, labels = fact
            columns = [np.array(content.arrays[f"usage.{number}.{name}"]) for name in _COLUMNS]
            owner = int(window), str(node), str(incarnation)
            known = [(source, part, n, *(mark or [""])) for source, part, n, *mark in labels]
            handed = Handed(int(window), known, *columns)
            if handed.sums.shape[-1] != self.dim:
                continue
            if portion:
                self._portions.setdefault(owner, {})[portion] = handed
            else:
                self._handed[owner] = handed
