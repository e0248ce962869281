"""What a server asks of its rows, whether they lie in its own tables or on shards."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import PullRequest
from embedding.kernel.devices import DeviceArray
from embedding.kernel.records import IntArray, ScorePairs, Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.parts import Moment, Part
from embedding.server.policies.board import Instruction
from embedding.server.rows.composing import GramComposer
from embedding.server.rows.tables import RowsCopy, Tables, TablesCopy
from embedding.server.words.vocabulary import Admission, Vocabulary

LogPosition = tuple[int, int]
"""An incarnation of the server and a position in its log of row changes."""
PairSlots = tuple[IntArray, IntArray, IntArray]
"""Slots int64 of centres [n], contexts [n] and negatives [n, k]; -1 for evicted words."""
Vectors = tuple[DeviceArray, DeviceArray, DeviceArray]
"""Their vectors [n, d], [n, d] and [n, k, d], on the device of the tables."""
Scorable = tuple[ScorePairs, PairSlots, Vectors]


@dataclass(frozen=True)
class RowShape:
    """How large rows are, and from what they begin.

    dim      columns of a row; the last `biases` of them are no part of a vector (GloVe: 1)
    seed     of first rows
    buckets  rows of n-grams (fastText), 0 for every other model
    """

    dim: int
    seed: int = 0
    buckets: int = 0
    biases: int = 0


@dataclass(frozen=True)
class RowSetup:
    """What a row store is made from.

    epoch  number of this incarnation of the server
    lock   the server's
    """

    config: ServerConfig
    sync: SyncConfig
    vocabulary: Vocabulary
    lock: threading.RLock
    shape: RowShape
    epoch: int


@dataclass(frozen=True)
class ReadRows:
    """What a node gets that pulls.

    rows      by table, [n, dim] on the device of the tables; none where the node has to ask shards
    to_score  called without the lock: the pairs to score, or the names of shards that are late
    at        from where in the log on the node may read the shards; None: there are none
    """

    rows: Mapping[Table, DeviceArray]
    to_score: Callable[[], Iterator[Scorable] | list[str]]
    at: LogPosition | None = None


class RowStore(Part, ABC):
    """Rows of one server. The server's lock guards all calls but those that say otherwise.

    What only shards need does nothing here.

    tables         rows in this process, none where shards hold them; its device and kinds hold
                   for both
    composer       makes vectors of rows
    local          whether the rows are in `tables`
    nodes_hold_rows   whether nodes keep copies of rows and step on them by themselves
    full           why new words get no rows, a sentence; None while they do
    """

    tables: Tables
    composer: GramComposer
    local: bool
    nodes_hold_rows: bool
    full: str | None

    @abstractmethod
    def check(self, sync: SyncConfig, before: SyncConfig) -> None:
        """RefusedError or ConfigError for a policy that these rows do not go with."""

    @abstractmethod
    def slots(self, table: Table, ids: IntArray, what: str) -> IntArray:
        """Slots int64 [n] of rows that a message names, -1 for evicted words.

        RefusedError for an id that was never given, and where the rows lie on shards.
        """

    @abstractmethod
    def read(self, request: PullRequest) -> ReadRows:
        """The rows that are asked for; RefusedError as for `slots`."""

    def released(self, instructions: Sequence[Instruction]) -> None:
        """The policy let pushes through; said before the first of them is carried out."""

    @abstractmethod
    def add(self, delta: RowDelta, scale: float | None, writer: str | None) -> int:
        """Add to rows, all of them or none; how many there were: evicted words' are left out.

        scale   None: past the optimiser
        writer  who has these changes already
        """

    @abstractmethod
    def make_room(self, words: int) -> int:
        """For how many of so many new words there is memory."""

    @abstractmethod
    def evict(self, ids: IntArray) -> None:
        """These words are about to lose their rows."""

    @abstractmethod
    def admit(self, admission: Admission) -> None:
        """Give new words their first rows."""

    @abstractmethod
    def live(self, table: Table, ids: IntArray) -> DeviceArray:
        """Vectors or contexts [n, d] of words now, zeros for evicted ones."""

    @abstractmethod
    def copy(self) -> RowsCopy:
        """Begin a consistent copy of all rows."""

    @abstractmethod
    def own_copy(self) -> TablesCopy:
        """Begin a copy of `tables` with accumulators, for this server's checkpoint."""

    def keep_first(self) -> None:
        """Have on disk what a checkpoint of this server builds on (without the lock).

        UnavailableError when that cannot be.
        """
        return

    def locations(self) -> tuple[str, ...]:
        """Where nodes find the shards."""
        return ()

    def describe(self, at: Moment) -> dict[str, Any]:
        """See Part: `shards` has each shard."""
        return {"shards": []}
