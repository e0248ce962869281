"""What a node tells of words beside their rows: what stood around young ones, and their use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from embedding.exchange.payload import WindowUse, WordContexts
from embedding.kernel.records import TokenBlock
from embedding.worker.learning.planning import BlockPlan
from embedding.worker.learning.ticks import Prepared
from embedding.worker.learning.wordtables import WordTables
from embedding.worker.usage.usage import Rows, UsageReader
from embedding.worker.words.rarewords import RareContexts, RareWords, RowCounts


class Observer:
    """Of one learner; each part is None where the server does not ask for it.

    usage  remembers text, and reads it again when a window closes
    """

    def __init__(self, rare: RareWords | None, usage: UsageReader | None) -> None:
        self.usage = usage
        self._rare = rare

    def sight(
        self, blocks: Sequence[TokenBlock], planned: BlockPlan, rows: Callable[[], RowCounts]
    ) -> Sequence[RareContexts]:
        """What the blocks say of words that were read only a few times.

        rows  the words of the tick by local row; asked for where it is needed alone
        """
        return () if self._rare is None else self._rare.sight(blocks, planned.block, rows())

    def rare_contexts(self, prepared: Prepared) -> WordContexts | None:
        """What stood around young words."""
        return None if self._rare is None else self._rare.learn_all(prepared.sightings)

    def remember(self, prepared: Prepared) -> None:
        """Fresh text, until the windows that it is compared with are over."""
        if self.usage is not None and prepared.blocks:
            self.usage.keep(prepared.blocks, prepared.tables)

    def close(self, prepared: Prepared, words: WordTables, rows: Rows) -> tuple[WindowUse, ...]:
        """How words were used in a window that is over, and before it."""
        usage, close = self.usage, prepared.close
        if usage is None or close is None:
            return ()
        if usage.peers is not None:
            words.refresh()
            usage.wait(close.window, words.lexicon)
            words.refresh()  # what all nodes counted has words that this one has not heard of
        return (usage.close(close.window, words.lexicon, rows, close.inherited),)
