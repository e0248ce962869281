"""What was read becomes known to the frontier: one transaction for all that comes within a moment.

A page that was read is looked up by its addresses and by its text, and then recorded as fetched or
as a duplicate. With a transaction a page this was half of the crawler's own processor time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from embedding.crawl.frontier import Frontier
from embedding.crawl.patience import Patience
from embedding.crawl.rows import Fetched
from embedding.crawl.shingles import NearDuplicates

_MOMENT = 0.05
"""Seconds that the first of a group waits for others."""


@dataclass(frozen=True)
class ReadDocument:
    """One text that was read.

    names    other addresses of the page: where it was found in the end, which one it declares
    sketch   its MinHash; like `row.content_hash` empty for a text too short to be a duplicate
    """

    row: Fetched
    names: frozenset[str] = frozenset()
    sketch: bytes = b""


_Waiting = tuple[ReadDocument, "asyncio.Future[str | None]"]


class ArrivalQueue:
    """Inside one event loop. Nobody hands a document on before `resolve` has returned."""

    def __init__(
        self, frontier: Frontier, near: NearDuplicates, patience: Patience | None = None
    ) -> None:
        self._frontier = frontier
        self._near = near
        self._patience = patience or Patience()
        self._waiting: list[_Waiting] = []
        self._resolving: set[asyncio.Task[None]] = set()

    async def resolve(self, arrival: ReadDocument) -> str | None:
        """None when it is recorded as fetched; else why it is done already: `duplicate` (its text
        or one of its addresses was read before) or `near_duplicate`.

        Waits while the database is away. Whoever is cancelled here has recorded nothing.
        """
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[str | None] = loop.create_future()
        if not self._waiting:
            loop.call_later(_MOMENT, self._begin)
        self._waiting.append((arrival, outcome))
        return await outcome

    async def close(self) -> None:
        """Resolve nothing more."""
        for task in self._resolving:
            task.cancel()
        await asyncio.gather(*self._resolving, return_exceptions=True)

    def _begin(self) -> None:
        group, self._waiting = self._waiting, []
        task = asyncio.get_running_loop().create_task(self._resolve_all(group))
        self._resolving.add(task)
        task.add_done_callback(self._resolving.discard)

    async def _resolve_all(self, group: Sequence[_Waiting]) -> None:
        try:
            judged = await self._patience.ask(self._judge_those_left, group)
        except Exception as error:  # noqa: BLE001  (it is the waiters' to handle)
            for _, future in group:
                if not future.done():
                    future.set_exception(error)
            return
        for (arrival, future), reason in judged:
            if not future.done():
                future.set_result(reason)
            elif reason is None:
                # Whoever waited was cancelled while the database was asked in a thread.
                self._patience.attempt(self._frontier.reopen, arrival.row.key)

    def _judge_those_left(self, group: Sequence[_Waiting]) -> list[tuple[_Waiting, str | None]]:
        """Judge what somebody still waits for: the database may have been away for long."""
        left = [one for one in group if not one[1].done()]
        return list(zip(left, self._judge([each for each, _ in left]), strict=True))

    def _judge(self, group: Sequence[ReadDocument]) -> list[str | None]:
        now = time.time()
        codes = {each.row.content_hash for each in group if each.row.content_hash}
        known = self._frontier.with_content(codes)
        reasons: list[str | None] = []
        for each in group:
            reason = self._reason(each, known, now)
            reasons.append(reason)
            if reason is None and each.row.content_hash:
                known.setdefault(each.row.content_hash, set()).add(each.row.key)
        pairs = list(zip(group, reasons, strict=True))
        self._frontier.record(
            [each.row for each, reason in pairs if reason is None],
            [(each.row, reason) for each, reason in pairs if reason is not None],
            now,
        )
        return reasons

    def _reason(self, one: ReadDocument, known: dict[str, set[str]], now: float) -> str | None:
        key, source, code = one.row.key, one.row.source, one.row.content_hash
        if key in self._frontier.again:
            return None  # it was no duplicate when it was read first
        if not all(self._frontier.alias(name, key, source, now) for name in one.names):
            return "duplicate"
        if code is None:
            return None
        if known.get(code, set()) - {key}:
            return "duplicate"
        return "near_duplicate" if self._near.seen(key, one.sketch) else None
