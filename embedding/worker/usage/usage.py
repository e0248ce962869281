"""How each word was used in a window, by its documents, when the window closes (ADR 22).

A node remembers the text of the last windows as row ids (`past.py`). When a window has been learnt
to the end it reads them all once, by vectors from the counts of all these texts
(`countvectors.py`), of several nodes by the sum of their counts (ADR 46), which know no time better
than another; and the window itself by the rows of that moment, which all nodes share, for what
compares sources. A document that uses a word gives one unit vector x/|x| of it:

    x = Σ_c (W + 1 - d_c) w_c (u_c - ū),    w = a / (a + p)

over the contexts c of all its mentions, at most W words away, with d_c the distance in words, as a
skip-gram model weighs them on average, u_c the unit vector of c, and ū the weighted mean of all
(smooth inverse frequency; Arora, Liang and Ma 2017; p: share of all words). Documents belong to
UNITS units, by author where that is known; the sums of each unit travel. A passage that several
documents hold counts once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from embedding.exchange.compression.halves import narrow
from embedding.exchange.payload import BUSIEST, UNITS, ContextSums, Inherited, WindowUse
from embedding.exchange.textcounts import TextCounts
from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray, TokenBlock
from embedding.models.config import ModelConfig
from embedding.snapshots.nearness import unit_rows
from embedding.worker.corpus.authors import name_marks
from embedding.worker.usage.contexts import add_contexts, without_repeats
from embedding.worker.usage.contextshift import context_shift
from embedding.worker.usage.countvectors import count_vectors
from embedding.worker.usage.paircounts import PairCounts, pair_counts
from embedding.worker.usage.past import PastDocuments, PastTexts, joined, of_busiest, of_corpus
from embedding.worker.usage.sharing import Peers
from embedding.worker.words.lexicon import NodeLexicon

FREQUENT = 1e-3
"""a: a word with this share of all words counts half as a context."""
LEAST_MENTIONS = 12
"""Of a word in the text that all nodes remember, below which its use is not sent: too few to judge
it."""
BUSIEST_SHARE = 0.01
"""Of the known authors of a window, those who wrote most: their documents are sent once more, so
that a change can be judged without them."""
PULLED = 8_192
"""Rows in one request."""
_BITS = (12, 24)
"""Least and most bits of a place in the table of passages."""

_UseCounts = npt.NDArray[np.floating]
Rows = Callable[[IntArray], FloatArray]
"""Rows float32 [n, dim] of `in` of some ids, as they are now."""
_Reading = Callable[[NodeLexicon, Rows], WindowUse]


class UsageReader:
    """Remembers what a node reads, and reads it again when a window closes.

    Text may be remembered by one thread while another closes a window.
    """

    def __init__(self, window: int, dim: int, past: PastTexts, peers: Peers | None = None) -> None:
        """window: words on each side that are contexts; dim: of a row; peers: None: no other node
        reads text.

        Each of several nodes reads its own text, by what all of them counted in theirs.
        """
        self.window = window
        self.past = past
        self.peers = peers
        self._dim = dim
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="usage")
        self._cores = ThreadPoolExecutor(2, thread_name_prefix="sums")
        self._ahead: tuple[int, int, Future[_Reading]] | None = None
        self._blocks = 0

    @classmethod
    def of(
        cls, model: ModelConfig, wanted: bool, past: PastTexts | None, peers: Peers | None = None
    ) -> UsageReader | None:
        """None when the server does not want it, or the model's rows do not say it."""
        if not wanted or past is None or not model.traits.usage:
            return None
        return cls(model.window, model.width, past, peers)

    def keep(self, blocks: Sequence[TokenBlock], tables: Sequence[IntArray]) -> None:
        with self._lock:
            self.past.add(blocks, tables)
            self._blocks += len(blocks)

    def ready(
        self,
        window: int,
        lexicon: NodeLexicon,
        inherited: Sequence[Inherited] = (),
    ) -> bool:
        """Whether a window can be read: each other node has handed in its counts.

        inherited  as in `close`
        """

        def counts() -> TextCounts | None:
            text = self._text(window, lexicon, inherited)
            return None if text is None else text.pairs.counted(text.ids, text.seen)

        return self.peers is None or self.peers.ready(window, counts)

    def wait(self, window: int, lexicon: NodeLexicon) -> None:
        """Until a window of a corpus can be read, or the node is told to stop.

        A stream is asked for a window that is ready.
        """
        while self.peers is not None and not self.ready(window, lexicon):
            if self.peers.rest():
                return

    def close(
        self, window: int, lexicon: NodeLexicon, rows: Rows, inherited: Sequence[Inherited] = ()
    ) -> WindowUse:
        """Read a window (Unix seconds of its start) and those before it; what there is to send.

        inherited  text of dead processes that it speaks for: what others handed in of the window
                   is read with later windows alone

        UNITS parts of each source for each of TIMES: the window by the rows of now; then, by
        vectors from counts, the window, the one before it, all older ones, and what its busiest
        authors wrote in the window. And which contexts pulled the words (`contextshift.py`).
        """
        ahead, self._ahead = self._ahead, None
        if not inherited and ahead is not None and ahead[:2] == (window, self._blocks):
            return ahead[2].result()(lexicon, rows)
        return self._by_counts(window, lexicon, inherited)(lexicon, rows)

    def begin(self, window: int, lexicon: NodeLexicon) -> None:
        """No more comes of a window of a corpus, which is learnt again now: what is read by counts
        is read meanwhile, where no other node's are needed."""
        if self.peers is None and (self._ahead is None or self._ahead[0] != window):
            reading = self._pool.submit(self._by_counts, window, lexicon, ())
            self._ahead = window, self._blocks, reading

    def _by_counts(
        self, window: int, lexicon: NodeLexicon, inherited: Sequence[Inherited]
    ) -> _Reading:
        """Read all that is read by vectors from counts; what is returned reads the rest by rows."""
        use = WindowUse(window, tuple(inherited))
        text = self._text(window, lexicon, inherited)
        if text is None:
            return lambda *_: use
        ids, whole = text.ids, text.documents
        shared = None if self.peers is None else self.peers.sum(window)
        words, seen, pairs = ids, text.seen, text.pairs
        if shared is not None:
            words, seen, pairs = shared.ids, shared.seen, PairCounts.of_sum(shared)
        vectors = count_vectors(pairs, name_marks(lexicon.names(words)), self._dim)
        by_counts = Contexts.of(words, seen, seen.sum(), vectors).take(ids)
        groups: dict[tuple[str, int, str], list[IntArray]] = {}
        # The documents of the window stand behind all others.
        busiest = np.zeros(len(whole.units), dtype=bool)
        window_begin = sum(len(stretch.units) for time, stretch in text.read if time != 1)
        latest = slice(window_begin, None)
        busiest[latest] = of_busiest(whole.voices[latest], whole.numbers[latest], BUSIEST_SHARE)
        first = 0
        for time, stretch in text.read:
            stop = first + len(stretch.units)
            for kind in (0, 1) if time == 1 else (time,):
                key = stretch.source, kind, stretch.incarnation
                groups.setdefault(key, []).append(np.arange(first, stop))
            if busiest[first:stop].any():
                theirs = first + np.flatnonzero(busiest[first:stop])
                groups.setdefault((stretch.source, BUSIEST, stretch.incarnation), []).append(theirs)
            first = stop
        often = np.isin(ids, words[seen >= LEAST_MENTIONS])

        def sums(contexts: Contexts, *, by_rows: bool) -> list[ContextSums]:
            halves = [  # of the units: one for each core
                self._cores.submit(
                    self._sums,
                    ContextSums.none(window, source, time * UNITS, incarnation),
                    *(whole, at[whole.units[at] % 2 == half], contexts, often),
                )
                for (source, time, incarnation), documents in sorted(groups.items())
                if by_rows == (time == 0)
                for at in [np.concatenate(documents)]
                for half in (0, 1)
            ]
            return [part for half in halves for part in half.result()]

        shifting = self._cores.submit(context_shift, window, text.pairs, ids, by_counts.says)
        parts, shift = sums(by_counts, by_rows=False), shifting.result()

        def finished(lexicon: NodeLexicon, rows: Rows) -> WindowUse:
            every = np.union1d(ids, words)
            every = every[positions(lexicon.ids, every) >= 0]
            vectors = [rows(every[at : at + PULLED]) for at in range(0, len(every), PULLED)]
            model = np.concatenate(vectors).astype(np.float32)
            mentions = lexicon.counts[lexicon.places(every)]
            now = Contexts.of(every, mentions, lexicon.counts.sum(), model).take(ids)
            every_sum = sorted([*parts, *sums(now, by_rows=True)], key=lambda p: (p.source, p.part))
            return replace(use, sums=tuple(every_sum), shifts=() if shift is None else (shift,))

        return finished

    def _text(
        self, window: int, lexicon: NodeLexicon, inherited: Sequence[Inherited]
    ) -> _Text | None:
        """A window and those before it, without passages that were read twice; None: nothing."""
        ours = {(part.incarnation, part.source) for part in inherited}
        with self._lock:
            self.past.find_late_words(lexicon.rows)
            by_window = {at: self.past.of_window(at) for at in [window, *self.past.before(window)]}
        own = by_window.pop(window)
        # Of the dead under their mark what they have not handed in themselves; older text is what
        # this process remembers, whoever had learnt it.
        of_window = [p for p in own if not p.incarnation or (p.incarnation, p.source) in ours]
        before = [[replace(part, incarnation="") for part in parts] for parts in by_window.values()]
        # In the order of the documents' own numbers: the sums do not depend on when each was read.
        read = [
            (min(1 + at, BUSIEST - 1), stretch)
            for at, parts in enumerate([of_window, *before])
            for stretch in of_corpus(parts)
        ]
        if not any(time == 1 for time, _ in read):
            return None
        read.sort(key=lambda each: -each[0])
        whole = joined([stretch for _, stretch in read])
        whole = replace(whole, ids=np.maximum(whole.ids, -1))
        place = np.zeros(int(whole.ids.max(initial=-1)) + 2, dtype=np.int32)
        place[whole.ids] = 1
        ids = np.flatnonzero(place[:-1])  # the last place is that of -1
        ids = ids[positions(lexicon.ids, ids) >= 0]
        if not len(ids):
            return None
        place[:] = -1
        place[ids] = np.arange(len(ids))
        tokens = place[whole.ids]
        bits = int(np.clip(np.ceil(np.log2(2.0 * len(tokens))), *_BITS))
        # Any document that holds a passage may keep it, whenever it was written: if the oldest one
        # always did, the last window would have less text, and the times would not be exchangeable.
        order = whole.chance_order(window)
        tokens = without_repeats(tokens, whole.sentences, whole.documents, order, bits)
        older = sum(len(stretch.units) for time, stretch in read if time > 1)
        border = int(whole.sentences[whole.documents[older]])
        pairs = pair_counts(tokens, whole.sentences, border, self.window, len(ids))
        seen = np.bincount(tokens[tokens >= 0], minlength=len(ids)).astype(np.float64)
        return _Text(read, replace(whole, ids=tokens), ids, seen, pairs)

    def _sums(
        self,
        empty: ContextSums,
        texts: PastDocuments,
        documents: IntArray,
        contexts: Contexts,
        chosen: npt.NDArray[np.bool_],
    ) -> list[ContextSums]:
        """The sums of documents int64 [k] of one source and time, unit by unit.

        texts   tokens are rows of `contexts`
        chosen  bool [v], the words that are sent
        """
        units = texts.units[documents]
        sums = np.zeros_like(contexts.says)
        counts, parts = np.zeros(len(contexts.ids), dtype=np.float32), []
        for unit in np.unique(units).tolist():
            add_contexts(
                *(texts.ids, texts.sentences, texts.documents, documents[units == unit]),
                *(chosen, contexts.says, self.window, sums, counts),
            )
            used = np.flatnonzero(counts)
            if len(used):
                ids, part = contexts.ids[used], empty.part + unit
                rows = narrow(sums[used])
                parts.append(replace(empty, part=part, ids=ids, sums=rows, documents=counts[used]))
            # Fresh memory of every unit would cost more than the sums.
            sums[used], counts[used] = 0.0, 0.0
        return parts


