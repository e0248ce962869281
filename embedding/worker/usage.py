"""How each word was used in a window, as sums that windows and sources can be compared by.

Temporal referencing (Dubossarsky et al. 2019) gives a word a row for each window and source and
trains it against contexts that all share. Here such a row is the mean of what a word's contexts
say, taken before the block is learnt, in the tables as they are then (docs/trends.md):

    g = Σ_c w_c σ(−τ u_c·v) (u_c, v_c, x_c),    N = Σ_c w_c

u_c and v_c are the output and the input row of the context c and x_c is what stands around it
(`secondorder.py`), one behind the other: two trainings agree on more where they say in three ways
what a context is (ADR 19). v is the word's row, w_c falls with the distance and with the frequency
of c as training draws it. σ(−u_c·v) is the slope
of the skip-gram objective at the row: a context that the row expects has little to say. It is taken
at half of the row (τ, `slopes.py`), so that what one training happened to expect weighs less. What
is trained does not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from embedding.exchange.compression.halves import narrow
from embedding.exchange.payload import BlockCounts, Reread, Usage, said
from embedding.models.base import LocalBlock
from embedding.models.config import Model, ModelConfig
from embedding.records import CodeArray, FloatArray, IntArray, Table, TokenBlock, WindowUnit
from embedding.worker.compass import Pull, Tables
from embedding.worker.counting import window_starts
from embedding.worker.lexicon import Lexicon
from embedding.worker.past import PastTexts
from embedding.worker.planning import Plan
from embedding.worker.rereading import Rereading
from embedding.worker.slopes import MOST, add_usage
from embedding.worker.ticks import Begun, Prepared

Used = tuple[Usage | None, tuple[Reread, ...]]
"""What stood around the words of a tick, and around those of texts before."""


class UsageReader:
    """Reads how words are used in the fresh text of a tick."""

    def __init__(
        self,
        window: int,
        unit: WindowUnit,
        *,
        sample: float = 0.0,
        past: PastTexts | None = None,
    ) -> None:
        """past: where windows before are remembered; None reads nothing again."""
        self.window = window
        self.unit = unit
        self.sample = sample
        self.again = None if past is None else Rereading(window, past)
        self._newest: int | None = None

    @classmethod
    def of(
        cls, model: ModelConfig, unit: WindowUnit, wanted: bool, past: PastTexts | None = None
    ) -> UsageReader | None:
        """None when the server does not want it or rows mean something else than in skip-gram."""
        if not wanted or model.model is not Model.SGNS:
            return None
        return cls(model.window, unit, sample=model.sample, past=past)

    def begun(self, counts: BlockCounts, lexicon: Lexicon) -> Begun | None:
        """The words there are when a window begins, else None. Ticks are told of in order."""
        newest = max((group.window for group in counts.groups), default=None)
        if self.again is None or newest is None:
            return None
        if self._newest is not None and newest <= self._newest:
            return None
        self._newest = newest
        ids = lexicon.ids.copy()
        return Begun(newest, ids, lexicon.keep(ids, self.sample))

    @property
    def left(self) -> int:
        """Tokens of the windows before that are to be read again for this window."""
        return 0 if self.again is None else self.again.left

    def begin(self, begun: Begun | None, dim: int) -> None:
        """A window begins, if one does; told before anything of its first tick can fail.

        dim  columns of a row
        """
        if self.again is not None and begun is not None:
            self.again.begin(begun, dim)

    def tick(self, prepared: Prepared, base: Mapping[Table, FloatArray], pull: Pull) -> Used:
        """What a tick says of its words, and some texts of the windows before where one begins.

        base  float32, the tick's rows of `in` and `out` before training, only read
        pull  rows of some ids as they are now
        """
        blocks, counts, planned = prepared.blocks, prepared.counts, prepared.planned
        if self.again is None:
            vectors, contexts = base[Table.IN], base[Table.OUT]
            return self.read(blocks, counts, planned.block, vectors, contexts), ()
        lengths = [len(one.codes) for one in blocks]
        own, words = _fresh(planned.block, planned.words, sum(lengths))
        seen = {
            table: self.again.see(table, ids, rows)
            for table, (ids, rows) in _rows(planned, words, base).items()
        }
        compass = self.again.compass
        found: Usage | None = None
        if compass is not None:
            held = compass.rows(words)
            found = self.read(blocks, counts, replace(own, keep=held.keep), *held[:3])
        elif not self.again.lost:
            block = planned.block if len(planned.words) else own
            found = self.read(blocks, counts, block, seen[Table.IN], seen[Table.OUT])
        reread = self.again.read(sum(lengths), pull if len(planned.words) else _mapped(base))
        self.again.keep(blocks, own, words)
        return found, reread

    def read(
        self,
        blocks: Sequence[TokenBlock],
        counts: BlockCounts,
        planned: LocalBlock,
        vectors: FloatArray,
        contexts: FloatArray,
        around: FloatArray | None = None,
    ) -> Usage | None:
        """What the blocks of a tick say of their words.

        counts             as `count_words` gave them for these blocks
        planned            its text begins with these blocks
        vectors, contexts  float32, the tick's rows before training, only read
        around             the same of `secondorder.py`; None: nothing is known
        """
        owners = self._owners(blocks, counts, planned)
        n = len(owners)
        if not n:
            return None
        slopes = np.zeros((len(counts.ids), said(contexts.shape[1])), dtype=np.float32)
        pairs = np.zeros(len(counts.ids), dtype=np.float32)
        sentences = planned.sentences[: int(np.searchsorted(planned.sentences, n)) + 1]
        add_usage(
            owners,
            planned.tokens[:n],
            sentences,
            planned.keep,
            np.ascontiguousarray(vectors),
            np.ascontiguousarray(contexts),
            np.zeros(contexts.shape, np.float32) if around is None else around,
            self.window,
            slopes,
            pairs,
        )
        at = np.flatnonzero((pairs > 0) & (counts.ids >= 0))
        halves = narrow(np.clip(slopes[at], -MOST, MOST))
        return Usage(at.astype(np.int64), halves, pairs[at]) if len(at) else None

    def _owners(
        self, blocks: Sequence[TokenBlock], counts: BlockCounts, planned: LocalBlock
    ) -> CodeArray:
        """int32 [tokens of the blocks]: the row of `counts` that each was counted in, or -1."""
        lengths = [len(block.codes) for block in blocks]
        tokens = planned.tokens[: sum(lengths)]
        owners = np.full(len(tokens), -1, dtype=np.int32)
        firsts = np.cumsum([0, *lengths])
        start = 0
        for (at, chosen), group in zip(self._groups(blocks), counts.groups, strict=True):
            chosen = chosen + firsts[at]
            chosen = chosen[tokens[chosen] >= 0]
            # Without ids of their own, rows are the whole table's: hogwild.
            rows = tokens[chosen]
            ids = rows if planned.ids is None else planned.ids[rows]
            # The counts of a group are in order of the ids.
            places = np.searchsorted(counts.ids[start : group.stop], ids)
            owners[chosen] = (start + places).astype(np.int32)
            start = group.stop
        return owners

    def _groups(self, blocks: Sequence[TokenBlock]) -> Iterator[tuple[int, IntArray]]:
        """Block and places of its tokens, for each group in the order of `count_words`."""
        for at, block in enumerate(blocks):
            starts = window_starts(block, self.unit)
            lengths = np.diff(block.document_tokens())
            windows = np.repeat(starts, lengths)
            for window in np.unique(starts).tolist():
                yield at, np.flatnonzero(windows == window)


def _rows(
    planned: Plan, words: IntArray, base: Mapping[Table, FloatArray]
) -> dict[Table, tuple[IntArray, FloatArray]]:
    """Ids and rows of a tick; of a whole table (hogwild) those of the fresh words."""
    tables = (Table.IN, Table.OUT)
    if len(planned.words):
        ids = planned.rows()
        return {table: (ids[table], base[table]) for table in tables}
    return {table: (words, base[table][words]) for table in tables}


def _mapped(base: Mapping[Table, FloatArray]) -> Pull:
    """Rows out of whole tables: nothing has to be asked for."""

    def pull(vectors: IntArray, contexts: IntArray) -> Tables:
        return {Table.IN: base[Table.IN][vectors], Table.OUT: base[Table.OUT][contexts]}

    return pull


def _fresh(block: LocalBlock, words: IntArray, tokens: int) -> tuple[LocalBlock, IntArray]:
    """The first tokens of a block in rows of their own, and the ids int64 of these rows.

    words  int64, ids of the block's rows; none: rows are those of the whole table (hogwild)
    """
    rows = block.tokens[:tokens]
    if len(words):
        return replace(block, tokens=rows), words
    found, own = np.unique(rows, return_inverse=True)
    unknown = int(len(found) > 0 and found[0] < 0)  # -1 comes first, and stays
    ids = found[unknown:].astype(np.int64)
    keep = block.keep[ids] if len(block.keep) else block.keep
    return replace(block, tokens=(own - unknown).astype(np.int32), ids=ids, keep=keep), ids
