"""Pairs of a document that the server scores before the document is learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embedding.kernel.records import Calendar, CodeArray, IntArray, ScorePairs, TokenBlock
from embedding.worker.learning.planning import CodedText

_MOST = 2048
"""Pairs of one tick: so many say what the mean loss is, and each takes rows from the server."""


@dataclass(frozen=True)
class PairSampler:
    """Draws word pairs evenly from each document, so that a long one does not drown the others.

    window    words on each side that count as context
    pairs     pairs drawn from each document at most
    negative  noise words for each pair
    most      pairs drawn in a tick, shared by blocks as they hold documents; where there are more
              documents than that, from some of them
    """

    window: int
    pairs: int
    negative: int
    most: int = _MOST

    def of_blocks(
        self,
        blocks: Sequence[TokenBlock],
        coded: Sequence[CodedText],
        noise: IntArray,
        calendar: Calendar,
        seed: int,
    ) -> list[ScorePairs]:
        """Pairs of each block, of one source each, where it holds any."""
        rng = np.random.default_rng(seed)
        documents = sum(block.n_documents for block in blocks)
        drawn = [
            self.sample(
                block.source,
                part.ids,
                part.sentences,
                block.documents,
                calendar.starts(block.published),
                noise,
                rng,
                max(1, self.most * block.n_documents // max(documents, 1)),
            )
            for block, part in zip(blocks, coded, strict=True)
        ]
        return [pairs for pairs in drawn if pairs is not None]

    def sample(
        self,
        source: str,
        ids: IntArray,
        sentences: CodeArray,
        documents: CodeArray,
        windows: IntArray,
        noise: IntArray,
        rng: np.random.Generator,
        most: int | None = None,
    ) -> ScorePairs | None:
        """Pairs of one source's documents; None when no document holds a pair.

        ids        int64 [n], row id of each token, -1 for unknown words
        sentences  int32 [m + 1] token offsets; documents int32 [d + 1] sentence offsets
        windows    int64 [d], start (Unix seconds) of the window that each document belongs to
        noise      int64 [p], row ids drawn from the noise distribution
        most       pairs, at most; None: those of a whole tick
        """
        most = self.most if most is None else most
        if not len(noise) or not len(ids):
            return None
        starts = sentences[documents[:-1]].astype(np.int64)
        lengths = sentences[documents[1:]].astype(np.int64) - starts
        read = np.flatnonzero(lengths > 1)
        if not len(read):
            return None
        each = max(1, min(self.pairs, most // len(read)))
        if len(read) > most:
            read = np.sort(rng.choice(read, most, replace=False))
        # Half of the draws fall on unknown words or sentence borders; draw twice and cut.
        owner = np.repeat(read, 2 * each)
        centre = starts[owner] + (rng.random(len(owner)) * lengths[owner]).astype(np.int64)
        reach = rng.integers(1, self.window + 1, len(owner))
        other = centre + np.where(rng.random(len(owner)) < 0.5, -reach, reach)
        inside = (other >= 0) & (other < len(ids))
        other = np.where(inside, other, centre)
        sentence = np.searchsorted(sentences, centre, side="right")
        inside &= np.searchsorted(sentences, other, side="right") == sentence
        inside &= (ids[centre] >= 0) & (ids[other] >= 0)
        chosen = _first(owner, np.flatnonzero(inside), each)
        if not len(chosen):
            return None
        negatives = noise[rng.integers(0, len(noise), (len(chosen), self.negative))]
        return ScorePairs(
            source=source,
            centres=ids[centre[chosen]],
            contexts=ids[other[chosen]],
            negatives=negatives,
            windows=windows[owner[chosen]],
        )


def _first(owner: IntArray, valid: IntArray, most: int) -> IntArray:
    """At most so many of the valid draws of each document (draws are sorted by document)."""
    owners = owner[valid]
    first = np.searchsorted(owners, owners, side="left")
    chosen: IntArray = valid[np.arange(len(valid)) - first < most]
    return chosen
