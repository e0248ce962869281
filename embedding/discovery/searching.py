"""Finding sources: from seeds to feeds, sitemaps and listings on allowed hosts, within a budget.

Every request passes the fetcher, so robots.txt, rates and address checks hold as everywhere. What
is found is tried with the adapter that would read it, and some of its documents are read: their
words are counted and their MinHash is kept until the search is over, their text is not.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

from lxml import html
from lxml.cssselect import CSSSelector
from lxml.etree import ParserError

from embedding.crawl.addresses import canonical, host_of
from embedding.crawl.config import CrawlConfig, DiscoverConfig
from embedding.crawl.extractor import Extractor
from embedding.crawl.fetcher import Fetcher, Request
from embedding.crawl.services import make_pseudonyms
from embedding.discovery.ranking import Candidate, Known, Listed, SampledDocument, named, rank
from embedding.kernel.clock import EventClock
from embedding.kernel.errors import FetchError, InputError, YeoronError
from embedding.sources.base import FetchedPage, Found, ListingPage, Reference
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import SOURCES, make_adapter
from embedding.sources.links import LINK_SELECTOR, linked

_FEEDS = ("application/rss+xml", "application/atom+xml", "application/feed+json")
_FEED = re.compile(r"(?:^|[/._-])(?:rss|atom|feeds?)(?:[/._-]|$)", re.IGNORECASE)
_FILE = re.compile(
    r"\.(?:jpe?g|png|gif|webp|svg|ico|css|m?js|json|pdf|zip|gz|mp[34]|webm|woff2?|exe|docx?|xlsx?|hwp)$",
    re.IGNORECASE,
)
_ID = re.compile(r"[0-9a-f]{6,}|[0-9]{2,}|[a-z]*[0-9][a-z0-9-]{5,}", re.IGNORECASE)
_LEAST = 8
"""A page lists articles when it links to so many addresses of one form."""


@dataclass(frozen=True)
class PageLinks:
    """Addresses that a page names, absolute and canonical, in the order of the page.

    articles  regular expression of the addresses that it lists; None when it is no listing
    following CSS selector of the link to the next page of the listing, if any
    """

    feeds: tuple[str, ...]
    sitemaps: tuple[str, ...]
    others: tuple[str, ...]
    articles: str | None = None
    following: str | None = None


def read_links(text: str, url: str, encoding: str = "utf-8") -> PageLinks:
    """The links of an HTML page that was in this encoding; FetchError when it is none."""
    try:
        root = html.document_fromstring(text.encode(), parser=html.HTMLParser(encoding="utf-8"))
    except (ParserError, ValueError) as error:
        raise FetchError("parse", f"{url}: not an HTML page.") from error
    feeds, sitemaps, others = dict[str, None](), dict[str, None](), dict[str, None]()
    for node in CSSSelector(f"link, {LINK_SELECTOR}")(root):
        link = linked(node, url, encoding).partition("#")[0]
        address = canonical(link) if link and link != url else None
        if address is None:
            continue
        declared = node.tag == "link"
        path = urlsplit(address).path
        name = path.rpartition("/")[2].lower()
        if (declared and (node.get("type") or "").lower() in _FEEDS) or (
            not declared and _FEED.search(path)
        ):
            feeds[address] = None
        elif ("sitemap" in name and name.endswith((".xml", ".xml.gz"))) or (
            declared and node.get("rel") == "sitemap"
        ):
            sitemaps[address] = None
        elif not declared and "nofollow" not in (node.get("rel") or "") and not _FILE.search(path):
            others[address] = None
    following = "a[rel=next]" if root.xpath("//a[@rel='next'][@href]") else None
    return PageLinks(tuple(feeds), tuple(sitemaps), tuple(others), form_of(list(others)), following)


def form_of(addresses: Sequence[str]) -> str | None:
    """Regular expression of the largest group of addresses that differ by a number or id alone."""
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for address in addresses:
        form = _form(address)
        if form is not None:
            groups[form].add(address)
    if not groups:
        return None
    best = max(groups, key=lambda form: (len(groups[form]), form))
    return best if len(groups[best]) >= _LEAST else None


def spread(addresses: Sequence[str], n: int) -> list[str]:
    """`n` of the addresses, evenly from first to last."""
    if n >= len(addresses):
        return list(addresses)
    return [addresses[int(i * len(addresses) / n)] for i in range(n)]


def likely(addresses: Sequence[str]) -> list[str]:
    """The addresses that rather lead to listings: short paths first, few of one form."""
    seen: Counter[str] = Counter()
    order = []
    for position, address in enumerate(addresses):
        form = _form(address) or address
        seen[form] += 1
        order.append((seen[form], urlsplit(address).path.count("/"), position, address))
    return [address for *_, address in sorted(order)]


def _form(address: str) -> str | None:
    """The address's path as an expression with ids left open; None when it has none."""
    parts = urlsplit(address)
    pieces = [part for part in parts.path.split("/") if part]
    if not pieces or not any(_ID.fullmatch(part.partition(".")[0]) for part in pieces):
        for pair in parts.query.split("&"):  # a query that names the document: `view.php?id=12`
            name, _, value = pair.partition("=")
            if value and _ID.fullmatch(value) and name.lower() not in ("page", "p", "offset"):
                return re.escape(parts.path) + r"\?(?:[^#]*&)?" + re.escape(name) + "="
        return None
    opened = [r"[^/?#]+" if _ID.fullmatch(p.partition(".")[0]) else re.escape(p) for p in pieces]
    return "/" + "/".join(opened) + r"(?:[?#]|$)"


