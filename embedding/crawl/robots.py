"""robots.txt as RFC 9309 says."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from protego import Protego

from embedding.crawl.addresses import origin_of
from embedding.kernel.errors import FetchError

MAX_BYTES = 500 * 1024
"""RFC 9309 section 2.5: at least this much of a robots.txt is read; the rest is ignored."""
_RETRY = 300.0
"""Seconds for which an unreachable robots.txt forbids everything before it is asked again."""
_MOST_ORIGINS = 10_000
_LONGEST_DELAY = 86400.0
_RULES = ("allow", "disallow", "crawl-delay", "request-rate")
_SPELLINGS = {
    "useragent": "user-agent",
    "site-map": "sitemap",
    **dict.fromkeys(("dissallow", "dissalow", "disalow", "diasllow", "disallaw"), "disallow"),
}
"""How people write them; Google takes the same for meant."""
_SLASHES = re.compile(r"(?<!:)//+")
_Origin = tuple[str, str | None]


@dataclass(frozen=True)
class RobotsRule:
    """Whether an address may be fetched, and the seconds to keep between two requests.

    `retry_after` is set when robots.txt could not be read: all is forbidden until then.
    `trouble` says why.
    """

    allowed: bool
    crawl_delay: float
    retry_after: float | None = None
    trouble: str = ""


@dataclass(frozen=True)
class _Rules:
    parsed: Protego | None
    expires: float
    trouble: str = ""
    refused: FetchError | None = None


class Robots:
    """Asks each origin once a day. `get` fetches a robots.txt: (status, text) or FetchError.

    It is fetched by the same proxy as the page, by which alone the origin may be reachable.
    """

    def __init__(
        self, agent: str, ttl: float, get: Callable[[str, str | None], Awaitable[tuple[int, str]]]
    ) -> None:
        self._agent = agent
        self._ttl = ttl
        self._get = get
        self._rules: dict[_Origin, _Rules] = {}
        self._asking: dict[_Origin, asyncio.Lock] = {}

    async def verdict(self, url: str, proxy: str | None = None) -> RobotsRule:
        """What robots.txt says of `url`; a server that fails forbids all for some minutes.

        Raises FetchError (`private_address`) when reading it would lead to a private address.
        """
        rules = await self._of((origin_of(url), proxy))
        if rules.refused is not None:
            raise rules.refused
        if rules.parsed is None:
            again = max(1.0, rules.expires - time.monotonic())
            return RobotsRule(False, 0.0, retry_after=again, trouble=rules.trouble)
        delay = _finite(rules.parsed.crawl_delay(self._agent))
        rate = rules.parsed.request_rate(self._agent)
        if rate is not None and rate.requests:
            delay = max(delay, _finite(rate.seconds / rate.requests))
        # Many servers take `//private` for `/private`.
        forms = {url, _SLASHES.sub("/", url)}
        return RobotsRule(all(rules.parsed.can_fetch(form, self._agent) for form in forms), delay)

    async def sitemaps(self, url: str, proxy: str | None = None) -> tuple[str, ...]:
        """Sitemaps that the robots.txt of the origin of `url` names."""
        rules = await self._of((origin_of(url), proxy))
        return () if rules.parsed is None else tuple(rules.parsed.sitemaps)

    async def _of(self, origin: _Origin) -> _Rules:
        known = self._rules.get(origin)
        if known is not None and known.expires > time.monotonic():
            return known
        async with self._asking.setdefault(origin, asyncio.Lock()):
            known = self._rules.get(origin)
            if known is None or known.expires <= time.monotonic():
                while len(self._rules) >= _MOST_ORIGINS:
                    self._asking.pop(oldest := next(iter(self._rules)), None)
                    self._rules.pop(oldest)
                self._rules[origin] = known = await self._ask(*origin)
            return known

    async def _ask(self, origin: str, proxy: str | None) -> _Rules:
        """RFC 9309 section 2.3.1: 4xx allows all, 5xx and no answer forbid all.

        429 is taken for a server that has too much to do, as 5xx.
        """
        now = time.monotonic()
        try:
            status, text = await self._get(f"{origin}/robots.txt", proxy)
        except FetchError as error:
            refused = error if error.reason == "private_address" else None
            return _Rules(None, now + _RETRY, error.reason, refused)
        if status >= 500 or status == 429:
            return _Rules(None, now + _RETRY, f"status {status}")
        if status >= 400:
            text = ""
        agent = self._agent
        rules = await asyncio.to_thread(lambda: Protego.parse(own_rules(text[:MAX_BYTES], agent)))
        return _Rules(rules, now + self._ttl)


def own_rules(text: str, agent: str) -> str:
    """A robots.txt with the rules of one crawler alone, for all; RFC 9309, section 2.2.

    The groups that name `agent` are joined, else those of `*`. Names are compared as a whole: the
    product token at the beginning of what is written, so `Yeoron/0.1 (research)` is `yeoron` and
    `yeo` is not. Lines of other kinds, between names too, belong to nobody and end no group.
    """
    own: list[str] | None = None
    everybody: list[str] = []
    others: list[str] = []
    names: list[str] = []
    open_group = True
    for line in re.split("[\r\n]", text.lstrip("\ufeff")):
        plain = line.partition("#")[0].strip()
        name, colon, value = plain.partition(":")
        words = plain.split()
        if not colon and len(words) == 2:  # a field and its value without a colon
            name, value = words
        field = re.sub(r"[\s_]+", "-", name.strip().lower())
        field, value = _SPELLINGS.get(field, field), value.strip()
        if field == "user-agent":
            names = [*(names if open_group else ()), _name(value)]
            open_group = True
            if agent.lower() in names:
                own = own or []
        elif field == "sitemap":
            others.append(f"Sitemap: {value}")
        elif field in _RULES:
            # Only rules end the names of a group; a delay may stand between them.
            open_group = open_group and field not in ("allow", "disallow")
            if own is not None and agent.lower() in names:
                own.append(f"{field}: {value}")
            if "*" in names:
                everybody.append(f"{field}: {value}")
    return "\n".join(["User-agent: *", *(everybody if own is None else own), *others, ""])


def _name(value: str) -> str:
    """The product token: letters, `_` and `-` (RFC 9309, section 2.2.1); `*` for everybody."""
    if re.match(r"\*(\s|$)", value):
        return "*"
    token = re.match(r"[A-Za-z_-]+", value)
    return token[0].lower() if token else ""


def _finite(seconds: float | None) -> float:
    """A delay that makes sense: 0 for none, at most a day."""
    value = float(seconds or 0.0)
    return min(max(value, 0.0), _LONGEST_DELAY) if math.isfinite(value) else _LONGEST_DELAY
