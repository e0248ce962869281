"""Finding sources: from seeds to feeds, sitemaps and listings on allowed hosts, within a budget.

Every request passes the fetcher, so robots.txt, rates and address checks hold as everywhere. What
is found is tried with the adapter that would read it, and some of its documents are read: their
words are counted and their MinHash is kept until the search is over, their text is not.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
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
from embedding.crawl.shingles import similar
from embedding.kernel.clock import EventClock
from embedding.kernel.errors import FetchError, InputError, YeoronError
from embedding.sources.base import FetchedPage, Found, ListedItem, ListingPage, Reference
from embedding.sources.config import SourceConfig
from embedding.sources.kinds import SOURCES, make_adapter
from embedding.sources.links import LINKS, linked

# How much a source that was found would bring: pure figures and their order.
#
#     tokens a request = new documents × tokens a document / (requests of the listing + documents)
#
# A document is new unless a source that is read already, or a better candidate, lists the same
# address or nearly the same text. How different the words are is the Jensen-Shannon divergence of
# their distributions in bits (J. Lin, "Divergence measures based on the Shannon entropy", 1991): 0
# for the same words in the same shares, 1 for no word in common.
_SLOWEST = 1e-6


@dataclass(frozen=True)
class SampledDocument:
    """One document of a listing that was read: how many tokens, which words, MinHash of its text.

    No text is kept.
    """

    url: str
    words: Mapping[str, int]
    signature: bytes = b""

    @property
    def tokens(self) -> int:
        return sum(self.words.values())


@dataclass(frozen=True)
class Listed:
    """What reading a listing gave.

    urls      canonical addresses in it
    times     publication times of those that have one
    titles    (title, address, time) of the first ones
    requests  requests that listing them took
    """

    kind: str
    url: str
    found_on: str
    urls: tuple[str, ...]
    times: tuple[datetime, ...] = ()
    titles: tuple[tuple[str, str, str | None], ...] = ()
    requests: int = 1
    samples: tuple[SampledDocument, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Candidate:
    """A proposal, JSON-safe by `to_dict`.

    documents_per_day  None where the listing has no times
    new                share of its documents that nothing better brings
    difference         Jensen-Shannon divergence (bits) from the words read so far; None: none were
    tokens_per_request new tokens that one request brings
    score              tokens_per_request × difference
    """

    name: str
    kind: str
    url: str
    why: str
    found_on: str
    listed: int
    documents_per_day: float | None
    tokens_per_document: float
    new: float
    difference: float | None
    tokens_per_request: float
    score: float
    titles: tuple[tuple[str, str, str | None], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form."""
        titles = [dict(zip(("title", "url", "time"), each, strict=True)) for each in self.titles]
        numbers = {
            key: None if value is None else round(value, 4)
            for key, value in vars(self).items()
            if isinstance(value, float) or value is None
        }
        return {**vars(self), **numbers, "titles": titles, "settings": dict(self.settings)}


@dataclass(frozen=True)
class Known:
    """What is read already: addresses, and samples of the texts."""

    urls: frozenset[str] = frozenset()
    samples: tuple[SampledDocument, ...] = ()

    def with_(self, listed: Listed) -> Known:
        return replace(
            self, urls=self.urls | frozenset(listed.urls), samples=self.samples + listed.samples
        )


def rank(
    found: Sequence[Listed], known: Known, *, least_new: float = 0.2, threshold: float = 0.85
) -> tuple[list[Candidate], list[tuple[Listed, str]]]:
    """The candidates, best first, and those that bring nothing, each with a sentence.

    The best is chosen first and counts as read when the others are judged: of a feed, an Atom feed
    and a sitemap of the same articles one is proposed.
    """
    left, chosen, dropped = list(found), [], []
    while left:
        judged = [(judge(each, known, threshold), each) for each in left]
        best, listed = max(judged, key=lambda pair: (pair[0].score, -len(pair[1].url)))
        left.remove(listed)
        if best.new < least_new:
            dropped.append((listed, f"only {best.new:.0%} of what it lists is new"))
        elif not best.tokens_per_request:
            dropped.append((listed, "no text was found behind what it lists"))
        else:
            chosen.append(best)
            known = known.with_(listed)
    return chosen, dropped


