"""Rows that a node keeps are not sent to it again (`exchange/rowcache.py`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from embedding.exchange.protocol import PulledRows
from embedding.exchange.rowcache import NAMES, CachedRows
from embedding.exchange.wire import Array
from embedding.kernel.records import IntArray, Table
from embedding.server.state import ServerState


def spared(
    state: ServerState,
    node: str,
    kept: CachedRows,
    asked: Mapping[Table, IntArray],
    rows: PulledRows,
) -> dict[str, Array]:
    """Parts of the answer to a pull (under the lock in which `rows` were read).

    All rows, when the node keeps rows of another incarnation of the server or lacks a push of its
    own; else those that it lacks, and which these are, a bit for each id.
    """
    by_table = rows.by_table()
    if kept.epoch != state.epoch or kept.sequence != rows.sequence:
        return {NAMES[table]: values for table, values in by_table.items()}
    arrays: dict[str, Array] = {}
    for table, ids in asked.items():
        slots = ids if table is Table.SUB else state.vocabulary.slots(ids, "pull")
        lacks = state.tables.versions.unknown(node, table, slots, kept.since[table])
        state.meters.rows_spared += len(ids) - int(lacks.sum())
        arrays[NAMES[table]] = by_table[table][lacks]
        arrays[f"{NAMES[table]}.sent"] = np.packbits(lacks)
    return arrays
