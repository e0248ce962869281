"""Words that were read only a few times: what stood around them, added up.

A gradient step sees each mention once, at a learning rate that suits words with thousands of them;
a word with thirty mentions would hardly have left its random start. So a node adds up what the
contexts of its young words say (see `models/inference.py`) and sends the sums beside its deltas;
the server infers vectors from them for those who read (see `server/words/overlay.py`). What is
trained is not touched (docs/adr/0008-young-words.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from embedding.exchange.compression.halves import narrow
from embedding.exchange.payload import Surroundings, summed
from embedding.models.base import LocalBlock
from embedding.models.config import Model, ModelConfig
from embedding.models.contextsums import ContextSums
from embedding.models.inference import KNOWN, SAMPLE, Viewpoint
from embedding.records import CodeArray, FloatArray, IntArray, TimeArray, TokenBlock

SETTLED = 1_000_000
"""Tokens that must have been read before: until then the known words are not at rest themselves."""
HELD = 50_000
"""Words without a row whose sums a node holds; each takes a float32 row and some 250 bytes."""
_RENEW = 8
_MOST = 60_000.0
"""Within float16."""


@dataclass(frozen=True)
class RowCounts:
    """The words that may be in a tick, by local row.

    ids     int64 [U]
    counts  float64 [U], running counts; total: of all words
    """

    ids: IntArray
    counts: TimeArray
    total: float


@dataclass(frozen=True)
class Sightings:
    """Young words of one block and what stood around them.

    words     str [w], distinct; ids int64 [w], -1 for one without a row; mentions int64 [w]
    around    [w, c], weights of the neighbours; contexts int64 [c], their local rows
    known     int32, local rows of well-known words
    """

    words: Sequence[str]
    ids: IntArray
    mentions: IntArray
    around: csr_array
    contexts: IntArray
    known: CodeArray


class YoungWords:
    """Reads what stands around young words, and holds the sums of those without a row.

    window    words on each side; nearer ones weigh more, as word2vec's random windows make them
    negative  noise words for each pair
    mentions  a word is young until it was read so often
    """

    def __init__(self, *, window: int, negative: int, mentions: int, limit: int = HELD) -> None:
        self.window = window
        self.negative = negative
        self.mentions = mentions
        self.limit = limit
        self._held: ContextSums[str] | None = None
        self._view: Viewpoint | None = None
        self._age = 0

    @classmethod
    def of(cls, model: ModelConfig, mentions: int) -> YoungWords | None:
        """None when there is nothing to infer: another model than skip-gram, or 0 mentions."""
        if model.model is not Model.SGNS or not mentions:
            return None
        return cls(window=model.window, negative=model.negative, mentions=mentions)

    def __len__(self) -> int:
        return 0 if self._held is None else len(self._held)

    def sight(
        self, blocks: Sequence[TokenBlock], planned: LocalBlock, rowed: RowCounts
    ) -> list[Sightings]:
        """The young words of each block of a tick; the plan's text begins with these blocks."""
        if rowed.total < SETTLED:
            return []
        tokens, found = planned.tokens, []
        for block in blocks:
            rows = np.full(len(block.words), -1, dtype=np.int32)
            n = len(block.codes)
            rows[block.codes], tokens = tokens[:n], tokens[n:]
            found.append(self._sight(block, rows, rowed, planned.keep))
        return found

    def _sight(
        self, block: TokenBlock, rows: CodeArray, rowed: RowCounts, keep: FloatArray
    ) -> Sightings:
        """rows  int32 [W], local row of each word of the block, -1 for one without."""
        named = rows >= 0
        count, ids = np.zeros(len(rows)), np.full(len(rows), -1, dtype=np.int64)
        count[named], ids[named] = rowed.counts[rows[named]], rowed.ids[rows[named]]
        codes, sentences = block.codes, block.sentences
        at = np.flatnonzero((count < self.mentions)[codes])
        own, code = np.unique(codes[at], return_inverse=True)
        steps = np.concatenate([np.arange(-self.window, 0), np.arange(1, self.window + 1)])
        near = at[:, None] + steps
        sentence = np.repeat(np.arange(len(sentences) - 1), np.diff(sentences))
        inside = (near >= 0) & (near < len(codes))
        near = np.where(inside, near, 0)
        neighbour = rows[codes[near]] if len(at) else np.empty(near.shape, np.int32)
        inside &= (sentence[near] == sentence[at][:, None]) & (neighbour >= 0)
        distance = np.broadcast_to((self.window + 1 - np.abs(steps)) / self.window, near.shape)
        weights = distance[inside] * keep[neighbour[inside]]
        owner = np.broadcast_to(code[:, None], near.shape)[inside]
        contexts, column = np.unique(neighbour[inside], return_inverse=True)
        return Sightings(
            words=[block.words[i] for i in own.tolist()],
            ids=ids[own],
            mentions=np.bincount(code, minlength=len(own)).astype(np.int64),
            around=csr_array(
                (weights.astype(np.float32), (owner, column)), shape=(len(own), len(contexts))
            ),
            contexts=contexts.astype(np.int64),
            known=rows[named & (count >= KNOWN)],
        )

    def learn_all(
        self,
        sightings: Sequence[Sightings],
        vectors: FloatArray,
        contexts: FloatArray,
        pool: CodeArray,
    ) -> Surroundings | None:
        """What all blocks of a tick say (see `learn`)."""
        parts = [self.learn(seen, vectors, contexts, pool) for seen in sightings]
        return summed([part for part in parts if part is not None])

    def learn(
        self, seen: Sightings, vectors: FloatArray, contexts: FloatArray, pool: CodeArray
    ) -> Surroundings | None:
        """What a block says of words with a row, with what was held of them until now.

        vectors, contexts  float32, the tick's rows after training, only read; pool  rows of
        `contexts` drawn from the noise distribution
        """
        view = self._look(vectors, contexts, seen.known, pool)
        if view is None or not len(seen.words):
            return None
        rows = contexts[seen.contexts]
        weights = np.asarray(seen.around.sum(axis=1), dtype=np.float32)
        slopes = seen.around @ (view.surprise(rows)[:, None] * rows)
        pairs = self.negative * weights
        slopes -= pairs[:, None] * view.noise
        if self._held is None:
            self._held = ContextSums(slopes.shape[1], self.limit)
        held, bare = self._held, np.flatnonzero(seen.ids < 0)
        held.add(
            [seen.words[i] for i in bare.tolist()], slopes[bare], pairs[bare], seen.mentions[bare]
        )
        rowed = np.flatnonzero(seen.ids >= 0)
        names = [seen.words[i] for i in rowed.tolist()]
        at = held.places(names)
        had = at >= 0
        mentions = seen.mentions.copy()
        for total, before in (
            (slopes, held.slopes),
            (pairs, held.pairs),
            (mentions, held.mentions),
        ):
            total[rowed[had]] += before[at[had]]
        held.forget(names)
        halves = narrow(np.clip(slopes[rowed], -_MOST, _MOST))
        return Surroundings(seen.ids[rowed], halves, pairs[rowed], mentions[rowed])

    def _look(
        self, vectors: FloatArray, contexts: FloatArray, known: CodeArray, pool: CodeArray
    ) -> Viewpoint | None:
        """The tables change slowly: every few blocks is enough."""
        if self._view is None or self._age >= _RENEW:
            fresh = Viewpoint.of(vectors[known[:SAMPLE]], contexts[pool[:SAMPLE]])
            self._view, self._age = fresh or self._view, 0
        self._age += 1
        return self._view
