"""One shard without its network: rows by id, and the primary's entries carried out in order.

A shard knows no word and no policy. What nodes push waits here until the primary's log says that it
is to be applied (`log.py`); who reads names the position that must be reached first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.exchange.shards.minibatches import Minibatches
from embedding.kernel.errors import RefusedError, ReplacedError
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.figures.meters import Meters
from embedding.server.ledger.sequence import Ledger, NodeLedger
from embedding.server.rows.averaging import averaged
from embedding.server.rows.changing import Changing, Step
from embedding.server.rows.composing import GramBags
from embedding.server.rows.transfer import to_host
from embedding.server.rowstore.interface import LogPosition
from embedding.server.shards.copies import HeldCopy
from embedding.server.shards.heldrows import HeldRows
from embedding.server.shards.log import Admit, Change, CopyRows, LogEntry, PushNumber
from embedding.server.shards.moved import MovedRows
from embedding.server.shards.spec import ShardSpec
from embedding.server.shards.sums import HeldSums, Key
from embedding.server.validation import checked

logger = logging.getLogger(__name__)

SHARD_WAIT_S = 1.0
"""How long a read is held before it is answered `waiting`."""

UNBOUND = 2**62 - 1


class ShardState:
    """Rows, slots, pushes that wait and the log's position, consistent under `lock`.

    held      rows and where they lie
    moved     how far they have moved, where the shard is part of a replica; None elsewhere
    changing  carries the entries of the log out, each as a whole
    position  of the last entry of the log that is in the rows
    """

    def __init__(
        self,
        spec: ShardSpec,
        *,
        epoch: int,
        moved: Callable[[HeldRows], MovedRows] | None = None,
    ) -> None:
        config = spec.server
        self.spec = spec
        self.config = config
        self.epoch = epoch
        self.identity = spec.identity
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.closing = False
        self.started = time.monotonic()
        self.held = HeldRows(spec, in_order=moved is None)
        self.tables, self.map = self.held.tables, self.held.map
        self.moved = None if moved is None else moved(self.held)
        self.ledger = Ledger(keeps_checkpoints=config.state_dir is not None)
        self.meters, self.led, self.between = Meters(), Meters(), Meters()
        self.log_number = 0
        self.position = 0
        self.durable_position = 0
        self.lost_pushes = self.repeated_pushes = 0
        self._again: set[tuple[str, int]] = set()
        self.waits_for: tuple[str, int] | None = None
        self.sums = HeldSums()
        self.changing = Changing(f"shard {spec.index}")
        self._queue: deque[LogEntry] = deque()
        self._waiting: dict[tuple[str, int], Push | None] = {}
        self._copies: dict[int, HeldCopy] = {}
        self._stood = 0

    # -- the primary ------------------------------------------------------------------------

    def lead(self, number: int, identity: str) -> dict[str, Any]:
        """The primary greets: where this shard stands. Another incarnation of it starts the log
        again.
        """
        with self.changed:
            if identity != self.identity:
                raise RefusedError(
                    f"shard {self.spec.index}: its state is of another training (its primary's "
                    "state folder was emptied or exchanged); give both their folders back or "
                    "empty both."
                )
            if number != self.log_number:
                # Positions of another incarnation mean nothing here. What was begun is finished
                # first:
                # the new log may order the same pushes in other entries, and half of one is in
                # the rows. The ledger stays: by it what is in the rows is not applied again.
                self._finish_change()
                self.log_number, self.position, self.durable_position = number, 0, 0
                self._queue.clear()
                self._copies.clear()
            return {
                "position": self.position + len(self._queue),
                "applied": {name: entry.applied for name, entry in self.ledger.nodes.items()},
                "next_id": self.held.next_id,
                "epoch": self.epoch,
            }

    def take(self, number: int, first: int, entries: Sequence[LogEntry]) -> dict[str, Any]:
        """Entries of the log, the first at position `first`; how far this shard is."""
        with self.changed:
            expected = self.position + len(self._queue) + 1
            if number != self.log_number or first > expected:
                raise RefusedError(
                    f"shard {self.spec.index}: entries from {first} of log {number}; it expects "
                    f"{expected} of log {self.log_number}."
                )
            # Entries that came before an answer was lost come again and are passed over.
            self._queue.extend(entries[expected - first :])
            self._advance()
            return self.progress()

    def rows(self, table: Table, ids: IntArray, at: LogPosition) -> FloatArray | None:
        """float32 [n, dim] at `at` or later, zeros for evicted ids; None: not there yet."""
        with self.changed:
            if not self.reach(at):
                return None
            return self.tables.read(table, self.held.slots(ids, "rows", table))

    def gram_sums(self, ids: IntArray, offsets: IntArray, at: LogPosition) -> FloatArray | None:
        """float32 [n, dim], rows of n-grams added up; otherwise as `rows`."""
        places = self.held.grams.places(ids, "sums")
        with self.changed:
            if not self.reach(at):
                return None
            bags = GramBags(places.astype(np.int32), offsets.astype(np.int32))
            return to_host(bags.sums(self.tables.source(Table.SUB, accumulators=False)))

    def copied(self, number: int, table: Table, ids: IntArray) -> FloatArray:
        """float32 [n, dim] as a copy has them."""
        with self.lock:
            copy = self._copies.get(number)
        if copy is None:
            raise RefusedError(
                f"shard {self.spec.index}: copy {number} is gone, the shard was started again."
            )
        return copy.pick(table, ids)

    def stand(
        self, incarnation: int, at: LogPosition, applied: Mapping[str, int], next_id: int
    ) -> None:
        """The rows here are those of position `at`, with each node's pushes up to `applied`.

        incarnation  of this shard, in which it was given them: one that was started again meanwhile
                     has
              only some of them, and would go on from a position that it never had
        Said again, as when the answer was lost, the later place counts, until the log goes on.
        """
        with self.changed:
            known = incarnation == self.epoch and at[0] == self.log_number
            if not known or self.position not in (0, self._stood):
                raise RefusedError(
                    f"stand: shard {self.spec.index} is not the one whose rows were given."
                )
            self.position = self._stood = at[1]
            self.held.next_id = max(self.held.next_id, next_id)
            for node, sequence in applied.items():
                entry = self.ledger.of(node)
                entry.applied = sequence
                entry.accepted = max(entry.accepted, sequence)
            self._waiting = {key: push for key, push in self._waiting.items() if self._fresh(key)}
            self.changed.notify_all()

    def forget_copy(self, number: int) -> None:
        """A copy is needed no longer."""
        with self.lock:
            self._copies.pop(number, None)

    def has_copy(self, at: LogPosition) -> bool:
        """Whether the copy at this position was begun; waits a moment for it."""
        with self.changed:
            return self.reach(at)

    # -- nodes ------------------------------------------------------------------------------

    def hello(self, node: str, first: int, last: int | None = None) -> NodeLedger:
        """A node connects; `first` is the first push that it still has or will make.

        Pushes before it that this shard lacks are lost: their node died with them. Those that were
        applied beyond `last`, the last that it knows of, it will number again: primary and node
        died together, and their text is read again. They are not applied again, but counted.
        """
        if not node:
            raise RefusedError("node '': a node needs a name.")
        with self.changed:
            entry = self.ledger.of(node)
            entry.session += 1
            # The log may name them: without a place-holder it would wait for them for ever.
            for sequence in range(entry.accepted + 1, first):
                self._waiting[node, sequence] = None
            entry.accepted = max(entry.accepted, first - 1)
            # A node that connects again, as after a broken stream, is counted once.
            if last is not None and entry.applied > last and (node, last) not in self._again:
                self._again.add((node, last))
                self.repeated_pushes += entry.applied - last
            self._advance()
            return entry

    def check_session(self, node: str, session: int) -> None:
        """ReplacedError when the node has connected again since: two processes use one name."""
        if self.ledger.of(node).session != session:
            raise ReplacedError(f"node {node}: another process has connected under this name.")

    def push(self, push: Push) -> NodeLedger:
        """Take rows; they wait until the log says that they are to be applied.

        Sent again before that, the later content counts: the primary may have refused the earlier.
        """
        columns = self.config.split == "columns"
        most, size = self.config.max_message_bytes, push.nbytes
        push = checked(push, self.tables.dim, most, columns=columns)
        with self.changed:
            entry = self.ledger.of(push.node)
            if push.sequence <= entry.applied:
                self.meters.duplicates += 1
                return entry
            if push.sequence > entry.accepted + 1:
                raise RefusedError(
                    f"push {push.sequence} of node {push.node}: gap, shard {self.spec.index} "
                    f"expects {entry.accepted + 1}."
                )
            self.held.check_own(push)
            self._waiting[push.node, push.sequence] = push
            self.meters.delta_bytes += size
            self.ledger.accept(push.node, max(entry.accepted, push.sequence))
            self._advance()
            return entry

    def push_together(self, key: Key, push: Push) -> None:
        """Take the rows of several nodes' pushes, added up, as `push` takes those of one."""
        push = checked(push, self.tables.dim, self.config.max_message_bytes)
        with self.changed:
            for node, sequence in key:
                accepted = self.ledger.of(node).accepted
                if not self._fresh((node, sequence)) or sequence > accepted + 1:
                    raise RefusedError(
                        f"push {sequence} of node {node} among others: shard {self.spec.index} "
                        f"expects {accepted + 1}."
                    )
            self.held.check_own(push)
            self.sums.put(key, push)
            for node, sequence in key:
                self.ledger.accept(node, max(self.ledger.of(node).accepted, sequence))
            self._advance()

    def accepted(self, node: str) -> int:
        """The last push of a node that is here; the log may want one that came in a sum alone."""
        last = self.ledger.of(node).accepted
        lacking = self.waits_for
        return min(last, lacking[1] - 1) if lacking is not None and lacking[0] == node else last

    def durable(self, node: str) -> int:
        """The last push of a node that is in a checkpoint of this shard.

        Of a replica the leader's checkpoint says that: this shard sets no bound.
        """
        return UNBOUND if self.moved is not None else self.ledger.of(node).durable

    def open(self, batch: Minibatches, at: LogPosition) -> tuple[FloatArray, FloatArray] | None:
        """Copies of the columns here of a block's rows at `at` or later; None: not there yet."""
        with self.changed:
            if not self.reach(at):
                return None
            self.held.slots(batch.ids, "open")
            return self._taken(batch)

    def progress(self) -> dict[str, Any]:
        """Figures for the primary's status, JSON-safe (under the lock)."""
        meters = self.meters
        return {
            "position": self.position,
            "durable": self.durable_position,
            "rows": self.held.rows,
            "bytes": self.held.nbytes,
            "pushes": meters.pushes,
            "duplicates": meters.duplicates,
            "lost_pushes": self.lost_pushes,
            "repeated_pushes": self.repeated_pushes,
            "rows_in": meters.rows_in,
            "rows_out": meters.rows_out,
            "rows_spared": meters.rows_spared,
            "bytes_deltas": meters.delta_bytes,
            "bytes_in": meters.bytes_in,
            "bytes_out": meters.bytes_out,
            "bytes_led": self.led.bytes_in + self.led.bytes_out,
            "moved_rows": 0 if self.moved is None else len(self.moved),
            "waits_for": None if self.waits_for is None else list(self.waits_for),
            "stuck": self.changing.stuck,
            "pause_ms": meters.checkpoint_pause_s * 1000,
            "uptime_s": time.monotonic() - self.started,
        }

    def close(self) -> None:
        """Let reads that wait go."""
        with self.changed:
            self.closing = True
            self.changed.notify_all()

    # -- carrying out -----------------------------------------------------------------------

    def check_whole(self) -> None:
        """UnavailableError while half of a push is in the rows (under the lock)."""
        if self.changing.begun:
            self.changing.refuse()

    def _finish_change(self) -> None:
        """What was begun belongs to the log that began it; UnavailableError when it cannot be."""
        if self.changing.begun:
            self._advance()
            self.check_whole()

    def _advance(self) -> None:
        """Carry out entries until one needs a push that is not here yet (under the lock)."""
        before = self.position
        self.waits_for = None
        while self._queue:
            entry = self._queue[0]
            if isinstance(entry, Change):
                self.waits_for = self._missing(entry)
                if self.waits_for is not None:
                    break
            if not self.changing.carry_out(partial(self._planned, entry)):
                break
            self._queue.popleft()
            self.position += 1
            if not self.ledger.keeps_checkpoints:
                self.durable_position = self.position
        if self.position > before:
            self.changed.notify_all()

    def _planned(self, entry: LogEntry) -> Iterable[Step]:
        """What carries an entry out, in order; nothing has changed yet."""
        if isinstance(entry, Admit):
            return [partial(self.held.admit, entry)]
        if isinstance(entry, Change):
            return self._change(entry)
        if isinstance(entry, CopyRows):
            return [partial(self._copy, entry)]
        return [] if self.moved is None else [partial(self.moved.set_aside, self.position + 1)]

    def _copy(self, entry: CopyRows) -> None:
        self._copies[entry.number] = HeldCopy(
            self.map, self.tables, self.held.next_slot, self.lock, self.held.grams
        )

    def _missing(self, entry: Change) -> tuple[str, int] | None:
        summed = self.sums.of(entry, self._fresh)
        for ticket in entry.tickets:
            if self._fresh(ticket) and ticket not in summed and ticket not in self._waiting:
                return ticket
        return None

    def _fresh(self, ticket: PushNumber) -> bool:
        """Whether a push is not in the rows. A log that is sent again, to a shard that is ahead of
        it, names pushes that are: each is applied once."""
        node, sequence = ticket
        return sequence > self.ledger.of(node).applied

    def _change(self, entry: Change) -> Iterator[Step]:
        """Rows change table by table, and the pushes are booked once all of them have."""
        summed = self.sums.of(entry, self._fresh)
        tickets = [ticket for ticket in entry.tickets if self._fresh(ticket)]
        pushes = [summed.get(ticket, self._waiting.get(ticket)) for ticket in tickets]
        held = [push for push in pushes if push is not None]
        if entry.scale:
            moved = [self._moved(push) for push in held]
            alone = entry.scale == 1.0 and not entry.average
            for push in averaged(moved) if entry.average else moved:
                writer = push.node if alone and push.keeps else None
                for delta in push.deltas:
                    yield partial(self._add, delta, None if entry.plain else entry.scale, writer)
        yield partial(self._book, entry, dict(zip(tickets, pushes, strict=True)))

    def _book(self, entry: Change, pushes: Mapping[PushNumber, Push | None]) -> None:
        """These pushes are in the rows; None for one that was lost with its node."""
        if not entry.scale:
            self.tables.versions.lost([push.node for push in pushes.values() if push is not None])
        for (node, sequence), push in pushes.items():
            if push is None:
                logger.warning("push %d of node %s was lost with its node", sequence, node)
                self.lost_pushes += 1
            self._waiting.pop((node, sequence), None)
            self.ledger.apply(node, sequence)
            self.meters.pushes += 1
        self.sums.drop(self._fresh)

    def _add(self, delta: RowDelta, scale: float | None, writer: str | None) -> None:
        """All of these rows change, or none. Without a scale past the optimiser.

        writer  whose versions of them stay
        """
        self.tables.versions.writing(writer)
        slots, values = self.held.places(delta.table, delta.ids, "push"), delta.values
        gone = slots < 0
        slots, values = (slots[~gone], values[~gone]) if gone.any() else (slots, values)
        if scale is None:
            self.tables.put(delta.table, slots, self.tables.read(delta.table, slots) + values)
        else:
            self.tables.add(delta.table, slots, values, scale)
            self.meters.rows_in += len(slots)
        self.meters.dropped_rows += int(gone.sum())

    def _moved(self, push: Push) -> Push:
        """Where columns lie here, how a block moves the rows as they are now."""
        batch = push.minibatches
        if batch is None:
            return push
        from embedding.server.shards.columns import moved  # brings the kernels with it

        return replace(push, deltas=moved(batch, *self._taken(batch)))

    def _taken(self, batch: Minibatches) -> tuple[FloatArray, FloatArray]:
        slots = self.map.slots(batch.ids)
        return (
            self.tables.read(Table.IN, slots[: batch.inputs]),
            self.tables.read(Table.OUT, slots),
        )

    def reach(self, at: LogPosition) -> bool:
        """Wait a moment for a position (under the lock)."""
        deadline = time.monotonic() + SHARD_WAIT_S
        while self.log_number != at[0] or self.position < at[1]:
            left = deadline - time.monotonic()
            if left <= 0 or self.closing:
                return False
            self.changed.wait(left)
        return True
