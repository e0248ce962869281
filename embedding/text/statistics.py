"""Running vocabulary statistics of what went through the text room."""

from __future__ import annotations

import numpy as np

from embedding.kernel.records import TokenBlock
from embedding.text.generations import Generations


class VocabularyStatistics:
    """Counts documents, tokens, distinct and new words over blocks, in bounded memory.

    `capacity` words are remembered; one that was not seen for about that many distinct words counts
    as new again, so `distinct` is exact below `capacity` / 2 and an upper estimate above.
    """

    def __init__(self, capacity: int) -> None:
        self._seen: Generations[str, bool] = Generations(capacity)
        self.documents = 0
        self.sentences = 0
        self.tokens = 0
        self.distinct = 0
        self.unseen = 0
        self.empty = 0
        self._recent = 0.0

    def update(self, block: TokenBlock) -> None:
        """Count a block."""
        counts = np.bincount(block.codes, minlength=len(block.words))
        new = [at for at, word in enumerate(block.words) if self._first(word)]
        unseen = int(counts[new].sum())
        self.distinct += len(new)
        self.unseen += unseen
        self.documents += block.n_documents
        self.sentences += len(block.sentences) - 1
        self.tokens += block.n_tokens
        self.empty += int((np.diff(block.documents) == 0).sum())
        if block.n_tokens:
            share = unseen / block.n_tokens
            self._recent = share if not self._recent else 0.9 * self._recent + 0.1 * share

    def _first(self, word: str) -> bool:
        if self._seen.get(word):
            return False
        self._seen.put(word, True)
        return True

    def to_dict(self) -> dict[str, float]:
        """JSON-safe: documents (and those without a word), sentences, tokens, distinct words,
        `oov_share` (tokens of words not met before in their block's past, over all tokens) and
        `oov_recent` (the same, moving average over about ten blocks)."""
        return {
            "documents": self.documents,
            "empty_documents": self.empty,
            "sentences": self.sentences,
            "tokens": self.tokens,
            "distinct_words": self.distinct,
            "oov_share": self.unseen / self.tokens if self.tokens else 0.0,
            "oov_recent": self._recent,
        }
