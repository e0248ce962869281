"""How nodes that all-reduce find each other, again whenever one of them comes or goes.

Each time is a generation. Who is in it is decided once, by whichever node first sees that all of
the generation before have arrived or are gone; the others read the decision (only the first that is
put into the rendezvous counts). Keys:

    node/NAME  how the node stands: incarnation (its process), the generation it wants, the sums it
    has gone/NAME  the incarnation of that node that will not come again
    gen/G      the members of generation G, in order of rank
    wish/G     somebody waits until the members of generation G meet again
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from embedding.exchange.topology import MeetingSpec
from embedding.kernel.errors import ExchangeError
from embedding.kernel.records import IntArray
from yeoron_lab.allreduce.rendezvous import Rendezvous
from yeoron_lab.allreduce.ring import Ring, RingSpec, SocketRing

_LOOK_SECONDS = 0.05
FRESH = -1
"""Sums that a node has which has just started: none, and no replica."""


@dataclass(frozen=True)
class Arrived:
    """A node that has arrived.

    incarnation   its process
    wants  the generation that it waits for, or is in
    step   sums that its replica has, FRESH for one without
    tells  it knows what of its replica the server has
    """

    incarnation: str
    wants: int
    step: int = FRESH
    tells: bool = False


@dataclass(frozen=True)
class RingMember:
    """A node of a generation; the first has the replica that all take, and leads."""

    name: str
    incarnation: str
    step: int


def decide(
    names: tuple[str, ...],
    generation: int,
    before: tuple[RingMember, ...] | None,
    standings: Mapping[str, Arrived],
    gone: Mapping[str, str],
    *,
    patient: bool = True,
) -> tuple[RingMember, ...] | None:
    """The members of a generation, None while somebody is awaited.

    Awaited are all nodes at first, then the members of the generation before unless they are gone
    (or started again); without `patient` nobody is, and one that hangs is left out until it comes
    by itself. One with the most sums comes first.

    names   all nodes
    gone    name → the last incarnation of it that is known to be over
    """
    arrived = {
        name: each
        for name, each in standings.items()
        if each.wants >= generation and gone.get(name) != each.incarnation
    }
    if before is None:
        awaited = set(names)
    else:
        awaited = {
            member.name
            for member in before
            if gone.get(member.name) != member.incarnation
            and (
                member.name not in standings
                or standings[member.name].incarnation == member.incarnation
            )
        }
    if not arrived or (patient and awaited - set(arrived)):
        return None
    ranked = sorted(arrived, key=lambda n: (-arrived[n].step, not arrived[n].tells, names.index(n)))
    return tuple(RingMember(name, arrived[name].incarnation, arrived[name].step) for name in ranked)


class Meeting:
    """One node's way to the others. One thread uses it.

    names        all nodes of the training
    incarnation  names this process among those that the node has in its time
    members      of the generation that this node is in
    """

    def __init__(
        self,
        spec: MeetingSpec,
        *,
        name: str,
        incarnation: str,
        timeout_s: float,
        stop: threading.Event | None = None,
    ) -> None:
        self.name, self.names = name, spec.names
        self.members: tuple[RingMember, ...] = ()
        self.generation = 0
        self._spec, self._incarnation = spec, incarnation
        self._timeout_s = timeout_s
        self._stop = stop or threading.Event()
        self._rendezvous = Rendezvous(spec.folder)

    def form(self, step: int, *, tells: bool) -> Ring:
        """Wait for the others and join them; `step` and `tells` as in `Arrived`.

        Raises ExchangeError when this process was told to stop, or the rendezvous is gone.
        """
        while True:
            generation = self._next()
            arrived = Arrived(self._incarnation, generation, step, tells)
            # In this order: who reads the wish leaves its ring, and has to find this node arrived,
            # or the generation is decided without it and all meet once more.
            self._rendezvous.put(f"node/{self.name}", asdict(arrived))
            self._rendezvous.put(f"wish/{generation - 1}", self.name)
            members = self._decided(generation)
            own = (self.name, self._incarnation)
            rank = next((i for i, m in enumerate(members) if (m.name, m.incarnation) == own), None)
            if rank is None:
                # It was decided without this node, which hung or came late. It wishes for another.
                continue
            self.members, self.generation = members, generation
            place = RingSpec(
                folder=self._spec.folder,
                rank=rank,
                size=len(members),
                generation=generation,
                backend=self._spec.backend,
            )
            return form_ring(place, timeout_s=self._timeout_s)

    def wished(self) -> bool:
        """Whether somebody waits for this generation to end."""
        return self._rendezvous.has(f"wish/{self.generation}")

    def conclude(self, summed: list[int]) -> None:
        """Nobody has a block any more, and the server has all sums.

        summed  of each node of the training, tokens of its share that are in them: a process that
                comes later sums none of them again
        """
        self._rendezvous.put(f"summed/{self.name}", summed)

    def concluded(self, nodes: int) -> IntArray:
        """int64 [nodes]: tokens that nodes which have ended had in sums; 0 where none has."""
        tokens = np.zeros(nodes, dtype=np.int64)
        for summed in self._all("summed").values():
            tokens = np.maximum(tokens, np.array(summed, dtype=np.int64))
        return tokens

    def leave(self) -> None:
        """This process will not come again; never raises."""
        # By incarnation, not by name: a process that is started again under the name may be here
        # already.
        with suppress(ExchangeError):
            self._rendezvous.put(f"gone/{self.name}", self._incarnation)

    def _next(self) -> int:
        """The first generation that is not decided."""
        generation = self.generation + 1
        while self._rendezvous.has(f"gen/{generation}"):
            generation += 1
        return generation

    def _decided(self, generation: int) -> tuple[RingMember, ...]:
        """The members of a generation, once somebody has decided."""
        key = f"gen/{generation}"
        began = time.monotonic()
        while not self._rendezvous.has(key):
            before = self._members(generation - 1) if generation > 1 else None
            members = decide(
                self.names,
                generation,
                before,
                {n: Arrived(**standing) for n, standing in self._all("node").items()},
                self._all("gone"),
                patient=time.monotonic() - began < self._timeout_s,
            )
            if members is not None:
                self._propose(key, members)
            elif self._stop.wait(_LOOK_SECONDS):
                raise ExchangeError(f"{self.name}: told to stop while it waits for other nodes.")
        return self._members(generation)

    def _propose(self, key: str, members: tuple[RingMember, ...]) -> None:
        # Two that decide at once may have seen different nodes arrive. Only what is stored first
        # counts, and each reads it back: else they would form two rings and wait for ever.
        self._rendezvous.put_first(key, [asdict(member) for member in members])

    def _members(self, generation: int) -> tuple[RingMember, ...]:
        return tuple(RingMember(**member) for member in self._rendezvous.get(f"gen/{generation}"))

    def _all(self, kind: str) -> dict[str, Any]:
        """What is there of all nodes, by name."""
        names = [name for name in self.names if self._rendezvous.has(f"{kind}/{name}")]
        return {name: self._rendezvous.get(f"{kind}/{name}") for name in names}


def depart(spec: MeetingSpec, name: str, incarnation: str) -> None:
    """Tell the others that a process of node `name` has died; never raises.

    Who started it knows; the others would wait for `peer_timeout_s` to be sure.
    """
    with suppress(ExchangeError):
        Rendezvous(spec.folder).put(f"gone/{name}", incarnation)


def form_ring(spec: RingSpec, *, timeout_s: float) -> Ring:
    """Join the other members of a generation; BrokenRingError when one of them does not come."""
    if spec.backend == "nccl":
        from yeoron_lab.allreduce.nccl import NcclRing

        return NcclRing(spec, timeout_s=timeout_s)
    return SocketRing(spec, timeout_s=timeout_s)
