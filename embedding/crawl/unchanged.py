"""What a rendered page was made of: while all of it is the same, it is not rendered again.

A page shows what its document and the answers to its scripts say. Asking for these again costs a
few requests; showing the page costs most of a second of a processor. A page may change by other
means (a socket, the time of day), so it is rendered again in any case after `TRUSTED` visits and
half an hour. Much sooner, the browser of a source that is asked often would never be ended.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from embedding.crawl.fetcher import Fetcher, Request, Response
from embedding.kernel.errors import FetchError
from embedding.sources.base import Found

TRUSTED, TRUSTED_S = 20, 1800.0
"""Visits in a row, and seconds, that may go without rendering."""
_MOST = 8
"""Answers of a page that are asked for again; one that needs more is rendered."""


Answered = Mapping[str, tuple[Request, Response]]
"""By address: what was just asked for, and what came."""


@dataclass
class PageParts:
    """What one rendering took.

    document  digest of the document
    asked     each request of its scripts with the digest of the answer
    whole     whether all of it can be asked for again
    at        when it was (monotonic seconds)
    """

    document: bytes
    asked: list[tuple[Request, bytes]] = field(default_factory=list)
    whole: bool = True
    found: Sequence[Found] = ()
    trusted: int = 0
    at: float = field(default_factory=time.monotonic)

    def add(self, request: Request, answer: Response | None) -> None:
        """A request of the page and its answer, None where it had none."""
        self.whole = self.whole and request.method == "GET" and len(self.asked) < _MOST
        if self.whole:
            self.asked.append((request, digest(answer)))


def digest(answer: Response | None) -> bytes:
    """That of its status and body; empty where a request was refused or failed."""
    if answer is None:
        return b""
    return hashlib.blake2b(b"%d " % answer.status + answer.body, digest_size=16).digest()


class UnchangedPages:
    """The last rendering of each page, by source and address."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._last: dict[tuple[str, str], PageParts] = {}

    def keep(self, source: str, url: str, parts: PageParts, found: Sequence[Found]) -> None:
        """Remember a rendering that can be compared, in place of the one before."""
        parts.found = found
        if parts.whole:
            self._last[source, url] = parts
        else:
            self._last.pop((source, url), None)

    async def look(
        self, source: str, url: str, document: bytes, enough: Callable[[Sequence[Found]], bool]
    ) -> tuple[Sequence[Found] | None, Answered]:
        """What the page showed if it is as it was, and the answers that came of asking.

        None where it has to be rendered; the answers are for that.
        """
        last = self._last.get((source, url))
        if last is None or last.document != document or not enough(last.found):
            return None, {}
        if last.trusted >= TRUSTED and time.monotonic() - last.at >= TRUSTED_S:
            return None, {}
        answers: dict[str, tuple[Request, Response]] = {}
        for request, known in last.asked:
            answer = None
            with suppress(FetchError):
                answer = await self._fetcher.fetch(request)
                answers[request.url] = (request, answer)
            if digest(answer) != known:
                return None, answers
        last.trusted += 1
        return last.found, answers