def judge(listed: Listed, known: Known, threshold: float) -> Candidate:
    """The figures of one listing beside what is known."""
    urls, samples = set(listed.urls), listed.samples
    other = sum(url not in known.urls for url in urls) / len(urls) if urls else 0.0
    fresh = [each for each in samples if each.url not in known.urls]
    copies = sum(
        any(similar(each.signature, one.signature) >= threshold for one in known.samples)
        for each in fresh
    )
    new = other * (1.0 - copies / len(fresh)) if fresh else other
    tokens = sum(each.tokens for each in samples) / len(samples) if samples else 0.0
    gain = new * len(urls) * tokens / max(1, listed.requests + len(urls))
    difference = None
    if known.samples and samples:
        difference = divergence(_pooled(samples), _pooled(known.samples))
    rate = per_day(listed.times)
    return Candidate(
        name=name_of(listed.url),
        kind=listed.kind,
        url=listed.url,
        why=_why(listed, rate, tokens, new, difference),
        found_on=listed.found_on,
        listed=len(urls),
        documents_per_day=rate,
        tokens_per_document=tokens,
        new=new,
        difference=difference,
        tokens_per_request=gain,
        score=gain * (1.0 if difference is None else difference),
        titles=listed.titles,
        settings=listed.settings,
    )


def divergence(left: Mapping[str, int], right: Mapping[str, int]) -> float:
    """Jensen-Shannon divergence of two word counts in bits, 0 to 1."""
    totals = sum(left.values()), sum(right.values())
    if not all(totals):
        return 0.0
    total = 0.0
    for word in left.keys() | right.keys():
        p, q = left.get(word, 0) / totals[0], right.get(word, 0) / totals[1]
        middle = (p + q) / 2
        total += sum(each / 2 * math.log2(each / middle) for each in (p, q) if each)
    return min(1.0, max(0.0, total))


def per_day(times: Sequence[datetime]) -> float | None:
    """Documents a day, from the times of a listing; None with fewer than two."""
    seconds = sorted(when.timestamp() for when in times)
    if len(seconds) < 2:
        return None
    days = max((seconds[-1] - seconds[0]) / 86_400.0, _SLOWEST)
    return (len(seconds) - 1) / days


def name_of(url: str, taken: Set[str] = frozenset()) -> str:
    """A short unique name of a source: host and path."""
    bare = url.partition("://")[2].partition("?")[0].removeprefix("www.")
    kept = "".join(c if c.isascii() and (c.isalnum() or c in ".-_") else "-" for c in bare)
    plain = "-".join(part for part in kept.split("-") if part)[:70].strip(".-") or "source"
    name, n = plain, 2
    while name in taken:
        name, n = f"{plain}-{n}", n + 1
    return name


def named(found: Sequence[Candidate], taken: Collection[str]) -> list[Candidate]:
    """The candidates with names that are unique among themselves and among `taken`."""
    names, result = set(taken), []
    for each in found:
        name = name_of(each.url, names)
        names.add(name)
        result.append(replace(each, name=name))
    return result


