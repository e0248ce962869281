"""Text of dead processes that is read again, for how it uses words alone.

Only a process has text in its memory. When it dies before a window is compared, whoever reads its
sources from then on reads its documents again: fetched like others, but neither learnt nor counted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from embedding.crawl.frontier import Frontier
from embedding.database.patience import Patience

_Text = tuple[str, str]
"""Mark of the process, and the source."""


class Rereading:
    """Of one crawler process; used from its loop alone.

    inherited  of whose sources this process took over: it has to know their text, too
    """

    def __init__(self, frontier: Frontier, patience: Patience) -> None:
        self.inherited: set[_Text] = set()
        self._frontier = frontier
        self._patience = patience
        self._begun: set[_Text] = set()
        self._held: frozenset[str] = frozenset()
        self._gone: list[list[object]] = []
        self._read: set[str] = set()
        self._since: float | None = None
        self._waits = False

    def incarnation(self, key: str) -> str:
        """Mark of the dead process that learnt a document; "" of one that nobody did."""
        return self._frontier.again.get(key, "")

    async def put(self, keys: Collection[str]) -> None:
        """The gradient process has these documents, or will have them before the next report."""
        self._read.update(keys)
        for key in keys:
            self._frontier.again.pop(key, None)
        await self._patience.ask(self._frontier.was_read_again, list(keys), aside=True)

    async def follow(self, asked: Mapping[str, Any], reading: Collection[str]) -> None:
        """Begin to read what is asked for.

        asked  what the gradient process says: `lost`, text as [mark, source] that the server waits
               for; `since`, event time from which on it remembers text, null while unknown
        held   sources that this process reads
        """
        sources, since = frozenset(reading), asked.get("since")
        lost = {(str(mark), str(source)) for mark, source in asked.get("lost") or ()}
        wanted = {text for text in lost | self.inherited if text[1] in sources} - self._begun
        self._waits = bool(wanted)
        if since is not None:
            for mark, source in sorted(wanted):
                await self._ask(self._frontier.read_again, source, mark, float(since))
                self._begun.add((mark, source))
        gone = await self._ask(self._frontier.gone_again, sources) if self._frontier.again else []
        self._gone += [list(text) for text in gone]
        if gone or sources != self._held or (wanted and since is not None):
            self._held = sources
            again = await self._ask(self._frontier.reading_again, sources)
            self._frontier.again.clear()
            self._frontier.again.update(
                {key: mark for key, mark in again.items() if key not in self._read}
            )
        self._waits = bool(wanted) and since is None
        if since is not None and since != self._since:
            await self._ask(self._frontier.forget_uses, sources, float(since))
            self._since = since

    def report(self) -> dict[str, object]:
        """For the gradient process: documents `put` so far, how many are `left`, which text was
        `begun`, and what is `gone`, as [mark, source, event time]."""
        return {
            "put": len(self._read),
            "left": len(self._frontier.again) + self._waits,
            "begun": [list(text) for text in sorted(self._begun)],
            "gone": self._gone[-10_000:],
        }

    async def _ask(self, call: Any, *arguments: Any) -> Any:
        return await self._patience.ask(call, *arguments, aside=True)