@dataclass(frozen=True)
class _Text:
    """A window's text and that before it, to be read once more.

    read       times of `SourceUsage` and stretches of documents, in the order of `documents`
    documents  all of them; tokens are places in `ids`, the words int64 [v]
    seen       float64 [v], mentions; pairs of words in both parts
    """

    read: list[tuple[int, PastDocuments]]
    documents: PastDocuments
    ids: IntArray
    seen: _UseCounts
    pairs: PairCounts


@dataclass(frozen=True)
class Contexts:
    """What words say as contexts.

    ids   int64 [v], increasing; says float32 [v, dim], w (u - ū)
    """

    ids: IntArray
    says: FloatArray

    @classmethod
    def of(cls, ids: IntArray, counts: _UseCounts, total: float, vectors: FloatArray) -> Contexts:
        """Of words that occur `counts` [v] times among `total`. ids: int64 [v], increasing.

        vectors  float32 [v, dim]
        """
        units = unit_rows(vectors)
        share = counts / max(float(total), 1.0)
        weights = (FREQUENT / (FREQUENT + share)).astype(np.float32)
        heavy = (share * weights).astype(np.float32)
        centre = heavy @ units / max(float(heavy.sum()), 1e-12)
        says = np.ascontiguousarray((units - centre) * weights[:, None], dtype=np.float32)
        return cls(ids, says)

    def take(self, ids: IntArray) -> Contexts:
        """Of these words; one that is not among them says nothing."""
        at = positions(self.ids, ids)
        return Contexts(ids, np.where((at >= 0)[:, None], self.says[at], np.float32(0.0)))