def _pooled(samples: Sequence[SampledDocument]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in samples:
        total.update(each.words)
    return total


def _why(
    listed: Listed, rate: float | None, tokens: float, new: float, difference: float | None
) -> str:
    """One sentence for a person who decides."""
    parts = [f"{SOURCES.traits(listed.kind).noun} of {len(set(listed.urls))} documents"]
    if rate is not None:
        parts.append(f"about {rate:,.1f} a day")
    parts.append(f"{tokens:,.0f} tokens each")
    parts.append(f"{new:.0%} new")
    if difference is not None:
        parts.append(f"{difference:.2f} bits from the words read so far")
    return ", ".join(parts)


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
    for node in CSSSelector(f"link, {LINKS}")(root):
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
    for at, address in enumerate(addresses):
        form = _form(address) or address
        seen[form] += 1
        order.append((seen[form], urlsplit(address).path.count("/"), at, address))
    return [address for *_, address in sorted(order)]


def _form(address: str) -> str | None:
    """The address's path as an expression with ids left open; None when it has none."""
    parts = urlsplit(address)
    pieces = [part for part in parts.path.split("/") if part]
    if not pieces or not any(_ID.fullmatch(part.partition(".")[0]) for part in pieces):
        return _query_form(parts.path, parts.query)
    opened = [r"[^/?#]+" if _ID.fullmatch(p.partition(".")[0]) else re.escape(p) for p in pieces]
    return "/" + "/".join(opened) + r"(?:[?#]|$)"


def _query_form(path: str, query: str) -> str | None:
    """The form of an address whose query names the document: `view.php?id=12`."""
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if value and _ID.fullmatch(value) and name.lower() not in ("page", "p", "offset"):
            return re.escape(path) + r"\?(?:[^#]*&)?" + re.escape(name) + "="
    return None


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
        """JSON-safe form."""
        candidates = [each.to_dict() for each in self.candidates]
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
            skipped = {canonical(url) for url in (*(one.url for one in known), *rejected)}
            places = await self._walk(seeds)
            listed = [
                each
                for kind, url, where, settings in places
                if canonical(url) not in skipped
                if (each := await self._try(kind, url, where, settings)) is not None
            ]
        finally:
            await self._fetcher.close()
            await self._extractor.close()
        chosen, dropped = rank(listed, read, least_new=self._config.least_new)
        self._found.candidates = named(chosen, [one.name for one in known])
        self._found.dropped |= {one.url: why for one, why in dropped}
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
            for each in filter(self.allowed, urls):
                yield kind, each, url, {}
        if links.articles is not None:
            settings = {"links": links.articles}
            if links.following is not None:
                settings["next"] = links.following
            yield "page", url, url, settings

    async def _walk(self, seeds: Sequence[str]) -> list[_LinkTarget]:
        """Breadth first over allowed pages: (kind, address, found on, settings) of listings."""
        places: dict[str, _LinkTarget] = {}
        queue = deque((canonical(seed), 0) for seed in seeds)
        seen = {url for url, _ in queue}
        for origin in sorted({f"{urlsplit(s).scheme}://{urlsplit(s).netloc}" for s in seeds}):
            for url in await self._sitemaps(origin):
                if self.allowed(url):
                    places[url] = ("sitemap", url, f"{origin}/robots.txt", {})
        # A listing that was found is of no use when nothing is left to try it with.
        kept = self._config.requests // 2
        while queue and self._found.pages < self._config.pages and self._left > kept:
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
            for place in self._named(url, links):
                places.setdefault(place[1], place)
            if depth < self._config.depth:
                fresh = [each for each in likely(links.others) if each not in seen]
                for each in filter(self.allowed, fresh):
                    seen.add(each)
                    queue.append((each, depth + 1))
        # Feeds and sitemaps tell times and cost one request: they are tried before pages.
        order = {"feed": 0, "sitemap": 1, "page": 2}
        ordered = sorted(places.values(), key=lambda place: order[place[0]])
        return ordered[: self._config.candidates]

    async def _sitemaps(self, origin: str) -> Sequence[str]:
        """The sitemaps that robots.txt names, else the customary address."""
        try:
            named_ = await self._fetcher.robots.sitemaps(f"{origin}/")
        except FetchError as error:
            self._refuse(error)
            return ()
        return [urljoin(origin, url) for url in named_] or [f"{origin}/sitemap.xml"]

    async def _try(
        self, kind: str, url: str, where: str, settings: Mapping[str, Any]
    ) -> Listed | None:
        """Read a listing with the adapter that would read it, and some of its documents."""
        before = self._left
        try:
            source = SourceConfig.model_validate(
                {"name": "candidate", "kind": kind, "url": url, "pages": 3, **settings}
            )
            items = await self._list(source)
            requests = before - self._left
            references = [one for one in items if isinstance(one, Reference)]
            urls = list(dict.fromkeys(canonical(one.url) for one in references))
            allowed = [one for one in urls if self.allowed(one)]
            if not allowed:
                self._found.dropped[url] = "it lists nothing on an allowed host"
                return None
            samples = [await self._sample(one) for one in spread(allowed, self._config.samples)]
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
            times=tuple(one.published_at for one in references if one.published_at),
            titles=tuple(self._shown(one) for one in references[:3]),
            requests=max(1, requests),
            samples=tuple(one for one in samples if one is not None),
            settings=dict(settings),
        )

    async def _list(self, source: SourceConfig) -> list[ListedItem]:
        adapter = make_adapter(source, make_pseudonyms(self._crawl))
        return [item async for item in adapter.poll(_Probe(self._get, self._extractor))]

    async def _sample(self, url: str) -> SampledDocument | None:
        """Words and signature of one document; None when it cannot be read."""
        try:
            least = self._crawl.min_chars
            _, found = await self._extractor.follow(self._get, Request(url), "UTC", least)
        except FetchError as error:
            self._refuse(error)
            return None
        words = await asyncio.to_thread(self._words, found.text)
        return SampledDocument(url, dict(words), found.signature)

    def _shown(self, one: Reference) -> tuple[str, str, str | None]:
        when = None if one.published_at is None else one.published_at.isoformat()
        return self._title(one.title)[:120], one.url, when

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

    def __init__(self, get: Callable[[Request], Any], extractor: Extractor) -> None:
        self._get = get
        self._extractor = extractor

    async def get(self, url: str, *, accept: str = "*/*") -> FetchedPage | None:
        page: FetchedPage = await self._get(Request(url, accept=accept))
        return page

    async def listing(self, source: SourceConfig, page: FetchedPage) -> ListingPage:
        return await self._extractor.listing(source, page)

    async def render(
        self, url: str, *, enough: Callable[[Sequence[Found]], bool]
    ) -> Sequence[Found]:
        """No page is rendered in a search."""
        del enough
        raise FetchError("no_browser", f"{url}: pages are not rendered in a search.")

    def all_known(self, keys: Sequence[str]) -> bool:
        """One page after the other is read."""
        del keys
        return False

    def clock(self) -> EventClock:
        return EventClock()
