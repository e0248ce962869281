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

from embedding.models.inference import Frame
from embedding.records import CodeArray, FloatArray, IntArray

KNOWN = 100
"""Running count from which a word's vector says what vectors of known words look like."""
LEAST = 3
"""Mentions from which a vector is inferred."""
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


@dataclass
class _Held:
    mentions: int
    weight: float
    total: FloatArray


class YoungWords:
    """Sums of the contexts of young words, of at most `limit` of them, the latest read.

    window    words on each side; nearer ones weigh more, as word2vec's random windows make them
    negative  noise words for each pair
    mentions  a word is young until it was read so often
    limit     words remembered; each takes a row of the table and some 300 bytes
    """

    def __init__(self, *, window: int, negative: int, mentions: int, limit: int = 50_000) -> None:
        self.window = window
        self.negative = negative
        self.mentions = mentions
        self.limit = limit
        self._held: dict[str, _Held] = {}
        self._frame: Frame | None = None
        self._age = 0

    def __len__(self) -> int:
        return len(self._held)

    def sight(
        self,
        words: Sequence[str],
        codes: CodeArray,
        sentences: CodeArray,
        rows: CodeArray,
        counts: FloatArray,
        keep: FloatArray,
        contexts: int,
    ) -> Sightings:
        """The young words of a text.

        words      str [W]; codes int32 [n], index into it of each token; sentences int32 [m + 1]
        rows       int32 [W], local row of each word, -1 without one
        counts     float [W], running counts; keep float [W], probability to keep (subsampling)
        contexts   rows of the block's `contexts`
        """
        young = counts < self.mentions
        at = np.flatnonzero(young[codes])
        own, code = np.unique(codes[at], return_inverse=True)
        steps = np.concatenate([np.arange(-self.window, 0), np.arange(1, self.window + 1)])
        near = at[:, None] + steps
        sentence = np.repeat(np.arange(len(sentences) - 1), np.diff(sentences))
        inside = (near >= 0) & (near < len(codes))
        near = np.where(inside, near, 0)
        inside &= sentence[near] == sentence[at][:, None]
        neighbour = codes[near]
        inside &= rows[neighbour] >= 0
        weights = (self.window + 1 - np.abs(steps)) / self.window * keep[neighbour]
        owner = np.broadcast_to(code[:, None], near.shape)
        around = csr_array(
            (weights[inside].astype(np.float32), (owner[inside], rows[neighbour][inside])),
            shape=(len(own), contexts),
        )
        return Sightings(
            words=[words[i] for i in own.tolist()],
            mentions=np.bincount(code, minlength=len(own)),
            rows=rows[own],
            around=around,
            known=rows[(counts >= KNOWN) & (rows >= 0)],
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
        around = seen.around @ (frame.surprise(contexts)[:, None] * contexts)
        weight = seen.around.sum(axis=1)
        due = []
        for i, word in enumerate(seen.words):
            held = self._held.pop(word, None) or _Held(0, 0.0, np.zeros_like(frame.centre))
            self._held[word] = held
            held.mentions += int(seen.mentions[i])
            held.weight += float(weight[i])
            held.total += around[i]
            if seen.rows[i] >= 0 and held.mentions >= LEAST and held.weight > 0:
                due.append((int(seen.rows[i]), held))
        if due:
            sums = np.stack([held.total for _, held in due])
            weights = np.array([held.weight for _, held in due], dtype=np.float32)
            vectors[[row for row, _ in due]] = frame.infer(sums, weights)
        self._forget(seen.words)

    def _look(self, known: FloatArray, noise: FloatArray) -> Frame | None:
        """The tables change slowly: every few blocks is enough."""
        if self._frame is None or self._age >= _RENEW:
            self._frame = Frame.of(known, noise, self.negative) or self._frame
            self._age = 0
        self._age += 1
        return self._frame

    def _forget(self, words: Sequence[str]) -> None:
        for word in words:
            if self._held[word].mentions >= self.mentions:
                del self._held[word]
        while len(self._held) > self.limit:
            del self._held[next(iter(self._held))]
