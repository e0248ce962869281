"""The node's side of the leases: heartbeats, and what is read because of them.

A source that another incarnation held is read only when it is known what the server learnt from
that incarnation: of this node, the gradient process says it; of another node, the server is
asked, which from then on takes no push of that incarnation any more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from embedding.crawl.crawler import Crawler
from embedding.crawl.frontier import Frontier
from embedding.crawl.lease import Heartbeat, Incarnation, LeaseView
from embedding.exchange.channel import ask
from embedding.kernel.errors import FencedError, UnavailableError
from embedding.worker.crawling.batches import InFlightDocuments
from embedding.worker.crawling.rereading import Rereading
from embedding.worker.crawling.unacknowledged import decode_offset
from embedding.worker.spec import NodeSpec

T = TypeVar("T")

SOON_SECONDS = 0.5
"""The next heartbeat while something waits for it."""
STUCK_BEATS = 40
"""Beats after which a source that cannot be given up makes the node start again."""


class LeaseKeeper:
    """Runs in the crawler's loop until the process ends."""

    def __init__(
        self,
        spec: NodeSpec,
        frontier: Frontier,
        crawler: Crawler,
        underway: InFlightDocuments,
        rereading: Rereading,
    ) -> None:
        self._rereading = rereading
        self.incarnation = Incarnation(spec.name, spec.incarnation)
        self.view: LeaseView | None = None
        self.ready = False
        """Whether everything that is held is read: what is pending is known."""
        self._spec = spec
        self._config = spec.crawl.leases
        self._frontier = frontier
        self._leases = frontier.leases(self._config)
        self._crawler = crawler
        self._patience = crawler.patience
        self._underway = underway
        self._leaving: dict[str, float] = {}
        self._quiet: set[str] = set()
        frontier.held_by(self.incarnation)

    @property
    def owing(self) -> bool:
        """Whether somebody may still ask what earlier incarnations of this node have pushed."""
        return self.view is None or self.view.owing

    async def run(self, offset: str) -> None:
        """Give heartbeats; FencedError when what the node held is another's.

        offset  what the server had learnt from incarnations of this node before
        """
        own = decode_offset(offset)
        if not await self._ask(self._leases.sources):
            await self._ask(self._leases.publish, self._spec.sources)
        heartbeat, beaten = Heartbeat(first=True, peers=self._spec.peers), time.monotonic()
        while True:
            view = await self._ask(self._leases.beat, self.incarnation, heartbeat)
            if view.replaced:
                raise FencedError(
                    f"{self.incarnation.node}: another incarnation of the node has begun, or "
                    "its sources were "
                    "given to others; it starts again."
                )
            self.view = view
            cleared = await self._clear_debts(view, own)
            await self._read(view.reading)
            self.ready = not view.debts
            released = await self._release(view.leaving - frozenset(view.debts))
            busy = view.debts or view.leaving
            await asyncio.sleep(SOON_SECONDS if busy else self._config.beat)
            now = time.monotonic()
            heartbeat = Heartbeat(
                holds=view.held,
                tokens=self._underway.tokens(),
                seconds=now - beaten,
                released=released,
                cleared=cleared,
            )
            beaten = now

    async def _ask(self, call: Callable[..., T], *arguments: Any) -> T:
        return await self._patience.ask(call, *arguments, aside=True)

    async def _read(self, names: frozenset[str]) -> None:
        sources = await self._ask(self._leases.sources, sorted(names)) if names else []
        await self._crawler.read(sources)

    async def _clear_debts(self, view: LeaseView, own: frozenset[int]) -> frozenset[str]:
        """The sources of which all is known that earlier holders had pushed."""
        learnt: dict[Incarnation, frozenset[int] | None] = {}
        cleared = set()
        for source, incarnations in view.debts.items():
            for incarnation in incarnations:
                if incarnation not in learnt:
                    mine = incarnation.node == self.incarnation.node
                    learnt[incarnation] = (
                        own if mine else await asyncio.to_thread(self._fence, incarnation)
                    )
            known = [learnt[incarnation] for incarnation in incarnations]
            if None in known:
                continue
            done = frozenset[int]().union(*(each for each in known if each is not None))
            await self._ask(self._frontier.recover, [source], done, incarnations[-1].mark)
            self._rereading.inherited |= {(dead.mark, source) for dead in incarnations}
            cleared.add(source)
        return frozenset(cleared)

    def _fence(self, incarnation: Incarnation) -> frozenset[int] | None:
        """What the server has of an incarnation that was given up; None while some of it may be
        lost.
        """
        body = {"node": incarnation.node, "incarnation": incarnation.mark}
        try:
            answer = ask(self._spec.server, self._spec.exchange, "fence", body)
        except UnavailableError:
            return None
        if answer["durable"] < answer["sequence"]:
            return None
        return decode_offset(answer["offset"])

    async def _release(self, leaving: Iterable[str]) -> frozenset[str]:
        """The sources of those to give up of which nothing is under way."""
        now, names = self._patience.clock(), frozenset(leaving)
        self._leaving = {name: self._leaving.get(name, now) for name in names}
        quiet = {
            name
            for name in names
            if not self._crawler.waiting(name) and not self._underway.of(name)
        }
        # Twice in a row: a document may be on its way from the crawler at this moment.
        free, self._quiet = quiet & self._quiet, quiet
        for name, since in self._leaving.items():
            if name not in free and now - since > STUCK_BEATS * self._config.beat:
                raise FencedError(
                    f"{self.incarnation.node}: documents of {name}, which another node shall "
                    "read, are "
                    "not acknowledged; it starts again."
                )
        if free:
            # What was fetched and never handed on.
            await self._ask(self._frontier.recover, sorted(free))
        return frozenset(free)
