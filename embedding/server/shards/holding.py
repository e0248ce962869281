"""Where a server's rows are: here, in its own tables. `leading.py` has it otherwise."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from embedding.kernel.records import IntArray, ScorePairs, Table
from embedding.server.config import ServerConfig
from embedding.server.flight.validation import check_score
from embedding.server.rows.composing import Composer
from embedding.server.rows.tables import Tables, TablesCopy
from embedding.server.words.vocabulary import Admission, Vocabulary

if TYPE_CHECKING:
    import torch

    from embedding.server.shards.leading import RemoteCopy

logger = logging.getLogger(__name__)


class HoldsRows:
    """What a server does with rows, apart from reading and changing them.

    leads   rows lie on shards, of which this server is the primary
    full    a sentence that says why new words get no rows; None while they do
    """

    leads: ClassVar[bool] = False
    lock: threading.RLock
    tables: Tables
    vocabulary: Vocabulary
    composer: Composer
    config: ServerConfig
    full: str | None = None

    @property
    def held_rows(self) -> int:
        """Rows of words in the own tables."""
        return self.vocabulary.rows

    def reading(self) -> AbstractContextManager[object]:
        """What is held while `live_rows` is called."""
        return self.lock

    def live_rows(self, table: Table, ids: IntArray) -> torch.Tensor:
        """Vectors or contexts [n, d] of words as they are now; zeros for evicted ones."""
        slots = self.vocabulary.slots(ids, "evaluate")
        if table is Table.IN:
            return self.composer.centres(ids, slots)
        return self.composer.columns(self.tables.gather(Table.OUT, slots))

    def slots_to_score(self, pairs: ScorePairs) -> tuple[IntArray, IntArray, IntArray]:
        """Slots of centres, contexts and negatives (under the lock); see `check_score`."""
        return check_score(pairs, self.vocabulary)

    def copy_rows(self) -> TablesCopy | RemoteCopy:
        """Begin a consistent copy of all rows (under the lock)."""
        return self.tables.copy(self.vocabulary.rows, accumulators=False)

    def checkpoint_shards(self, *, wait: bool) -> None:
        """Have every shard write a checkpoint: there is none."""

    def together(self, tickets: tuple[tuple[str, int], ...]) -> AbstractContextManager[None]:
        """What is held while these pushes, whose rows came added up, are taken (under the lock)."""
        del tickets
        return nullcontext()

    def settle(self) -> None:
        """Wait a moment until the shards have carried out what they were told."""

    def keep_rows_first(self) -> None:
        """A checkpoint is nearly complete: rows that lie elsewhere have to be on disk first."""

    def shards(self) -> list[dict[str, Any]]:
        """Each shard, as the status shows it."""
        return []

    def locations(self) -> tuple[str, ...]:
        """Where nodes find the shards."""
        return ()

    def log_facts(self) -> dict[str, Any]:
        """What a checkpoint keeps of the order in which shards change their rows."""
        return {"shards": 1}

    def log_at(self) -> tuple[int, int] | None:
        """From which position on shards have all that was taken so far; None: there are none."""
        return None

    def log_merge(self, group: str, sequence: int) -> None:
        """Have the shards add the rows of a server group's entry: there are none."""

    def restore_log(self, facts: Mapping[str, Any]) -> None:
        """Go on from what a checkpoint kept of it."""

    def make_room(self, words: int) -> int:
        """For how many of so many new words there are rows, or memory for them (under the lock)."""
        if self.tables.memory is not None:  # shared tables do not grow
            return min(words, self.config.max_words - len(self.vocabulary))
        try:
            self.tables.ensure(min(self.vocabulary.rows + words, self.config.max_words))
        except (MemoryError, RuntimeError) as error:  # what torch raises is a RuntimeError
            if self.full is None:
                logger.exception("there is no memory for rows of more words")
            self.full = (
                f"no new words: there is no memory for more than the {self.tables.capacity} rows "
                f"that there are ({type(error).__name__}); learning goes on without them."
            )
            return self.tables.capacity - self.vocabulary.rows
        self.full = None
        return words

    def _place(self, admission: Admission) -> None:
        """Make and start the rows of new words (under the lock)."""
        self.tables.ensure(self.vocabulary.rows)
        self.tables.start(admission.slots, admission.ids)
