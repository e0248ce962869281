"""One shard without its network: rows by id, and the primary's entries carried out in order.

A shard knows no word and no policy. What nodes push waits here until the primary's log says that it
is to be applied (`log.py`); who reads names the position that must be reached first.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.kernel.errors import RefusedError, ReplacedError
from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.figures.meters import Meters
from embedding.server.ledger.sequence import NodeLedger
from embedding.server.rows.composing import GramBags
from embedding.server.rows.tables import Tables
from embedding.server.rowstore import Changing, LogPosition, Step, deltas_of
from embedding.server.validation import checked
from yeoron_lab.averaging import averaged
from yeoron_lab.shards.client.columns import columns
from yeoron_lab.shards.heldrows import HeldRows
from yeoron_lab.shards.inbox import ShardInbox
from yeoron_lab.shards.log import Admit, Change, CopyRows, LogEntry, PushNumber
from yeoron_lab.shards.spec import ShardSpec

logger = logging.getLogger(__name__)

SHARD_WAIT_S = 1.0
"""How long a read is held before it is answered `waiting`."""


class HeldCopy:
    """All rows at one position of the log; completed in the background."""

    def __init__(self, rows: HeldRows, lock: threading.RLock) -> None:
        """Begin to copy (under `lock`)."""
        self._held = rows
        self._slots = rows.map.used()
        self._ids = rows.map.ids(self._slots)
        self._rows = rows.tables.copy(rows.map.end, accumulators=False)
        self._done = threading.Event()
        self._failed = False
        threading.Thread(target=self._finish, args=(lock,), daemon=True).start()

    def pick(self, table: Table, ids: IntArray) -> FloatArray:
        """float32 [n, dim] of some ids that had a row."""
        self._done.wait()
        if self._failed:
            raise RefusedError("the copy of the shard's rows could not be completed.")
        if table is Table.SUB:
            return self._rows.pick(table, self._held.gram_places(ids, "copied rows"))
        at = positions(self._ids, ids)
        if bool((at < 0).any()):
            raise RefusedError("copied rows: an id that had no row then.")
        return self._rows.pick(table, self._slots[at])

    def _finish(self, lock: threading.RLock) -> None:
        try:
            self._rows.finish(lock)
        except Exception:
            self._failed = True
            logger.exception("a copy of the rows could not be completed")
        finally:
            self._done.set()


@dataclass
class LogCursor:
    """How far the log of one incarnation of the primary is carried out. The shard's lock guards it.

    number    of that incarnation: positions of another mean nothing here
    position  of the last entry that is in the rows
    durable   of the last one that is in a checkpoint
    queue     entries behind `position`, in order
    """

    number: int = 0
    position: int = 0
    durable: int = 0
    queue: deque[LogEntry] = field(default_factory=deque)

    def restart(self, number: int) -> None:
        """The primary was started again, and with it its log."""
        self.number, self.position, self.durable = number, 0, 0
        self.queue.clear()

    def extend(self, number: int, first: int, entries: Sequence[LogEntry], who: str) -> None:
        """Take entries from position `first` on; RefusedError when they leave a gap."""
        expected = self.end + 1
        if number != self.number or first > expected:
            raise RefusedError(
                f"{who}: entries from {first} of log {number}; it expects "
                f"{expected} of log {self.number}."
            )
        # Entries that came before an answer was lost come again and are passed over.
        self.queue.extend(entries[expected - first :])

    @property
    def end(self) -> int:
        """The last position that is here."""
        return self.position + len(self.queue)

    def has_reached(self, at: LogPosition) -> bool:
        return self.number == at[0] and self.position >= at[1]


class NotReachedError(Exception):
    """The log is not carried out up to the position that was named; the same may be asked again."""


class ShardState:
    """Rows, slots, pushes that wait and the log's position, consistent under `lock`.

    held      rows and where they lie
    inbox     pushes that wait for the log
    cursor    how far the log is carried out
    changing  carries its entries out, each as a whole
    meters    what nodes send and get; led: what the primary does
    """

    def __init__(self, spec: ShardSpec, *, epoch: int) -> None:
        self.spec = spec
        self.epoch = epoch
        self.identity = spec.identity
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.closing = False
        self.started = time.monotonic()
        self.held = HeldRows(spec)
        keeps = spec.server.state_dir is not None
        self.inbox = ShardInbox(spec.index, keeps_checkpoints=keeps)
        self.meters, self.led = Meters(), Meters()
        self.cursor = LogCursor()
        self.changing = Changing(f"shard {spec.index}")
        self._copies: dict[int, HeldCopy] = {}

    @property
    def tables(self) -> Tables:
        return self.held.tables

    # -- the primary ------------------------------------------------------------------------

    def lead(self, number: int, identity: str) -> dict[str, Any]:
        """The primary greets: where this shard stands. Another incarnation of it starts the log
        again; UnavailableError while what the former one's began cannot be finished.
        """
        with self.changed:
            if identity != self.identity:
                raise RefusedError(
                    f"shard {self.spec.index}: its state is of another training (its primary's "
                    "state folder was emptied or exchanged); give both their folders back or "
                    "empty both."
                )
            if number != self.cursor.number:
                # What was begun is finished first: the new log may order the same pushes in other
                # entries, and half of one is in the rows. The ledger stays: by it what is in the
                # rows is not applied again.
                if self.changing.begun:
                    self._advance()
                    self.check_whole()
                self.cursor.restart(number)
                self._copies.clear()
            return {
                "position": self.cursor.end,
                "applied": {name: entry.applied for name, entry in self.inbox.ledger.nodes.items()},
                "next_id": self.held.next_id,
                "epoch": self.epoch,
            }

    def take(self, number: int, first: int, entries: Sequence[LogEntry]) -> dict[str, Any]:
        """Entries of the log, the first at position `first`; how far this shard is."""
        with self.changed:
            self.cursor.extend(number, first, entries, f"shard {self.spec.index}")
            self._advance()
            return self.progress()

    def rows(self, table: Table, ids: IntArray, at: LogPosition) -> FloatArray:
        """float32 [n, dim] at `at` or later, zeros for evicted ids; NotReachedError."""
        with self.changed:
            self.reach(at)
            return self.tables.read(table, self.held.slots(table, ids, "rows"))

    def gram_sums(self, ids: IntArray, offsets: IntArray, at: LogPosition) -> FloatArray:
        """float32 [n, dim], rows of n-grams added up; otherwise as `rows`."""
        rows = self.held.gram_places(ids, "sums")
        bags = GramBags(rows.astype(np.int32), offsets.astype(np.int32))
        with self.changed:
            self.reach(at)
            sums = bags.sums(self.tables.source(Table.SUB, accumulators=False))
            return self.tables.device.host(sums)

    def copied(self, number: int, table: Table, ids: IntArray) -> FloatArray:
        """float32 [n, dim] as a copy has them."""
        with self.lock:
            copy = self._copies.get(number)
        if copy is None:
            raise RefusedError(
                f"shard {self.spec.index}: copy {number} is gone, the shard was started again."
            )
        return copy.pick(table, ids)

    def forget_copy(self, number: int) -> None:
        with self.lock:
            self._copies.pop(number, None)

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
            entry = self.inbox.hello(node, first, last)
            self._advance()
            return entry

    def check_session(self, node: str, session: int) -> None:
        """ReplacedError when the node has connected again since: two processes use one name."""
        if self.inbox.ledger.of(node).session != session:
            raise ReplacedError(f"node {node}: another process has connected under this name.")

    def push(self, push: Push) -> NodeLedger:
        """Take rows; they wait until the log says that they are to be applied.

        Sent again before that, the later content counts: the primary may have refused the earlier.
        """
        server, size = self.spec.server, push.nbytes
        if push.minibatches is not None:
            push.minibatches.check_learnt(server.max_message_bytes)
        push = checked(push, self.tables.dim, server.max_message_bytes)
        with self.changed:
            entry = self.inbox.ledger.of(push.node)
            if push.sequence <= entry.applied:
                self.meters.duplicates += 1
                return entry
            self.inbox.check(push)
            self.held.check_own(push)
            self.inbox.put(push)
            self.meters.delta_bytes += size
            self._advance()
            return entry

    def progress(self) -> dict[str, Any]:
        """Figures for the primary's status, JSON-safe (under the lock)."""
        meters, inbox = self.meters, self.inbox
        return {
            "position": self.cursor.position,
            "durable": self.cursor.durable,
            "rows": self.held.rows,
            "bytes": self.held.nbytes,
            "pushes": meters.pushes,
            "duplicates": meters.duplicates,
            "lost_pushes": inbox.lost,
            "repeated_pushes": inbox.repeated,
            "rows_in": meters.rows_in,
            "rows_out": meters.rows_out,
            "rows_spared": meters.rows_spared,
            "bytes_deltas": meters.delta_bytes,
            "bytes_in": meters.bytes_in,
            "bytes_out": meters.bytes_out,
            "bytes_led": self.led.bytes_in + self.led.bytes_out,
            "stuck": self.changing.stuck,
            "pause_ms": meters.checkpoint_pause_s * 1000,
            "uptime_s": time.monotonic() - self.started,
        }

    def close(self) -> None:
        with self.changed:
            self.closing = True
            self.changed.notify_all()

    # -- carrying out -----------------------------------------------------------------------

    def check_whole(self) -> None:
        """UnavailableError while half of a push is in the rows (under the lock)."""
        if self.changing.begun:
            self.changing.refuse()

    def _advance(self) -> None:
        """Carry out entries until one needs a push that is not here yet (under the lock)."""
        cursor, before = self.cursor, self.cursor.position
        while cursor.queue:
            entry = cursor.queue[0]
            # None overtakes one that waits: another shard has what it needs, and the rows of both
            # would have changed in another order.
            if isinstance(entry, Change) and self.inbox.wants(entry):
                break
            if not self.changing.carry_out(partial(self._planned, entry)):
                break
            cursor.queue.popleft()
            cursor.position += 1
            if not self.inbox.ledger.keeps_checkpoints:
                cursor.durable = cursor.position
        if cursor.position > before:
            self.changed.notify_all()

    def _planned(self, entry: LogEntry) -> Iterable[Step]:
        """What carries an entry out, in order; nothing has changed yet."""
        if isinstance(entry, Admit):
            return [partial(self.held.admit, entry)]
        if isinstance(entry, Change):
            return self._change(entry)
        return [partial(self._copy, entry)]

    def _copy(self, entry: CopyRows) -> None:
        self._copies[entry.number] = HeldCopy(self.held, self.lock)

    def _change(self, entry: Change) -> Iterator[Step]:
        """Rows change table by table, and the pushes are booked once all of them have."""
        pushes = self.inbox.named(entry)
        present = [push for push in pushes.values() if push is not None]
        if entry.scale:
            moved = [self._moved(push) for push in present]
            combine = averaged if entry.average else None
            for delta, writer in deltas_of(moved, entry.scale, combine):
                yield partial(self._add, delta, entry.scale, writer)
        yield partial(self._book, entry, pushes)

    def _book(self, entry: Change, pushes: Mapping[PushNumber, Push | None]) -> None:
        """These pushes are in the rows; None for one that was lost with its node."""
        if not entry.scale:
            self.tables.lost([push.node for push in pushes.values() if push is not None])
        self.inbox.booked(pushes)
        self.meters.pushes += len(pushes)

    def _add(self, delta: RowDelta, scale: float, writer: str | None) -> None:
        """All of these rows change, or none; see Tables.change."""
        slots = self.held.places(delta.table, delta.ids, "push")
        changed = self.tables.change(delta.table, slots, delta.values, scale, writer)
        self.meters.rows_in += changed
        self.meters.dropped_rows += len(slots) - changed

    def _moved(self, push: Push) -> Push:
        """Where columns lie here, how a block moves the rows as they are now."""
        if push.minibatches is None:
            return push
        return replace(push, deltas=columns().moved(self.held, push.minibatches))

    def reach(self, at: LogPosition) -> None:
        """Wait a moment for a position; NotReachedError. Who then reads holds the lock already."""
        with self.changed:
            self.changed.wait_for(
                lambda: self.closing or self.cursor.has_reached(at), timeout=SHARD_WAIT_S
            )
            if not self.cursor.has_reached(at):
                raise NotReachedError
