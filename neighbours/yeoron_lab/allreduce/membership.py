"""Which nodes a node sums with, and how far each of them is in the sums.

A node dies or comes: those that are there leave the ring, meet again (`meeting.py`) and agree where
they stand: on the replicas of the one with the most sums, and a ledger. The ledger says of each
node how far its blocks are in the sums, in tokens of its share. A block that was summed and whose
node died before the server had counted it comes again from the node's next process; it is known by
the ledger and not summed twice.

Two things hold whatever happens, or movement is lost or counted twice:

    a sum is in the replicas of a node whole or not at all, and no node can be two ahead
    only one node, the first of the ring, brings the replicas to the server
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from embedding.kernel.errors import BrokenRingError
from embedding.kernel.records import FloatArray, IntArray, Table
from yeoron_lab.allreduce.meeting import FRESH, Meeting
from yeoron_lab.allreduce.replica import Replica
from yeoron_lab.allreduce.ring import Ring
from yeoron_lab.allreduce.writeback import WriteBack

_MOST_TRIES = 20
"""Meetings in a row that break before a ring is there, after which a node gives up."""


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
    lengths = [len(replica) for replica in replicas.values()]
    facts = np.array([own.step, *lengths], dtype=np.int64)
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
    # The last exchange, before anything changes: a node whose ring breaks up to here keeps what it
    # had, and meets the others with that. One that went on alone has the leader's replicas whole.
    counted = ring.gather(learnt).max(axis=0)
    if not ring.is_root:
        for table, (ids, rows) in taken.items():
            replicas[table].become(ids, rows)
    lost = 0 if step == FRESH else int(np.maximum(counted - summed, 0).sum())
    return Standpoint(max(step, 0), np.maximum(summed, counted)), lost


class Membership:
    """One node's place among the nodes that sum. It meets them when it is made.

    tokens       of an offset: how much of the node's share it is behind
    ring         the nodes that are there
    stand        where this node is among its sums
    waited_s     for the others
    regrouped    how often nodes met again
    lost_tokens  that were counted and whose movement is in no sum
    from_server  how often all began again from the server's tables
    """

    def __init__(
        self, meeting: Meeting, write_back: WriteBack, tokens: Callable[[str], int]
    ) -> None:
        self.waited_s = 0.0
        self.regrouped = self.lost_tokens = self.from_server = 0
        self.stand = Standpoint(FRESH, np.zeros(len(meeting.names), dtype=np.int64))
        self._meeting, self._write_back, self._tokens = meeting, write_back, tokens
        self._own = meeting.names.index(meeting.name)
        self._tells = False
        self._ended_with = 0  # tokens of this node that others had in sums when they ended
        self._sent = 0
        self.ring = self._meet()

    @property
    def bytes_sent(self) -> int:
        """By this node, to all rings that it was in."""
        return self._sent + self.ring.bytes_sent

    def regroup(self) -> None:
        """The ring is broken, or somebody wants to come: meet again."""
        began = time.monotonic()
        self.regrouped += 1
        self._sent += self.ring.bytes_sent
        self.ring.close()
        self.ring = self._meet()
        self.waited_s += time.monotonic() - began

    def gather(self, header: list[int]) -> IntArray:
        """Everybody's header, int64 [nodes, k + 1]; in the last column whether somebody waits to
        join.
        """
        began = time.monotonic()
        wished = self.ring.is_root and self._meeting.wished()
        heads = self.ring.gather(np.asarray([*header, wished], dtype=np.int64))
        self.waited_s += time.monotonic() - began
        return heads

    def barrier(self) -> None:
        self.ring.gather(np.zeros(1, dtype=np.int64))

    def is_summed(self, behind: int) -> bool:
        """Whether this node's block that ends after so many tokens of its share is in the sums."""
        return behind <= int(self.stand.summed[self._own])

    def died_with_another(self, behind: int) -> bool:
        """Whether that block was summed by nodes that have ended since, rows and all."""
        return behind <= self._ended_with

    def summed(self, ends: IntArray) -> None:
        """A sum is in the replicas; `ends`, by rank, up to which token of each node's share."""
        for member, tokens in zip(self._meeting.members, ends.tolist(), strict=True):
            at = self._meeting.names.index(member.name)
            self.stand.summed[at] = max(self.stand.summed[at], tokens)
        self.stand.step += 1

    def conclude(self) -> None:
        """Nobody has a block any more, and the server has all sums."""
        self._meeting.conclude(self.stand.summed.tolist())

    def leave(self) -> None:
        self._meeting.leave()
        self.ring.close()

    def _meet(self) -> Ring:
        """Join the others, at the start or again, and stand where they stand."""
        failed = 0
        while True:
            try:
                ring = self._meeting.form(self.stand.step, tells=self._tells)
            except BrokenRingError:  # a peer died while they joined hands
                failed += 1
                if failed >= _MOST_TRIES:
                    raise
                continue
            try:
                self._agree(ring)
            except BrokenRingError:
                self._sent += ring.bytes_sent
                ring.close()
                continue
            return ring

    def _agree(self, ring: Ring) -> None:
        names, members = self._meeting.names, self._meeting.members
        learnt = np.zeros(len(names), dtype=np.int64)
        learnt[self._own] = self._tokens(self._write_back.offset)
        fresh = members[0].step == FRESH
        if fresh:
            # Nobody has a replica: all begin with the server's tables. In those is what nodes that
            # have ended had summed, blocks of this node among it which the server has not counted:
            # summed again they would count twice.
            concluded = self._meeting.concluded(len(names))
            self._ended_with = int(concluded[self._own])
            learnt = np.maximum(learnt, concluded)
        stand, lost = agree(ring, self._write_back.replicas, self.stand, learnt)
        # Who led before and does so no more has replicas that another one brings now; two that
        # bring the same movement would count it twice.
        self._tells = self._tells and ring.is_root
        if ring.is_root and not self._tells:
            self._write_back.take_over(set(names) - {member.name for member in members})
            self._tells = True
        self.stand = stand
        self.lost_tokens += lost
        self.from_server += bool(fresh and stand.summed.any())
