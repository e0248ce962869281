"""Where a server's rows are: here, in its own tables. `leading.py` has it otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from embedding.server.rows.tables import Tables, TablesCopy
from embedding.server.words.vocabulary import Admission, Vocabulary

if TYPE_CHECKING:
    from embedding.server.shards.leading import RemoteCopy


class HoldsRows:
    """What a server does with rows, apart from reading and changing them.

    leads   rows lie on shards, of which this server is the primary
    """

    leads: ClassVar[bool] = False
    tables: Tables
    vocabulary: Vocabulary

    @property
    def held_rows(self) -> int:
        """Rows of words in the own tables."""
        return self.vocabulary.rows

    def copy_rows(self) -> TablesCopy | RemoteCopy:
        """Begin a consistent copy of all rows (under the lock)."""
        return self.tables.copy(self.vocabulary.rows, accumulators=False)

    def checkpoint_shards(self, *, wait: bool) -> None:
        """Have every shard write a checkpoint: there is none."""

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

    def restore_log(self, facts: Mapping[str, Any]) -> None:
        """Go on from what a checkpoint kept of it."""

    def _place(self, admission: Admission) -> None:
        """Make and start the rows of new words (under the lock)."""
        self.tables.ensure(self.vocabulary.rows)
        self.tables.start(admission.slots, admission.ids)
