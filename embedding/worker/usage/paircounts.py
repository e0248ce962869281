"""How often words stand beside each other in a text of two parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from embedding.exchange.textcounts import TextCounts
from embedding.kernel.records import CodeArray, FloatArray, IntArray
from embedding.models.jit import kernel


@dataclass(frozen=True)
class PairCounts:
    """Pairs of words at most `window` words apart within a sentence, each counted both ways.

    starts    int64 [v + 1], where the contexts of each word begin
    contexts  int32 [m], the words beside it, increasing
    counts    float32 [m, 2], in the first part of the text and in the second
    """

    starts: IntArray
    contexts: CodeArray
    counts: FloatArray

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of_sum(cls, counts: TextCounts) -> PairCounts:
        """Those of several nodes added up, all in the first part."""
        apart = counts.first != counts.second
        words = np.concatenate([counts.first, counts.second[apart]])
        contexts = np.concatenate([counts.second, counts.first[apart]])
        order = np.lexsort((contexts, words))
        starts = np.searchsorted(words[order], np.arange(len(counts.ids) + 1))
        both = np.concatenate([counts.pairs, counts.pairs[apart]])[order]
        sums = np.stack([both, np.zeros_like(both)], axis=1)
        return cls(starts, contexts[order].astype(np.int32), sums)

    def counted(self, ids: IntArray, seen: npt.NDArray[np.floating]) -> TextCounts:
        """To be added to those of other nodes. ids int64 [v], row ids; seen [v]: mentions."""
        words = np.repeat(np.arange(len(self)), np.diff(self.starts))
        once = words <= self.contexts
        first, second = words[once].astype(np.int32), self.contexts[once]
        pairs = self.counts[once].sum(axis=1)
        return TextCounts(ids, seen.astype(np.float32), first, second, pairs)

    def totals(self) -> npt.NDArray[np.float64]:
        """float64 [v, 2], the pairs of each word."""
        totals = np.zeros((len(self), 2))
        _add_up(self.starts, self.counts, totals)
        return totals


def pair_counts(
    tokens: CodeArray, sentences: IntArray, border: int, window: int, words: int
) -> PairCounts:
    """Count the pairs of a text.

    tokens     int32 [n], numbers of words below `words`, -1 for none
    sentences  int64 [m + 1], token offsets
    border     token at which the second part begins
    """
    return PairCounts(*_count(tokens, sentences, border, window, words))


@kernel()
def _count(tokens: Any, sentences: Any, border: int, window: int, words: int) -> Any:
    ends, mentions, first, stop = _mentions(tokens, sentences, window, words)
    sums = np.zeros((words, 2), dtype=np.float32)
    beside = np.empty(words, dtype=np.int32)
    room = np.zeros(words + 1, dtype=np.int64)
    for word in range(words):
        around = 0
        for k in range(ends[word], ends[word + 1]):
            around += stop[k] - first[k]
        room[word + 1] = room[word] + min(around, words)
    filled = room[:-1].copy()
    contexts = np.empty(room[words], dtype=np.int32)
    counts = np.empty((room[words], 2), dtype=np.float32)
    for word in range(words):
        some = slice(ends[word], ends[word + 1])
        n = _beside(tokens, mentions[some], first[some], stop[some], border, sums, beside)
        for at in range(n):
            # Each pair is counted both ways: written to the other word, contexts come in order.
            other = beside[at]
            contexts[filled[other]] = word
            for part in range(2):
                counts[filled[other], part] = sums[other, part]
                sums[other, part] = 0.0
            filled[other] += 1
    starts = np.zeros(words + 1, dtype=np.int64)
    for word in range(words):
        starts[word + 1] = starts[word] + filled[word] - room[word]
        for at in range(filled[word] - room[word]):
            contexts[starts[word] + at] = contexts[room[word] + at]
            counts[starts[word] + at] = counts[room[word] + at]
    return starts, contexts[: starts[words]].copy(), counts[: starts[words]].copy()


@kernel()
def _mentions(tokens: Any, sentences: Any, window: int, words: int) -> Any:
    """Where the mentions of each word end, int64 [words + 1]; of each mention int32 its token, and
    the first and the last but one of the tokens around it."""
    ends = np.zeros(words + 2, dtype=np.int64)
    for token in tokens:
        if token >= 0:
            ends[token + 2] += 1
    for word in range(words):
        ends[word + 2] += ends[word + 1]
    mentions = np.empty(ends[words + 1], dtype=np.int32)
    first, stop = np.empty_like(mentions), np.empty_like(mentions)
    for s in range(len(sentences) - 1):
        for at in range(sentences[s], sentences[s + 1]):
            if tokens[at] >= 0:
                to = ends[tokens[at] + 1]
                mentions[to] = at
                first[to] = max(sentences[s], at - window)
                stop[to] = min(sentences[s + 1], at + window + 1)
                ends[tokens[at] + 1] += 1
    return ends[:-1], mentions, first, stop


@kernel()
def _beside(
    tokens: Any, mentions: Any, first: Any, stop: Any, border: int, sums: Any, beside: Any
) -> int:
    """Add what stands around some mentions to `sums` by part; how many words are in `beside`."""
    n = 0
    for k in range(len(mentions)):
        part = 1 if mentions[k] >= border else 0
        for near in range(first[k], stop[k]):
            word = tokens[near]
            if word >= 0 and near != mentions[k]:
                if sums[word, 0] + sums[word, 1] == 0.0:
                    beside[n] = word
                    n += 1
                sums[word, part] += 1.0
    return n


@kernel()
def _add_up(starts: Any, counts: Any, totals: Any) -> None:
    for word in range(len(totals)):
        for place in range(starts[word], starts[word + 1]):
            totals[word, 0] += counts[place, 0]
            totals[word, 1] += counts[place, 1]
