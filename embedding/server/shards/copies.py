"""Copies of a shard's rows, which a snapshot is made of."""

from __future__ import annotations

import logging
import threading

from embedding.kernel.errors import RefusedError
from embedding.kernel.positions import positions
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.shards.heldrows import HeldRows

logger = logging.getLogger(__name__)


class HeldCopy:
    """All rows at one position of the log; completed in the background."""

    def __init__(self, held: HeldRows, lock: threading.RLock) -> None:
        """Begin to copy (under `lock`)."""
        self._held = held
        self._slots = held.map.used()
        self._ids = held.map.ids(self._slots)
        self._rows = held.tables.copy(held.next_slot, accumulators=False)
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
