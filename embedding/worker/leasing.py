"""The node's side of the leases: signs of life, and what is read because of them.

A source that another life held is read only when it is known what the server learnt from that
life: of this node, the gradient process has told it; of another node, the server is asked, which
from then on takes no push of that life any more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from embedding.crawl.crawler import Crawler
from embedding.crawl.frontier import Frontier
from embedding.crawl.lease import Life, Standing, Told
from embedding.exchange.channel import Channel
from embedding.kernel.errors import FencedError, UnavailableError
from embedding.worker.outstanding import decode_place
from embedding.worker.spec import NodeSpec
from embedding.worker.underway import UnderWay

T = TypeVar("T")

SOON_SECONDS = 0.5
"""The next sign of life while something waits for it."""
STUCK_BEATS = 40
"""Beats after which a source that cannot be given up makes the node start anew."""


class LeaseKeeper:
    """Runs in the crawler's loop until the process ends."""

    def __init__(
        self, spec: NodeSpec, frontier: Frontier, crawler: Crawler, underway: UnderWay
    ) -> None:
        self.life = Life(spec.name, spec.life)
        self.standing: Standing | None = None
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
        frontier.held_by(self.life)

    @property
    def owing(self) -> bool:
        """Whether somebody may still ask what earlier lives of this node have pushed."""
        return self.standing is None or self.standing.owing

    async def run(self, place: str) -> None:
        """Give signs of life; FencedError when what the node held is another's.

        place  what the server had learnt from the lives of this node before
        """
        own = decode_place(place)
        if not await self._ask(self._leases.sources):
            await self._ask(self._leases.publish, self._spec.sources)
        told, beaten = Told(first=True, peers=self._spec.peers), time.monotonic()
        while True:
            standing = await self._ask(self._leases.beat, self.life, told)
            if standing.replaced:
                raise FencedError(
                    f"{self.life.node}: another life of the node has begun, or its sources were "
                    "given to others; it starts anew."
                )
            self.standing = standing
            settled = await self._settle(standing, own)
            await self._read(standing.reading)
            self.ready = not standing.debts
            released = await self._release(standing.leaving - frozenset(standing.debts))
            busy = standing.debts or standing.leaving
            await asyncio.sleep(SOON_SECONDS if busy else self._config.beat)
            now = time.monotonic()
            told = Told(
                holds=standing.held,
                tokens=self._underway.tokens(),
                seconds=now - beaten,
                released=released,
                settled=settled,
            )
            beaten = now

    async def _ask(self, call: Callable[..., T], *arguments: Any) -> T:
        """Ask the database, however long it is away."""
        return await self._patience.ask(call, *arguments, aside=True)

    async def _read(self, names: frozenset[str]) -> None:
        sources = await self._ask(self._leases.sources, sorted(names)) if names else []
        await self._crawler.read(sources)

    async def _settle(self, standing: Standing, own: frozenset[int]) -> frozenset[str]:
        """The sources of which all is known that earlier holders had pushed."""
        learnt: dict[Life, frozenset[int] | None] = {}
        settled = set()
        for source, lives in standing.debts.items():
            for life in lives:
                if life not in learnt:
                    mine = life.node == self.life.node
                    learnt[life] = own if mine else await asyncio.to_thread(self._fence, life)
            known = [learnt[life] for life in lives]
            if None in known:
                continue
            done = frozenset[int]().union(*(each for each in known if each is not None))
            await self._ask(self._frontier.recover, [source], done)
            settled.add(source)
        return frozenset(settled)

    def _fence(self, life: Life) -> frozenset[int] | None:
        """What the server has of a life that was given up; None while some of it may be lost."""
        channel = Channel(self._spec.server, self._spec.exchange)
        try:
            body = {"node": life.node, "life": life.mark}
            answer = channel.action("fence", body)
        except UnavailableError:
            return None
        finally:
            channel.close()
        if answer["durable"] < answer["sequence"]:
            return None
        return decode_place(answer["place"])

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
                    f"{self.life.node}: documents of {name}, which another node shall read, are "
                    "not acknowledged; it starts anew."
                )
        if free:
            # What was fetched and never handed on.
            await self._ask(self._frontier.recover, sorted(free))
        return frozenset(free)
