"""What a server asks of its rows, whether they lie in its own tables or on shards, and how a change
of them is carried out as a whole, though memory may be short in the middle of it."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from embedding.exchange.payload import RowDelta
from embedding.exchange.placement import IN_SERVER, RowLayout
from embedding.exchange.protocol import PullRequest, Push
from embedding.kernel.devices import DeviceArray
from embedding.kernel.errors import RefusedError, UnavailableError
from embedding.kernel.records import IntArray, ScorePairs, Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.parts import Content, Erasure, Moment, Part, Saved
from embedding.server.policies.base import Instruction
from embedding.server.policies.traits import POLICIES
from embedding.server.rows.composing import GramComposer
from embedding.server.rows.devices import pick_device
from embedding.server.rows.tables import Optimizer, RowsCopy, Tables, TablesCopy, bucket_rows
from embedding.server.words.vocabulary import Admission, Vocabulary

logger = logging.getLogger(__name__)

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
    layout         in which processes the rows lie
    nodes_hold_rows   whether nodes keep copies of rows and step on them by themselves
    full           why new words get no rows, a sentence; None while they do
    """

    tables: Tables
    composer: GramComposer
    local: bool
    layout: RowLayout = IN_SERVER
    nodes_hold_rows: bool
    full: str | None

    @property
    @abstractmethod
    def where(self) -> str:
        """Where the rows lie, in words."""

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


def shares(sync: SyncConfig) -> bool:
    """Whether nodes write to the tables themselves."""
    return POLICIES.traits(sync.policy).needs_shared_memory


class LocalRows(RowStore):
    """See RowStore."""

    local = nodes_hold_rows = True

    def __init__(self, setup: RowSetup) -> None:
        config, shape, shared = setup.config, setup.shape, shares(setup.sync)
        device = pick_device(config.device, shared=shared)
        self.tables = Tables(
            shape.dim,
            device=device,
            capacity=config.max_words if shared else config.initial_rows,
            seed=shape.seed,
            optimizer=Optimizer(config.optimizer, config.adagrad_rate),
            shared=partial(POLICIES.get(setup.sync.policy).shared_rows, device),
            buckets=shape.buckets,
        )
        self._vocabulary, self._lock = setup.vocabulary, setup.lock
        names = self._vocabulary.names
        self.composer = GramComposer(self.tables, names, buckets=shape.buckets, biases=shape.biases)
        self._max_words = config.max_words
        self.full: str | None = None

    def check_policy(self, sync: SyncConfig, before: SyncConfig) -> None:
        if shares(sync) is not shares(before):
            raise RefusedError(
                f"configure: from {before.policy} to {sync.policy}: tables lie in memory that "
                "nodes share from the start or never; start the server with that policy."
            )

    @property
    def where(self) -> str:
        return str(self.tables.device)

    def slots(self, table: Table, ids: IntArray, what: str) -> IntArray:
        """See RowStore; the slot of an n-gram is its bucket."""
        if table is Table.SUB:
            return bucket_rows(ids, self.tables.buckets, what)
        return self._vocabulary.slots(ids, what)

    def read(self, request: PullRequest) -> ReadRows:
        slots = {table: self.slots(table, ids, "pull") for table, ids in request.ids.items()}
        for pairs in request.score:
            self._vocabulary.score_slots(pairs)
        rows = {table: self.tables.gather(table, where) for table, where in slots.items()}
        return ReadRows(rows, partial(self._to_score, request.score))

    def _to_score(self, score: Sequence[ScorePairs]) -> Iterator[Scorable]:
        """Rows of one source at a time are held. They are as they are now: the node that asks
        waits for its answer, and learns nothing."""
        for pairs in score:
            with self._lock:
                slots = self._vocabulary.score_slots(pairs)
                centres, contexts, negatives = slots
                columns = self.composer.columns
                flat = columns(self.tables.gather(Table.OUT, negatives.reshape(-1)))
                vectors = (
                    self.composer.centres(pairs.centres, centres),
                    columns(self.tables.gather(Table.OUT, contexts)),
                    flat.reshape(*negatives.shape, flat.shape[-1]),
                )
            yield pairs, slots, vectors

    def add(self, delta: RowDelta, scale: float | None, writer: str | None) -> int:
        slots = self.slots(delta.table, delta.ids, "push")
        return self.tables.change(delta.table, slots, delta.values, scale, writer)

    def make_room(self, words: int) -> int:
        if self.tables.memory is not None:  # shared tables do not grow
            return min(words, self._max_words - len(self._vocabulary))
        rows = self._vocabulary.rows
        try:
            self.tables.ensure(min(rows + words, self._max_words))
        except (MemoryError, RuntimeError) as error:  # what torch raises is a RuntimeError
            if self.full is None:
                logger.exception("there is no memory for rows of more words")
            self.full = (
                f"no new words: there is no memory for more than the {self.tables.capacity} rows "
                f"that there are ({type(error).__name__}); learning goes on without them."
            )
            return self.tables.capacity - rows
        self.full = None
        return words

    def evict(self, ids: IntArray) -> None:
        slots = self._vocabulary.slots(ids, "evict")
        self.tables.replaced(slots[slots >= 0])
        self.composer.forget(ids)

    def admit(self, admission: Admission) -> None:
        self.tables.ensure(self._vocabulary.rows)
        self.tables.start(admission.slots, admission.ids)

    def live(self, table: Table, ids: IntArray) -> DeviceArray:
        with self._lock:
            slots = self._vocabulary.slots(ids, "evaluate")
            if table is Table.IN:
                return self.composer.centres(ids, slots)
            return self.composer.columns(self.tables.gather(Table.OUT, slots))

    def copy(self) -> TablesCopy:
        return self.tables.copy(self._vocabulary.rows, accumulators=False)

    def own_copy(self) -> TablesCopy:
        return self.tables.checkpoint_copy(self._vocabulary.rows)

    def save(self) -> Saved:
        """See Part; the rows themselves are `own_copy`."""
        return Saved(dict(self.layout))

    def load(self, content: Content) -> None:
        """See Part; the vocabulary is there already."""
        words = content.tables["words"]
        slots = self._vocabulary.slots(words["id"].to_numpy(), "checkpoint")
        self.tables.ensure(self._vocabulary.rows)
        self.tables.restore_from(content.arrays, slots, words["slot"].to_numpy())

    def forget(self, erasure: Erasure) -> None:
        self.tables.clear(self._vocabulary.slots(erasure.ids, "forget"))


