"""A node that keeps copies of its rows for several blocks, where the policy wants it.

    asp with n_push, n_fetch   rows are pulled again every n_fetch blocks, and every n_push blocks
                               what they moved by is pushed (Downpour, Dean 2012, algorithm 4.1)
    averaging                  both every tau blocks (SparkNet, Moritz 2016)
    easgd                      every tau blocks node and tables move towards each other (Zhang 2015)

Whatever the policy, a push brings all that was learnt since the last one, rows and counts: what
was not pushed when a node dies was not acknowledged either, and is read again.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import EVERY_BLOCK, Ack, Pace
from embedding.kernel.records import FloatArray, IntArray, ScorePairs, Table
from embedding.kernel.registry import NoTraits
from embedding.server.rows.rowmap import RowMap
from embedding.worker.learning.combining import Steps, share
from embedding.worker.learning.link import NodeClock
from embedding.worker.learning.ticks import Tick, keys_of
from embedding.worker.learning.training import TRAININGS, Rowed, Training


@dataclass(frozen=True)
class ChangedRows:
    """Rows that were trained since they were last pushed.

    ids    int64 [n]
    rows   float32 [n, dim], as they are here
    delta  float32 [n, dim], how far they moved
    steps  float64 [n, 2], as `combining.share` takes them, over all blocks since
    """

    ids: IntArray
    rows: FloatArray
    delta: FloatArray
    steps: Steps


class CopiedRows:
    """A node's own copies of some rows of one table.

    base     float32 [n, dim]: what the server is known to hold, this node's pushes included
    rows     float32 [n, dim]: the node's copies
    steps    float64 [n, 2]: how much they were trained since the last push
    Memory: 8·dim + about 40 bytes a row, for rows that were touched since the last `refresh`.
    """

    def __init__(self, dim: int) -> None:
        self._dim = dim
        self.clear()

    def __len__(self) -> int:
        return len(self._map)

    def clear(self) -> None:
        """Forget every copy."""
        row, flag = ("f4", (self._dim,)), "?"
        columns = {"base": row, "rows": row, "steps": ("f8", (2,)), "trained": flag, "fresh": flag}
        self._map = RowMap(columns)

    def missing(self, ids: IntArray) -> IntArray:
        """Those of `ids` (distinct) that have to be pulled."""
        slots = self._map.slots(ids)
        lacking: IntArray = ids[(slots < 0) | ~self._map["fresh"][slots]]
        return lacking

    def put(self, ids: IntArray, values: FloatArray) -> None:
        """Rows as the server holds them; what a copy moved by and was not pushed stays on top."""
        new = self._map.slots(ids) < 0
        slots = self._map.give(ids)
        base, rows = self._map["base"], self._map["rows"]
        rows[slots[new]] = values[new]
        old = slots[~new]
        rows[old] += values[~new] - base[old]
        base[slots] = values
        self._map["fresh"][slots] = True

    def take(self, ids: IntArray) -> FloatArray:
        """float32 [n, dim], to train on: the copies of ids that were put."""
        rows: FloatArray = self._map["rows"][self._map.slots(ids)]
        return rows

    def learn(self, ids: IntArray, after: FloatArray, steps: Steps) -> None:
        """Rows (distinct ids that were put) were trained: they are `after` now."""
        slots = self._map.slots(ids)
        self._map["rows"][slots] = after
        self._map["steps"][slots] += steps
        self._map["trained"][slots] = True

    def drain(self) -> ChangedRows:
        """What was trained since the last time; it counts as pushed from now on."""
        columns = self._map
        slots = np.flatnonzero(columns["trained"])
        rows, base, steps = columns["rows"][slots], columns["base"][slots], columns["steps"][slots]
        columns["base"][slots] = rows
        columns["steps"][slots], columns["trained"][slots] = 0.0, False
        return ChangedRows(columns.ids(slots), rows, rows - base, steps)

    def refresh(self) -> None:
        """Every row has to be pulled again before it is used."""
        if self._map["trained"].any():
            self._map["fresh"][:] = False
        else:
            self.clear()

    def keep(self, ids: IntArray, rows: FloatArray) -> None:
        """Keep copies of these alone, as `rows` (float32 [n, dim])."""
        self.clear()
        self.put(ids, rows)


Ids = dict[Table, IntArray]


@dataclass
class Period:
    """What a node has done since it began again at a pace.

    copies  of the rows, by table; pulled: blocks for which they have served
    ticks   learnt and not pushed, on rows as they were at `clock`
    """

    pace: Pace
    copies: dict[Table, CopiedRows] = field(default_factory=dict)
    pulled: int = 0
    ticks: list[Tick] = field(default_factory=list)
    clock: int | None = None

    def pushed(self) -> None:
        self.ticks, self.clock = [], None


@TRAININGS.register("paced", NoTraits())
@dataclass(kw_only=True)
class PacedTraining(Training):
    """Follows the pace of the policy, also when that changes while it runs.

    It trains on copies that are its own, and pushes what they moved by when that is due. At a
    pace of every block it does as `Training`.
    """

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._under_way = False
        self._plainly = True
        self._sent_as: npt.DTypeLike = np.float32
        self._period = Period(EVERY_BLOCK)

    @property
    def keeps_rows(self) -> bool:
        return not self._turn.pace.every_block or bool(self._period.ticks)

    def train(self, tick: Tick) -> None:
        with self._lock:
            self._under_way = True
            if not self._period.ticks and self._unlike(self._turn.pace, self._period.pace):
                self._follow(self._turn.pace)
            self._plainly = tick.rows is not None or not self.keeps_rows
            super().train(tick)

    def push(self, tick: Tick) -> None:
        """Keep what was learnt until a push is due."""
        with self._lock:
            self._under_way = False
            if self._plainly:
                super().push(tick)
                self._follow(self._turn.pace)
                return
            self.past.learnt(tick.sentences, tick.loss)
            ticks = self._period.ticks
            ticks.append(tick)
            if len(ticks) >= self._turn.pace.push_every:
                tick.ack = self._exchange()
                tick.keys = keys_of(ticks)

    def flush(self) -> tuple[str, ...]:
        """Push what is kept though it is not due: nothing more comes for now.

        Returns the keys of its documents. Any thread may call it; a block under way is left alone.
        """
        with self._lock:
            ticks = self._period.ticks
            if not ticks or self._under_way:
                return ()
            self._exchange()
            return keys_of(ticks)

    @property
    def pending(self) -> bool:
        return bool(self._period.ticks) or self._under_way

    def restart(self, clock: int, sequence: int) -> None:
        with self._lock:
            self._under_way = False
            super().restart(clock, sequence)
            self._follow(self._turn.pace)

    @property
    def _turn(self) -> NodeClock:
        return self.link.turn

    def _follow(self, pace: Pace) -> None:
        """Begin again at a pace, with nothing kept."""
        self._period = Period(pace)
        self._plainly = True

    def _exchange(self) -> Ack:
        """Push everything that is kept."""
        period = self._period
        clock = self._turn.clock if period.clock is None else period.clock
        ack = self.link.push(period.ticks, clock, self._drain(), copied=True)
        period.pushed()
        if self._unlike(self._turn.pace, period.pace):
            self._follow(self._turn.pace)
        return ack

    @staticmethod
    def _unlike(before: Pace, after: Pace) -> bool:
        """Whether copies kept at one pace are of no use at the other."""
        paces = [(pace.push_every, pace.pull_every, pace.elastic) for pace in (before, after)]
        return paces[0] != paces[1]

    def copies(self, tick: Tick) -> Rowed:
        """The node's copies; what is missing or too old of them is pulled."""
        if self._plainly:
            return super().copies(tick)
        period, pace = self._period, self._turn.pace
        ids = tick.planned.rows()
        if period.pulled >= pace.pull_every and not pace.elastic:
            for copies in period.copies.values():
                copies.refresh()
            period.pulled = 0
        period.pulled += 1
        missing = {table: self._of(table).missing(rows) for table, rows in ids.items()}
        # The first block of a period always asks: so it takes part, at the clock of now.
        if period.clock is None or tick.scores or any(map(len, missing.values())):
            clock = self._fetch(missing, tick.scores)
            period.clock = clock if period.clock is None else period.clock
        tick.clock = period.clock
        return {table: period.copies[table].take(rows) for table, rows in ids.items()}

    def _of(self, table: Table) -> CopiedRows:
        return self._period.copies.setdefault(table, CopiedRows(self.setup.model.width))

    def _fetch(self, ids: Ids, scores: Sequence[ScorePairs]) -> int:
        """Pull rows into the copies; their clock."""
        rows = self.link.pull(ids, scores, self._turn.clock)
        self._sent_as = rows.rows[Table.IN].dtype
        for table, values in rows.rows.items():
            self._of(table).put(ids[table], widen(values))
        return rows.clock

    def deltas(self, tick: Tick, base: Rowed, local: Rowed) -> tuple[RowDelta, ...]:
        """None: what moved stays in the copies until a push is due."""
        if self._plainly:
            return super().deltas(tick, base, local)
        steps = self.steps(tick)
        for table, ids in tick.planned.rows().items():
            trained = steps.get(table, np.zeros((len(ids), 2)))
            self._period.copies[table].learn(ids, local[table], trained)
        return ()

    def _drain(self) -> tuple[RowDelta, ...]:
        """What is pushed of all that moved."""
        moved = {table: copies.drain() for table, copies in self._period.copies.items()}
        shares = {table: share(each.steps, self._turn.pooled) for table, each in moved.items()}
        deltas = {table: each.delta * shares[table][:, None] for table, each in moved.items()}
        if self._period.pace.elastic:
            self._stretch(moved, shares, deltas)
        half = self._sent_as == np.float16
        return tuple(
            RowDelta(table, moved[table].ids, narrow(values) if half else values)
            for table, values in deltas.items()
        )

    def _stretch(
        self,
        moved: dict[Table, ChangedRows],
        shares: Rowed,
        deltas: Rowed,
    ) -> None:
        """Elastic averaging (Zhang 2015, algorithm 1) of rows that every node trains all the time.

        Of such a row (its share of ADR 6 is near 1/n) node and server each give way by
        α·(x_i - x~), α = β·share, and the node keeps its copy. A row that is trained now and then
        has no copy worth keeping: its delta is pushed as in Downpour, and it is pulled again when
        it is needed. At α = 1/2, where the two ways part, node and server would meet.
        """
        alphas = {table: self._period.pace.elastic * each for table, each in shares.items()}
        alone = self._turn.pooled <= 1
        tied = {t: np.zeros(len(a), bool) if alone else a <= 0.5 for t, a in alphas.items()}
        ids = {table: moved[table].ids[tied[table]] for table in tied}
        if any(map(len, ids.values())):
            for table, centre in self.link.pull(ids, (), self._turn.clock).rows.items():
                rows, which = moved[table].rows[tied[table]], tied[table]
                pull = alphas[table][which][:, None] * (rows - widen(centre))
                deltas[table][which] = pull
                self._period.copies[table].keep(ids[table], rows - pull)
        else:
            for copies in self._period.copies.values():
                copies.clear()