_LinkTarget = tuple[str, str, str, Mapping[str, Any]]
"""Kind, address, where it was found, settings of the source that would read it."""

_Words = Callable[[str], Mapping[str, int]]
"""Words of a text with their counts; the text may not be kept."""


@dataclass
class Discovery:
    """What a search found.

    dropped   address → why it is not proposed
    refused   failures by named reason
    """

    candidates: list[Candidate] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)
    requests: int = 0
    pages: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def to_dict(self) -> dict[str, Any]:
        candidates = [candidate.to_dict() for candidate in self.candidates]
        return {**vars(self), "candidates": candidates, "refused": dict(self.refused)}


class _Spent(Exception):  # noqa: N818 - the end of a budget is no error
    """The budget is used up."""


class Discoverer:
    """One search. `title` cleans what is shown of a title."""

    def __init__(
        self,
        crawl: CrawlConfig,
        config: DiscoverConfig,
        words: _Words,
        title: Callable[[str], str],
    ) -> None:
        self._config = config
        self._crawl = crawl
        self._words = words
        self._title = title
        self._fetcher = Fetcher(crawl)
        self._extractor = Extractor(crawl.extract_processes, crawl.extract_timeout, crawl.max_chars)
        self._found = Discovery()
        self._hosts: set[str] = set()
        self._left = config.requests

    async def search(
        self,
        seeds: Sequence[str],
        known: Sequence[SourceConfig] = (),
        rejected: Sequence[str] = (),
    ) -> Discovery:
        """Propose sources; InputError for a seed that is no web address.

        known     sources that are read already; rejected: addresses that nobody wants
        """
        for seed in seeds:
            if urlsplit(seed).scheme not in ("http", "https") or not host_of(seed):
                raise InputError(f"seed {seed!r}: an http or https address is accepted.")
        self._hosts = {host_of(seed) for seed in seeds}
        try:
            read = await self._known(known)
            skipped = set(map(canonical, (*(source.url for source in known), *rejected)))
            tried = [
                await self._try(kind, url, where, settings)
                for kind, url, where, settings in await self._walk(seeds)
                if canonical(url) not in skipped
            ]
        finally:
            await self._fetcher.close()
            await self._extractor.close()
        listed = [listing for listing in tried if listing is not None]
        chosen, dropped = rank(listed, read, least_new=self._config.least_new)
        self._found.candidates = named(chosen, [source.name for source in known])
        self._found.dropped |= {listing.url: why for listing, why in dropped}
        self._found.requests = self._config.requests - self._left
        return self._found

    async def _known(self, sources: Sequence[SourceConfig]) -> Known:
        """What is read already: listings and some documents of the sources on these hosts."""
        known = Known()
        for source in sources:
            if SOURCES.traits(source.kind).discoverable and self.allowed(source.url):
                settings = source.model_dump(exclude_defaults=True, exclude={"name", "kind", "url"})
                listed = await self._try(source.kind, source.url, "sources.toml", settings)
                known = known if listed is None else known.with_(listed)
        return known

    def _named(self, url: str, links: PageLinks) -> Iterator[_LinkTarget]:
        """The listings that a page names, or is itself."""
        for kind, urls in (("feed", links.feeds), ("sitemap", links.sitemaps)):
            for listing in filter(self.allowed, urls):
                yield kind, listing, url, {}
        if links.articles is not None:
            settings = {"links": links.articles}
            if links.following is not None:
                settings["next"] = links.following
            yield "page", url, url, settings

    async def _walk(self, seeds: Sequence[str]) -> list[_LinkTarget]:
        """Breadth first over allowed pages: (kind, address, found on, settings) of listings."""
        targets: dict[str, _LinkTarget] = {}
        queue = deque((canonical(seed), 0) for seed in seeds)
        seen = {url for url, _ in queue}
        for origin in sorted({f"{urlsplit(s).scheme}://{urlsplit(s).netloc}" for s in seeds}):
            try:  # the sitemaps that robots.txt names, else the customary address
                sitemaps = await self._fetcher.robots.sitemaps(f"{origin}/")
            except FetchError as error:
                self._refuse(error)
                continue
            urls = [urljoin(origin, url) for url in sitemaps] or [f"{origin}/sitemap.xml"]
            for url in filter(self.allowed, urls):
                targets[url] = ("sitemap", url, f"{origin}/robots.txt", {})
        # A listing that was found is of no use when nothing is left to try it with.
        reserve = self._config.requests // 2
        while queue and self._found.pages < self._config.pages and self._left > reserve:
            url, depth = queue.popleft()
            try:
                page = await self._get(Request(url))
                links = await asyncio.to_thread(read_links, page.text, page.url, page.encoding)
            except FetchError as error:
                self._refuse(error)
                continue
            except _Spent:
                break
            self._found.pages += 1
            for target in self._named(url, links):
                targets.setdefault(target[1], target)
            if depth < self._config.depth:
                fresh = [link for link in likely(links.others) if link not in seen]
                for link in filter(self.allowed, fresh):
                    seen.add(link)
                    queue.append((link, depth + 1))
        # Feeds and sitemaps tell times and cost one request: they are tried before pages.
        order = {"feed": 0, "sitemap": 1, "page": 2}
        ordered = sorted(targets.values(), key=lambda target: order[target[0]])
        return ordered[: self._config.candidates]

    async def _try(
        self, kind: str, url: str, where: str, settings: Mapping[str, Any]
    ) -> Listed | None:
        """Read a listing with the adapter that would read it, and some of its documents."""
        before = self._left
        try:
            source = SourceConfig.model_validate(
                {"name": "candidate", "kind": kind, "url": url, "pages": 3, **settings}
            )
            adapter = make_adapter(source, make_pseudonyms(self._crawl))
            items = [item async for item in adapter.poll(_Probe(self._get, self._extractor))]
            requests = before - self._left
            references = [item for item in items if isinstance(item, Reference)]
            urls = list(dict.fromkeys(canonical(reference.url) for reference in references))
            allowed = list(filter(self.allowed, urls))
            if not allowed:
                self._found.dropped[url] = "it lists nothing on an allowed host"
                return None
            samples = [await self._sample(it) for it in spread(allowed, self._config.samples)]
        except FetchError as error:
            self._refuse(error)
            self._found.dropped[url] = str(error)
            return None
        except (YeoronError, ValueError):
            self._found.dropped[url] = "no adapter can read it"
            return None
        except _Spent:
            self._found.dropped[url] = "the budget of requests was spent"
            return None
        return Listed(
            kind=kind,
            url=url,
            found_on=where,
            urls=tuple(urls),
            times=tuple(it.published_at for it in references if it.published_at),
            titles=tuple(map(self._shown, references[:3])),
            requests=max(1, requests),
            samples=tuple(sample for sample in samples if sample is not None),
            settings=dict(settings),
        )

    async def _sample(self, url: str) -> SampledDocument | None:
        """Words and signature of one document; None when it cannot be read."""
        try:
            least = self._crawl.min_chars
            _, page = await self._extractor.follow(self._get, Request(url), "UTC", least)
        except FetchError as error:
            self._refuse(error)
            return None
        words = await asyncio.to_thread(self._words, page.text)
        return SampledDocument(url, dict(words), page.signature)

    def _shown(self, reference: Reference) -> tuple[str, str, str | None]:
        when = reference.published_at.isoformat() if reference.published_at else None
        return self._title(reference.title)[:120], reference.url, when

    async def _get(self, request: Request) -> FetchedPage:
        """One request within the budget, on an allowed host."""
        if not self.allowed(request.url):
            raise FetchError("foreign_host", f"{request.url}: not on an allowed host.")
        if self._left < 1:
            raise _Spent
        self._left -= 1
        answer = await self._fetcher.fetch(request)
        if not self.allowed(answer.url):
            raise FetchError("foreign_host", f"{request.url}: leads to a host that is not allowed.")
        return answer.page(datetime.now(UTC))

    def allowed(self, url: str) -> bool:
        """Whether the address is on a seed's host or in a further domain."""
        host = host_of(url)
        bare = host.rpartition(":")[0]
        return host in self._hosts or any(
            bare == domain or bare.endswith("." + domain) for domain in self._config.domains
        )

    def _refuse(self, error: FetchError) -> None:
        self._found.refused[error.reason] += 1


class _Probe:
    """What an adapter sees of the web while it is tried: no browser, nothing known before."""

    def __init__(
        self, get: Callable[[Request], Awaitable[FetchedPage]], extractor: Extractor
    ) -> None:
        self._get = get
        self._extractor = extractor

    async def get(self, url: str, *, accept: str = "*/*") -> FetchedPage | None:
        return await self._get(Request(url, accept=accept))

    async def listing(self, source: SourceConfig, page: FetchedPage) -> ListingPage:
        return await self._extractor.listing(source, page)

    async def render(
        self, url: str, *, enough: Callable[[Sequence[Found]], bool]
    ) -> Sequence[Found]:
        del enough
        raise FetchError("no_browser", f"{url}: pages are not rendered in a search.")

    def all_known(self, keys: Sequence[str]) -> bool:
        del keys
        return False

    def clock(self) -> EventClock:
        return EventClock()
