"""The answer to a pull: all rows, those that the node does not keep, or what changed of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from embedding.exchange.mirror import Wanted
from embedding.exchange.protocol import PulledRows
from embedding.exchange.rowcache import NAMES, CachedRows
from embedding.exchange.wire import Array, Message
from embedding.kernel.records import IntArray, Table
from embedding.server.figures.meters import Meters
from embedding.server.flight.mirroring import StreamMirror
from embedding.server.rows.versions import RowVersions

Lacking = dict[Table, Array]
"""By table bool [n]: which rows the node has not got as they are; empty: all are sent."""


def lacking(
    versions: RowVersions,
    meters: Meters,
    node: str,
    incarnation: tuple[int, int],
    kept: CachedRows,
    slots: Mapping[Table, IntArray],
) -> Lacking:
    """Which rows the node lacks (under the lock in which they are read).

    incarnation  of the server, and the last push of the node that is in the rows: a node that keeps
                 rows of another incarnation, or lacks a push of its own, gets all of them
    """
    if (kept.epoch, kept.sequence) != incarnation:
        return {}
    found: Lacking = {}
    for table, where in slots.items():
        found[table] = versions.unknown(node, table, where, kept.since[table])
        meters.rows_spared += len(where) - int(found[table].sum())
    return found


def answered(
    header: Mapping[str, Any],
    asked: Mapping[Table, IntArray],
    rows: PulledRows,
    lacks: Lacking,
    mirror: StreamMirror,
    wanted: Wanted | None,
) -> Message:
    """The answer with this header; of rows that are spared, a bit for each id says which."""
    changes = None if wanted is None else mirror.changes(wanted, asked, rows)
    if changes is not None:
        return Message({**header, **changes[0]}, changes[1])
    arrays: dict[str, Array] = {}
    for table, values in rows.by_table().items():
        arrays[NAMES[table]] = values[lacks[table]] if lacks else values
        if lacks:
            arrays[f"{NAMES[table]}.sent"] = np.packbits(lacks[table])
    return Message(header, arrays)
