"""The noise words of a node's blocks, drawn in proportion to running counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embedding.kernel.records import IntArray
from embedding.models.config import ModelConfig
from embedding.models.jit import kernel
from embedding.models.sampling import NoiseTable
from embedding.worker.words.lexicon import NodeLexicon


class NoiseWords:
    """Draws row ids of noise words.

    table  the distribution over the lexicon's words; None while nothing was counted
    ids    int64 [n], the words' row ids
    """

    def __init__(self, model: ModelConfig) -> None:
        self.table: NoiseTable | None = None
        self._model = model
        self.ids: IntArray = np.empty(0, dtype=np.int64)

    def follow(self, lexicon: NodeLexicon) -> None:
        """Build the table again where the lexicon has new words, or has heard everybody's counts.

        A word that is no noise word is drawn to its neighbours and never away from other words: it
        has to be one as soon as it is learnt.
        """
        if self.table is None or self.ids is not lexicon.ids:
            self.table = lexicon.noise(self._model.noise_exponent)
            self.ids = lexicon.ids

    def some(self, n: int, seed: int, lexicon: NodeLexicon) -> IntArray:
        """n noise words, int64 ids; none while nothing was counted."""
        self.follow(lexicon)
        if self.table is None:
            return np.empty(0, dtype=np.int64)
        found: IntArray = self.ids[self.table.draw(n, seed)]
        return found

    def draw(
        self, tokens: int, seed: int, lexicon: NodeLexicon, read: Sequence[IntArray] = ()
    ) -> IntArray:
        """Noise words for a block of `tokens` tokens of the lexicon, int64 ids with repetition.

        read  ids of the words of the block (-1: no row), whose rows it has anyway: `noise_own`
              times as many words are drawn, and of those that are not among `read` only as many
              as `noise_share` says, each so many times. Each word is expected as often as without.
        """
        self.follow(lexicon)
        if self.table is None:
            return np.empty(0, dtype=np.int64)
        model = self._model
        times = model.noise_own if read else 1
        wanted = max(model.negative, round(tokens * model.noise_share))
        drawn = self.table.draw(wanted * times, seed)
        if times > 1:
            own = np.zeros(len(self.ids), dtype=np.bool_)
            for ids in read:
                own[lexicon.places(ids[ids >= 0])] = True
            _repeat(drawn, own, times, np.empty(len(drawn), dtype=np.int32))
        found: IntArray = self.ids[drawn]
        return found


@kernel()
def _repeat(drawn: Any, own: Any, times: int, away: Any) -> None:
    """Of the rows that are not `own` keep one of `times`, the first, each used so many times."""
    count = 0
    for at in range(len(drawn)):
        if not own[drawn[at]]:
            away[count] = at
            count += 1
    few = (count + times - 1) // times
    for at in range(few, count):
        drawn[away[at]] = drawn[away[at % few]]
