"""What nodes that have met again agree on: the replicas of the one with the most sums, and a
ledger.

The ledger says of each node how far its blocks are in the sums, in tokens of its share. A block
that was summed and whose node died before the server had counted it comes again from the node's
next process; it is known by the ledger and not summed twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from embedding.exchange.allreduce.meeting import FRESH
from embedding.exchange.allreduce.replica import Replica
from embedding.exchange.allreduce.ring import Ring
from embedding.kernel.records import FloatArray, IntArray, Table


@dataclass
class Standpoint:
    """Where a node is among its sums.

    step     sums that its replicas have, FRESH for a process that has just started
    summed   int64 [nodes]: of each node of the training, tokens of its share that are summed
    """

    step: int
    summed: IntArray


def agree(
    ring: Ring, replicas: Mapping[Table, Replica], own: Standpoint, learnt: IntArray
) -> tuple[Standpoint, int]:
    """The leader's replicas and standpoint on every node, or BrokenRingError and nothing changed.

    learnt  int64 [nodes], of this node the tokens that the server has counted, 0 elsewhere

    Returns the standpoint, and the tokens that were counted but are in no sum: their movement died
    with the nodes that had it. After a start from the server's tables that is not known and 0.
    """
    held = [len(replica) for replica in replicas.values()]
    facts = np.array([own.step, *held], dtype=np.int64)
    ring.from_leader(facts)
    step, sizes = int(facts[0]), facts[1:].tolist()
    summed = own.summed.copy()
    ring.from_leader(summed)
    taken: dict[Table, tuple[IntArray, FloatArray]] = {}
    for (table, replica), size in zip(replicas.items(), sizes, strict=True):
        ids, rows = replica.ids, replica.rows
        if not ring.is_root:
            ids = np.empty(size, dtype=np.int64)
            rows = np.empty((size, rows.shape[1]), dtype=np.float32)
        ring.from_leader(ids)
        ring.from_leader(rows)
        taken[table] = ids, rows
    counted = ring.gather(learnt).max(axis=0)
    if not ring.is_root:
        for table, (ids, rows) in taken.items():
            replicas[table].become(ids, rows)
    lost = 0 if step == FRESH else int(np.maximum(counted - summed, 0).sum())
    return Standpoint(max(step, 0), np.maximum(summed, counted)), lost
