"""Scripts and style sheets that rendered pages share, kept in memory for a while.

A board's pages all load the same script: fetching it once leaves the host's requests to what is
new. Freshness as in RFC 9111: `max-age` where given (4.2.1), else a short heuristic (4.2.2).
"""

from __future__ import annotations

import re
from collections import OrderedDict

from embedding.crawl.fetcher import Response

_HEURISTIC = 300.0
_LONGEST = 3600.0
_MAX_AGE = re.compile(r"max-age=\"?(\d{1,9})")
_NEVER = re.compile(r"no-store|no-cache|private")


class StaticFiles:
    """Least recently used first out, at most `limit` bytes. Times are seconds of one clock."""

    def __init__(self, limit: int = 16 * 1024 * 1024) -> None:
        self._limit = limit
        self._size = 0
        self._kept: OrderedDict[tuple[str, str], tuple[float, Response]] = OrderedDict()

    def get(self, source: str, url: str, now: float) -> Response | None:
        """What `source` may use for `url` without asking again."""
        key = (source, url)
        until, answer = self._kept.get(key, (0.0, None))
        if answer is None:
            return None
        if until <= now:
            self._drop(key)
            return None
        self._kept.move_to_end(key)
        return answer

    def put(self, source: str, url: str, answer: Response, now: float) -> None:
        """Keep an answer for as long as it says, unless it forbids it or is too large."""
        lasts = _lasts(answer.headers.get("cache-control", "").lower())
        if answer.status != 200 or lasts <= 0 or len(answer.body) > self._limit // 4:
            return
        self._drop((source, url))
        self._kept[source, url] = (now + lasts, answer)
        self._size += len(answer.body)
        while self._size > self._limit:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: tuple[str, str]) -> None:
        _, answer = self._kept.pop(key, (0.0, None))
        self._size -= len(answer.body) if answer else 0


def _lasts(control: str) -> float:
    """Seconds for which an answer with this Cache-Control is fresh."""
    if _NEVER.search(control):
        return 0.0
    stated = _MAX_AGE.search(control)
    return min(float(stated[1]), _LONGEST) if stated else _HEURISTIC
