"""A look at each source before it is scheduled: reachable, allowed, what its first text is like.

Title, time and length of one text are shown, and how many pieces of personal data would be masked
in it; the text itself is never shown and nothing is kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from embedding.crawl.addresses import canonical, item_key
from embedding.crawl.config import CrawlConfig
from embedding.crawl.frontier import Frontier
from embedding.crawl.origins import DateOrigin, Publication, doubtful
from embedding.crawl.runner import SourceWeb
from embedding.crawl.services import Services
from embedding.kernel.config import validate
from embedding.kernel.errors import ConfigError, FetchError, YeoronError
from embedding.settings import Settings
from embedding.sources.base import Adapter, Inline, ListedItem, Reference, event_time
from embedding.sources.config import SourceConfig, load_sources
from embedding.sources.kinds import make_adapter
from embedding.text.mask import mask
from embedding.text.normalise import normalise
from embedding.text.pipeline import is_korean

_TRIED = 3
"""Listed pages that are tried until one holds text."""
_TITLE = 80


@dataclass
class SourceCheck:
    """What was found out about one source; JSON-safe.

    robots       allowed, forbidden, unreadable, or "" where no web is involved
    crawl_delay  seconds that robots.txt asks for between two requests
    listed       texts and links that a first poll names
    address      of the page that was read; key: by which it is known, `dated_by`: by what its
                 date is (`DateOrigin`), author: a pseudonym, language: `ko` or `other`
    masked       pieces of personal data in the first text, by kind
    reasons      under which it would be counted (`reasons.py`)
    fault        named reason of what went wrong, "" when all is well
    """

    name: str
    kind: str
    url: str
    reachable: bool = False
    robots: str = ""
    crawl_delay: float = 0.0
    listed: int = 0
    address: str = ""
    key: str = ""
    title: str = ""
    published_at: str | None = None
    dated_by: DateOrigin = "none"
    author: str | None = None
    characters: int = 0
    language: str = ""
    masked: dict[str, int] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    fault: str = ""
    sentence: str = ""

    @property
    def ok(self) -> bool:
        return not self.fault

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ok": self.ok}


def contact(user_agent: str) -> bool:
    """Whether a user agent says how to reach whoever crawls."""
    return "@" in user_agent or "http://" in user_agent or "https://" in user_agent


def check_sources(
    settings: Settings, file: Path | None, names: Sequence[str] = (), *, seconds: float = 60.0
) -> list[SourceCheck]:
    """Check each source of a file (or those named), `seconds` each at most.

    Raises ConfigError for a bad file and for a name that is not in it.
    """
    path = file or settings.paths.sources
    sources = load_sources(path)
    unknown = sorted(set(names) - {source.name for source in sources})
    if unknown:
        raise ConfigError(
            f"--only {unknown[0]}: not in {path}; its sources are "
            f"{', '.join(source.name for source in sources)}."
        )
    chosen = [source for source in sources if not names or source.name in names]
    return asyncio.run(_check_all(chosen, settings, seconds))


def check_page(settings: Settings, url: str, *, seconds: float = 60.0) -> SourceCheck:
    """What would be read of one page, as the source of its host in `paths.sources` reads it."""
    host = urlsplit(url).hostname
    file = settings.paths.sources
    known = load_sources(file) if file.exists() else ()
    ours = (
        source for source in known if source.on_the_web and urlsplit(source.url).hostname == host
    )
    source = next(ours, None)
    if source is None:
        source = validate(SourceConfig, {"name": "page", "kind": "page", "url": url}, url)
    return asyncio.run(_check_all([source], settings, seconds, url))[0]


async def _check_all(
    sources: Sequence[SourceConfig], settings: Settings, seconds: float, page: str | None = None
) -> list[SourceCheck]:
    config = settings.crawl.model_copy(update={"replay_clock_url": None})
    frontier = Frontier("sqlite://")
    services = Services(config, frontier)
    try:
        looks = [_Look(source, services, config, seconds, page) for source in sources]
        return list(await asyncio.gather(*(look.check() for look in looks)))
    finally:
        await services.close()
        frontier.close()


class _Look:
    """One source's check, or that of one `page` of it."""

    def __init__(
        self,
        source: SourceConfig,
        services: Services,
        config: CrawlConfig,
        seconds: float,
        page: str | None,
    ) -> None:
        self.source = source.model_copy(update={"pages": 1})
        address = page or source.url or str(source.path)
        self.result = SourceCheck(source.name, source.kind, address)
        self._page = page
        self._services = services
        self._config = config
        self._seconds = seconds
        self._web = SourceWeb(self.source, services)

    async def check(self) -> SourceCheck:
        try:
            async with asyncio.timeout(self._seconds):
                await self._look()
        except FetchError as error:
            self._fault(error.reason, str(error))
        except YeoronError as error:
            self._fault("config", str(error))
        except TimeoutError:
            self._fault("timeout", f"{self.result.url}: no text within {self._seconds:g} s.")
        except Exception as error:  # noqa: BLE001  (one source must not end the others' checks)
            self._fault("internal", f"{self.result.url}: {type(error).__name__} while reading.")
        return self.result

    def _fault(self, reason: str, sentence: str) -> None:
        self.result.fault, self.result.sentence = reason, sentence
        self.result.reasons = [reason]

    async def _look(self) -> None:
        if self.source.on_the_web:
            await self._ask_robots()
        items = await self._list()
        self.result.reachable = True
        self.result.listed = len(items)
        if not items:
            self._fault("empty", f"{self.result.url}: the listing names nothing.")
            return
        failure: FetchError | None = None
        for item in items[:_TRIED]:
            try:
                await self._read(item)
            except FetchError as error:
                failure = error
            else:
                return
        if failure is not None:
            raise failure

    async def _ask_robots(self) -> None:
        verdict = await self._services.fetcher.robots.verdict(
            self.result.url, self.source.proxy_address
        )
        self.result.crawl_delay = verdict.crawl_delay
        unread = "unreadable" if verdict.trouble else "forbidden"
        self.result.robots = "allowed" if verdict.allowed else unread

    async def _list(self) -> list[ListedItem]:
        if self._page is not None:
            return [Reference(self._page)]
        adapter: Adapter = make_adapter(self.source, self._services.pseudonyms)
        items: list[ListedItem] = []
        await self._web.begin()
        async for item in adapter.poll(self._web):
            items.append(item)
            if self.source.path is not None and len(items) >= _TRIED:
                break
        return items

    async def _read(self, item: ListedItem) -> None:
        known = Publication(item.published_at, "listing")
        if isinstance(item, Inline):
            self.result.address, self.result.key = item.key, item_key(item.key, self.source.url)
            self._show(item.title, item.text, item.author, known)
            return
        self.result.address, self.result.key = item.url, canonical(item.url)
        answer, page = await self._services.extractor.follow(
            self._services.fetcher.fetch,
            self._web.request(item.url),
            self.source.timezone,
            self._config.min_chars,
            item.authors,
            event_time(self._web),
        )
        self.result.address = answer.url
        if item.is_lastmod:
            known = Publication(item.published_at, "lastmod")
        author = self._services.pseudonyms.of(self.source.name, next(iter(page.authors), ""))
        own = Publication(page.published_at, page.dated_by)
        self._show(page.title or item.title, page.text, author, own, known)

    def _show(self, title: str, text: str, author: str | None, *dates: Publication) -> None:
        check = self.result
        hidden = mask(normalise(f"{title}\n{text}"))
        check.masked = dict(hidden.counts)
        # A title is shown as the tokenizer would see it: it may hold personal data too.
        check.title = mask(normalise(title)).text[:_TITLE]
        publication = self._services.publication(self.source, datetime.now(UTC), *dates)
        when = publication.at
        check.published_at = when.isoformat(timespec="seconds") if when else None
        check.dated_by, check.author = publication.origin, author
        check.characters = len(text)
        check.language = "ko" if is_korean(text, self.source.language) else "other"
        check.reasons = ["undated"] if when is None else list(doubtful({publication.origin: 1}))
