"""Words that were read only a few times, and their vectors inferred from all their contexts.

A gradient step sees each mention once, at a learning rate that suits words with thousands of them;
a word with thirty mentions would hardly have left its random start. So a node adds up the contexts
of its young words, those without a row yet among them, and infers their rows (see
`models/inference.py`) until there are enough mentions for gradient steps to go on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from embedding.models.config import Model, ModelConfig
from embedding.models.inference import Frame
from embedding.records import CodeArray, FloatArray, IntArray, TimeArray, TokenBlock
from embedding.worker.planning import Plan

KNOWN = 100
"""Running count from which a word's vector says what vectors of known words look like."""
LEAST = 3
"""Mentions from which a vector is inferred."""
SETTLED = 1_000_000
"""Tokens that must have been read before: until then the known words are not at rest themselves."""
_SAMPLE = 2048
_RENEW = 8


@dataclass(frozen=True)
class Sightings:
    """Young words of one block and what stood around them.

    words    str [w], distinct; mentions int64 [w]
    rows     int32 [w], row of each in the block's vectors, -1 for a word without one
    around   [w, rows of contexts], weights of the neighbours
    known    int32, rows of vectors of well-known words
    """

    words: Sequence[str]
    mentions: IntArray
    rows: CodeArray
    around: csr_array
    known: CodeArray


class _Sums:
    """Context sums of words, by a place of their own; places of forgotten words are reused.

    total float32 [p, dim], weight float32 [p], mentions int64 [p]
    """

    def __init__(self, dim: int) -> None:
        self.total = np.zeros((64, dim), dtype=np.float32)
        self.weight = np.zeros(64, dtype=np.float32)
        self.mentions = np.zeros(64, dtype=np.int64)
        self._places: dict[str, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._places)

    def places(self, words: Sequence[str]) -> IntArray:
        """Places int64 [n] of words, which become the latest; new ones start at 0."""
        found = np.fromiter((self._touch(word) for word in words), np.int64, count=len(words))
        size = int(found.max(initial=-1)) + 1
        for name in ("total", "weight", "mentions"):
            old = getattr(self, name)
            if size > len(old):
                grown = np.zeros((max(size, 2 * len(old)), *old.shape[1:]), dtype=old.dtype)
                grown[: len(old)] = old
                setattr(self, name, grown)
        return found

    def forget(self, words: Sequence[str], limit: int) -> None:
        """Forget these words, and the longest unread ones above `limit`."""
        gone = [self._places.pop(word) for word in words]
        while len(self._places) > limit:
            gone.append(self._places.pop(next(iter(self._places))))
        self._free += gone
        self.total[gone], self.weight[gone], self.mentions[gone] = 0.0, 0.0, 0

    def _touch(self, word: str) -> int:
        place = self._places.pop(word, None)
        if place is None:
            place = self._free.pop() if self._free else len(self._places)
        self._places[word] = place
        return place


class YoungWords:
    """Sums of the contexts of young words, of at most `limit` of them, the latest read.

    window    words on each side; nearer ones weigh more, as word2vec's random windows make them
    negative  noise words for each pair
    mentions  a word is young until it was read so often
    limit     words remembered; each takes a float32 row and some 250 bytes
    """

    def __init__(self, *, window: int, negative: int, mentions: int, limit: int = 50_000) -> None:
        self.window = window
        self.negative = negative
        self.mentions = mentions
        self.limit = limit
        self._sums: _Sums | None = None
        self._frame: Frame | None = None
        self._age = 0

    @classmethod
    def of(cls, model: ModelConfig, mentions: int) -> YoungWords | None:
        """None when there is nothing to infer: another model than skip-gram, or 0 mentions."""
        if model.model is not Model.SGNS or not mentions:
            return None
        return cls(window=model.window, negative=model.negative, mentions=mentions)

    def __len__(self) -> int:
        return 0 if self._sums is None else len(self._sums)

    def sight(
        self, blocks: Sequence[TokenBlock], planned: Plan, counts: TimeArray, total: float
    ) -> list[Sightings]:
        """The young words of each block of a tick; the plan's text begins with these blocks.

        counts  float64 [U], running counts of the plan's words; total: of all words
        """
        if total < SETTLED:
            return []
        tokens, found = planned.block.tokens, []
        for block in blocks:
            rows = np.full(len(block.words), -1, dtype=np.int32)
            n = len(block.codes)
            rows[block.codes], tokens = tokens[:n], tokens[n:]
            found.append(self._sight(block, rows, counts, planned))
        return found

    def _sight(
        self, block: TokenBlock, rows: CodeArray, counts: TimeArray, planned: Plan
    ) -> Sightings:
        """rows  int32 [W], local row of each word of the block, -1 for one without."""
        named = rows >= 0
        count = np.where(named, counts[rows], 0.0) if len(counts) else np.zeros(len(rows))
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
        weights = distance[inside] * planned.block.keep[neighbour[inside]]
        owner = np.broadcast_to(code[:, None], near.shape)[inside]
        return Sightings(
            words=[block.words[i] for i in own.tolist()],
            mentions=np.bincount(code, minlength=len(own)),
            rows=rows[own],
            around=csr_array(
                (weights.astype(np.float32), (owner, neighbour[inside])),
                shape=(len(own), len(planned.words) + len(planned.extras)),
            ),
            known=rows[named & (count >= KNOWN)],
        )

    def learn(
        self, seen: Sightings, vectors: FloatArray, contexts: FloatArray, pool: CodeArray
    ) -> None:
        """Add up what was seen and set the rows of young words in `vectors`.

        vectors, contexts  float32, the block's rows after training; pool  rows of `contexts` drawn
        from the noise distribution
        """
        frame = self._look(vectors[seen.known[:_SAMPLE]], contexts[pool[:_SAMPLE]])
        if frame is None or not len(seen.words):
            return
        if self._sums is None:
            self._sums = _Sums(vectors.shape[1])
        sums = self._sums
        at = sums.places(seen.words)
        sums.total[at] += seen.around @ (frame.surprise(contexts)[:, None] * contexts)
        sums.weight[at] += seen.around.sum(axis=1)
        sums.mentions[at] += seen.mentions
        due = (seen.rows >= 0) & (sums.mentions[at] >= LEAST) & (sums.weight[at] > 0)
        if due.any():
            chosen = at[due]
            vectors[seen.rows[due]] = frame.infer(sums.total[chosen], sums.weight[chosen])
        grown = np.flatnonzero(sums.mentions[at] >= self.mentions)
        sums.forget([seen.words[i] for i in grown.tolist()], self.limit)

    def _look(self, known: FloatArray, noise: FloatArray) -> Frame | None:
        """The tables change slowly: every few blocks is enough."""
        if self._frame is None or self._age >= _RENEW:
            self._frame = Frame.of(known, noise, self.negative) or self._frame
            self._age = 0
        self._age += 1
        return self._frame