Step = Callable[[], object]
"""Part of a change: all of it is done when it returns, nothing when it finds no memory."""
_Plan = Callable[[], Iterable[Step]]
"""The steps of a change, in order; nothing has changed when it returns or raises."""


class Changing:
    """One change after the other; what was begun goes on where it stopped. Not thread-safe.

    who    names the holder of the rows
    stuck  a sentence that says why a change cannot be carried out; None while all can
    """

    def __init__(self, who: str) -> None:
        self._who = who
        self._left: deque[Step] | None = None
        self.stuck: str | None = None

    @property
    def begun(self) -> bool:
        """Whether a part of a change is in the rows, and the rest is not."""
        return self._left is not None

    def carry_out(self, plan: _Plan) -> bool:
        """Carry a change out, or what is left of it; False when there was no memory for it.

        Then, and when anything else was raised, it is to be tried again before any other change, or
        given up.
        """
        try:
            steps = deque(plan()) if self._left is None else self._left
            while steps:
                steps[0]()
                steps.popleft()
                self._left = steps
        except (MemoryError, RuntimeError) as error:  # what torch raises is a RuntimeError
            if self.stuck is None:
                logger.exception("rows could not be changed")
            why = " ".join(str(error).split())[:200]
            self.stuck = (
                f"{self._who} could not change its rows, and tries again: "
                f"{type(error).__name__}{f' ({why})' if why else ''}."
            )
            return False
        self._left = self.stuck = None
        return True

    def give_up(self) -> None:
        self._left = self.stuck = None

    def refuse(self) -> None:
        """UnavailableError that says why nothing can be read or taken now."""
        raise UnavailableError(str(self.stuck))


class ChangeQueue:
    """Changes in the order in which they were asked for; none overtakes one that is stuck."""

    def __init__(self, who: str) -> None:
        self._changing = Changing(who)
        self._plans: deque[_Plan] = deque()

    @property
    def stuck(self) -> str | None:
        return self._changing.stuck

    @property
    def waiting(self) -> int:
        return len(self._plans)

    def carry_out(self, plan: _Plan) -> None:
        """Change rows, now or as soon as there is memory for all that was asked for before."""
        self._plans.append(plan)
        self.advance()

    def advance(self) -> None:
        """Carry out what there is memory for by now.

        Any other error is raised, once: what is left of its change would fail again.
        """
        while self._plans:
            try:
                if not self._changing.carry_out(self._plans[0]):
                    return
            except BaseException:
                self._changing.give_up()
                self._plans.popleft()
                raise
            self._plans.popleft()

    def check(self) -> None:
        """Try what is left; UnavailableError while it cannot be carried out."""
        self.advance()
        if self._plans:
            self._changing.refuse()


def deltas_of(
    pushes: Sequence[Push], scale: float, combine: Callable[[Sequence[Push]], list[Push]] | None
) -> Iterator[tuple[RowDelta, str | None]]:
    """The deltas of pushes that are applied together, and who has each of them already.

    That is the node itself where it keeps rows, and its deltas come into them as they are.

    combine  makes of the pushes those that are applied; None: as they are
    """
    alone = scale == 1.0 and combine is None
    for push in pushes if combine is None else combine(pushes):
        for delta in push.deltas:
            yield delta, push.node if alone and push.keeps else None
