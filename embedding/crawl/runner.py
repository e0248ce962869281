"""One source at work: polling its listing, and fetching what the listing named."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from embedding.crawl.addresses import canonical, item_key, plain, same_page
from embedding.crawl.config import CrawlConfig
from embedding.crawl.extract import Extracted, digest
from embedding.crawl.extractor import shortened
from embedding.crawl.fetcher import Request, Response
from embedding.crawl.frontier import Claim, SourceStates
from embedding.crawl.origins import Publication
from embedding.crawl.services import Services
from embedding.crawl.shingles import signature
from embedding.crawl.staleness import SourceCounters, YieldWatch
from embedding.crawl.tables import Fetched
from embedding.database.patience import Patience
from embedding.kernel.clock import EventClock
from embedding.kernel.errors import FetchError
from embedding.kernel.records import Document
from embedding.sources.base import (
    Adapter,
    FetchedPage,
    Found,
    Inline,
    ListedItem,
    ListingPage,
    Reference,
    event_time,
)
from embedding.sources.config import SourceConfig


class SourceWeb:
    """`Web` for one source: its rate, proxy and cookies, and conditional requests for listings."""

    def __init__(self, source: SourceConfig, services: Services) -> None:
        self._source, self._services = source, services
        # Validators count only once all of a listing was taken, and never outlive the process:
        # a listing that is "not modified" must not hide what a crash lost.
        self._kept: dict[str, tuple[str | None, str | None]] = {}
        self._fresh: dict[str, tuple[str | None, str | None]] = {}
        self._relisting = False
        self._gap = False
        self.changed = False
        """Whether this poll read anything that was not the same as the time before."""
        self.requests = 0
        """Listing pages that this poll asked for; a rendered page counts as one."""

    async def begin(self) -> None:
        """A poll starts; until `commit` it counts as broken off, with a gap to read again."""
        self._fresh = {}
        self.changed = False
        self.requests = 0
        ask, relist = self._services.patience.ask, self._services.frontier.relist
        waiting = await ask(relist, self._source.name)
        self._relisting = self._gap or waiting > 0
        self._gap = True

    def commit(self) -> None:
        """The poll was taken whole: unchanged listings need not be read again."""
        self._kept.update(self._fresh)
        self._gap = False

    def request(self, url: str) -> Request:
        return Request(
            url,
            rate=self._source.rate,
            proxy=self._source.proxy_address,
            cookies=self._source.cookie_values,
            source=self._source.url,
        )

    async def get(self, url: str, *, accept: str = "*/*") -> FetchedPage | None:
        self.requests += 1
        etag, modified = (None, None) if self._relisting else self._kept.get(url, (None, None))
        answer = await self._services.fetcher.fetch(
            replace(self.request(url), accept=accept, etag=etag, last_modified=modified)
        )
        if answer.status == 304:
            return None
        self.changed = True
        headers = answer.headers
        self._fresh[url] = (headers.get("etag"), headers.get("last-modified"))
        return answer.page(event_time(self))

    async def listing(self, source: SourceConfig, page: FetchedPage) -> ListingPage:
        return await self._services.extractor.listing(source, page)

    async def render(
        self, url: str, *, enough: Callable[[Sequence[Found]], bool]
    ) -> Sequence[Found]:
        self.requests += 1
        try:
            browsers = self._services.browsers
            shown = await browsers.render(self._source, self.request(url), enough)
        except FetchError as error:
            # A board without a post is a listing that names nothing, as a feed without an entry is.
            if error.reason != "empty":
                raise
            shown = ()
        self.changed = True
        return shown

    def all_known(self, keys: Sequence[str]) -> bool:
        if self._relisting:
            return False
        pages = frozenset(canonical(key) for key in keys)
        items = frozenset(item_key(key, self._source.url) for key in keys)
        # Without the database nothing is known: then the listing is read to its end.
        known = partial(self._services.patience.attempt, self._services.frontier.known)
        # Pages and items of the source's own site have the same keys, which are asked for once.
        return any(known(list(names)) == len(names) for names in dict.fromkeys((pages, items)))

    def clock(self) -> EventClock:
        return self._services.replay.now


log = logging.getLogger(__name__)

_LEASE = 900.0
_PATIENCE = 20.0
"""Seconds that a page waits for its host's turn before pages of other hosts get its place."""
_RESTING = ("host_down", "host_busy")
"""What is the host's trouble and not the address's: such a try does not count."""
_BARREN = ("empty", "parse", "bad_encoding", "not_html", "http_4xx", "robots")
"""Failures of a page that, one after the other, say that the source has changed."""
_LOOK = 2.0
"""Seconds after which an idle source looks at the frontier again."""
_PATIENT_POLLS = 5
"""Polls after which inline texts that a crash lost, and no listing shows, are given up."""
_TAKEN = 32
"""Inline texts that are looked up at once."""

_SAVE = 60.0
"""Seconds between two savings, and so what a killed process forgets at most."""


class Watching:
    """The `YieldWatch` of one source, fed with this moment's time."""

    def __init__(
        self, source: SourceConfig, config: CrawlConfig, store: SourceStates, patience: Patience
    ) -> None:
        self.watch = YieldWatch(source.timezone, source.every, config)
        self._name = source.name
        self._store = store
        # Without the database the watch goes on; what is usual is learnt again after a restart.
        self._patience = patience
        self._saved = time.monotonic()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Go on with what was learnt before, and keep at the end what is learnt meanwhile."""
        saved = self._patience.attempt(self._store.load, self._name, time.time())
        if saved is not None:
            self.watch.restore(*saved)
        try:
            yield
        finally:
            self._save()

    def note(self, note: Callable[..., None], *what: object) -> None:
        """Tell the watch something (`watch.polled` and its like); log an alarm's begin and end."""
        before = self.watch.alarm
        note(time.time(), *what)
        alarm = self.watch.alarm
        if alarm is not None and alarm is not before:
            log.warning("source %s: alarm %s: %s.", self._name, alarm.event.value, alarm.sentence)
        elif before is not None and alarm is None:
            log.info("source %s: the alarm %s is over.", self._name, before.event.value)
        if time.monotonic() - self._saved >= _SAVE:
            self._save()

    def _save(self) -> None:
        self._saved = time.monotonic()
        self._patience.attempt(self._store.save, self._name, self.watch.state(), time.time())


class SourceRunner:
    """Runs one adapter. `poll_forever` and `fetch_forever` never raise but on cancellation."""

    def __init__(self, adapter: Adapter, services: Services) -> None:
        self.source = adapter.source
        self.counters = SourceCounters()
        self.in_hand = 1
        """Inline texts that were listed and not yet looked up in the frontier.

        One until the first poll is over: nobody knows yet that there is nothing, and whoever
        waits for the source must not take a slow start for silence.
        """
        self._watching = Watching(
            self.source, services.config, services.frontier.yields(), services.patience
        )
        self._adapter = adapter
        self._services = services
        self._frontier = services.frontier
        self._config = services.config
        self._web = SourceWeb(adapter.source, services)
        self._claims: deque[Claim] = deque()
        self._wake = asyncio.Event()
        self._look_at = 0.0
        self._started = time.time()
        self._polls = 0

    @property
    def watch(self) -> YieldWatch:
        return self._watching.watch

    @property
    def _patience(self) -> Patience:
        return self._services.patience

    async def poll_forever(self) -> None:
        """Poll at each turn. Without a browser a rendered source ends here."""
        poll_queue, name = self._services.poll_queue, self.source.name
        if self.source.undated == "fetched":
            await self._patience.ask(self._frontier.read_undated, name)
        with poll_queue.taking_part(self.source), self._watching.kept():
            while True:
                await poll_queue.wait(name)
                try:
                    changed = await self._poll()
                except FetchError as error:
                    if error.reason not in _RESTING:
                        self.counters.failed(error.reason, str(error))
                    self._watching.note(self.watch.poll_failed, error.reason)
                    if error.reason == "no_browser":
                        log.warning("source %s is skipped: %s", name, error)
                        return
                    poll_queue.failed(name, error.retry_after or 0.0, self._web.requests)
                except Exception as error:  # noqa: BLE001  (one source must never end the others)
                    self._internal(error)
                    poll_queue.failed(name, 0.0, self._web.requests)
                else:
                    poll_queue.polled(name, changed=changed, requests=self._web.requests)
                finally:
                    self.in_hand = 0

    async def _poll(self) -> bool:
        """One poll; whether it found anything new. What was read before a failure is kept."""
        items: list[ListedItem] = []
        await self._web.begin()
        failure: FetchError | None = None
        try:
            async for item in self._adapter.poll(self._web):
                items.append(item)  # noqa: PERF401  (a comprehension would lose all on failure)
        except FetchError as error:
            failure = error
        new = await self._discover([item for item in items if isinstance(item, Reference)])
        new += await self._take([item for item in items if isinstance(item, Inline)])
        if failure is not None:
            raise failure
        self._web.commit()
        self._polls += 1
        listed = len(items) if self._web.changed else None
        self._watching.note(self.watch.polled, new, listed)
        # A listing that names nothing may be out of order: it does not say that anything is gone.
        if (self._adapter.complete and items) or self._polls == _PATIENT_POLLS:
            await self._patience.ask(self._frontier.expire, self.source.name, self._started)
        return new > 0

    async def _discover(self, references: Sequence[Reference]) -> int:
        keyed = [(canonical(reference.url), reference) for reference in references]
        rows = [(key, it.published_at and it.published_at.timestamp()) for key, it in keyed]
        self._services.named.update({key: it.authors for key, it in keyed if it.authors})
        listed = {
            key: (address, reference.is_lastmod)
            for key, reference in keyed
            if (address := plain(reference.url)) != key or reference.is_lastmod
        }
        ask, now = self._patience.ask, time.time()
        discover = partial(self._frontier.discover, listed=listed, site=self.source.url)
        new = await ask(discover, self.source.name, rows, now) if rows else 0
        self.counters.listed += new
        if new:
            self._look_at = 0.0
            self._wake.set()
        return new

    async def _take(self, texts: Sequence[Inline]) -> int:
        """Hand inline texts on, oldest first; listings show the newest first."""
        self.in_hand = len(texts)
        last = datetime.max.replace(tzinfo=UTC)
        oldest_first = texts[::-1]
        ordered = sorted(oldest_first, key=lambda text: text.published_at or last)
        firsts = range(0, len(ordered), _TAKEN)
        return sum([await self._take_some(ordered[first : first + _TAKEN]) for first in firsts])

    async def _take_some(self, texts: Sequence[Inline]) -> int:
        """Take those that are not known yet; what is not handed on in the end is taken back."""
        most = self._config.max_chars
        texts = [replace(inline, text=shortened(inline.text, most)) for inline in texts]
        keys = [item_key(inline.key, self.source.url) for inline in texts]
        times = [inline.published_at and inline.published_at.timestamp() for inline in texts]
        rows = list(zip(keys, times, strict=True))
        left = set(
            await self._patience.ask(
                self._frontier.offer,
                self.source.name,
                rows,
                time.time(),
                again=partial(self._frontier.offer, again=True),
            )
        )
        fresh = [(key, inline) for key, inline in zip(keys, texts, strict=True) if key in left]
        self.counters.listed += len(fresh)
        self.in_hand -= len(texts)
        try:
            made = await asyncio.gather(*(self._make(key, inline) for key, inline in fresh))
            for (key, _), document in zip(fresh, made, strict=True):
                if document is not None:
                    await self._emit(*document)
                left.discard(key)
        finally:
            # With the database away they are taken back when the source is read again.
            for key in left:
                self._patience.attempt(self._frontier.reopen, key)
        return len(fresh)

    async def _make(self, key: str, inline: Inline) -> tuple[Document, Publication] | None:
        """The document of an inline text; None without a date, and for duplicates: short ones
        never are."""
        now, text = datetime.now(UTC), inline.text
        publication = await self._publication(key, now, Publication(inline.published_at, "listing"))
        if publication.at is None:
            return None
        if len(text) >= self._config.dedupe_min_chars:
            content, sketch = await asyncio.to_thread(lambda: (digest(text), signature(text)))
            row = Fetched(key, self.source.name, content_hash=content, sketch=sketch)
            reason = await self._services.arrivals.resolve(row)
            if reason is not None:
                self._duplicate(reason)
                return None
        made = self._document(key, now, publication.at, text, inline.title, inline.author)
        return replace(made, inline=True), publication

    async def fetch_forever(self) -> None:
        """Fetch claimed references, oldest first, `per_host` at once."""
        workers = [asyncio.create_task(self._work()) for _ in range(self._config.per_host)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            keys = [claim.key for claim in self._claims]
            self._patience.attempt(self._frontier.release, keys)
            self._claims.clear()

    async def _work(self) -> None:
        while True:
            try:
                claim = await self._claim()
                if claim is None:
                    await self._wait()
                else:
                    await self._process(claim)
            except Exception as error:  # noqa: BLE001  (one page must never end the source)
                self._internal(error)
                await asyncio.sleep(1.0)

    async def _claim(self) -> Claim | None:
        """The next address; where there was none, one worker looks for all once in a while."""
        now = time.time()
        if not self._claims and now >= self._look_at:
            wanted = 2 * self._config.per_host
            claim, name = self._frontier.claim, self.source.name
            self._claims.extend(await self._patience.ask(claim, name, wanted, now, _LEASE))
            self._look_at = 0.0 if self._claims else now + _LOOK
            if self._claims:
                self._wake.set()
        return self._claims.popleft() if self._claims else None

    async def _wait(self) -> None:
        """Until a poll found something, or a postponed address may be due."""
        self._wake.clear()
        # Not `asyncio.wait_for`: before Python 3.12 it drops a cancellation that comes as the wait
        # ends, and a worker that outlives its crawler takes addresses from the next one.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK):
                await self._wake.wait()

    async def _process(self, claim: Claim) -> None:
        try:
            answer, extracted = await self._services.extractor.follow(
                self._fetch,
                replace(self._web.request(claim.address), patience=_PATIENCE),
                self.source.timezone,
                self._config.min_chars,
                self._services.named.pop(claim.key, ()),
                event_time(self._web),
            )
        except FetchError as error:
            await self._failed(claim, error)
            if error.reason in _BARREN:
                self._watching.note(self.watch.page, error.reason)
            return
        self._watching.note(self.watch.page, None)
        await self._deliver(claim, answer, extracted)

    async def _fetch(self, request: Request) -> Response:
        answer = await self._services.fetcher.fetch(request)
        self.counters.fetched += 1
        return answer

    async def _deliver(self, claim: Claim, answer: Response, page: Extracted) -> None:
        """Hand a page on unless it is known under another address or with the same text."""
        now, source = datetime.now(UTC), self.source
        publication = await self._publication(
            claim.key, now, Publication(page.published_at, page.dated_by), claim.listed
        )
        if publication.at is None:
            return
        row = Fetched(
            claim.key,
            source.name,
            published=publication.at.timestamp(),
            etag=answer.headers.get("etag"),
            last_modified=answer.headers.get("last-modified"),
            content_hash=page.digest if len(page.text) >= self._config.dedupe_min_chars else None,
            sketch=page.signature,
            names=_names(claim.key, answer.url, page.canonical),
        )
        reason = await self._services.arrivals.resolve(row)
        if reason is not None:
            self._duplicate(reason)
            return
        who = self._services.pseudonyms.grouped(source.name, next(iter(page.authors), ""))
        when = publication.at
        document = self._document(claim.key, now, when, page.text, page.title, who)
        try:
            await self._emit(document, publication)
        except asyncio.CancelledError:
            self._patience.attempt(self._frontier.reopen, claim.key)
            raise

    def _document(
        self, key: str, now: datetime, when: datetime, text: str, title: str, author: str | None
    ) -> Document:
        name, language = self.source.name, self.source.language
        return Document(key, name, text, when, now, title, author, language)

    async def _publication(self, key: str, now: datetime, *candidates: Publication) -> Publication:
        """See `Services.publication`; what has no date is given up, and counted."""
        chosen = self._services.publication(self.source, now, *candidates)
        if chosen.at is None and any(candidate.at for candidate in candidates):
            # A busy crawler's replay clock may be behind: then what is played seems yet to come.
            await self._services.replay.first()
            chosen = self._services.publication(self.source, datetime.now(UTC), *candidates)
        if chosen.at is None:
            self.counters.failed("undated", f"{key}: no date that can be read.")
            await self._patience.ask(self._frontier.fail, key, time.time(), "undated")
        self._watching.note(self.watch.dated, chosen.at is not None)
        return chosen

    def _duplicate(self, reason: str) -> None:
        self.counters.duplicates += 1
        self.counters.errors[reason] += 1

    async def _failed(self, claim: Claim, error: FetchError) -> None:
        """Postpone or give up, and count it; a resting host is not the address's fault."""
        now = time.time()
        resting = error.reason in _RESTING
        if not resting:
            self.counters.failed(error.reason, str(error))
        if error.retry_after is None or (claim.attempts >= self._config.attempts and not resting):
            await self._patience.ask(self._frontier.fail, claim.key, now, error.reason)
            return
        wait = max(error.retry_after, self._config.backoff * 2.0 ** (claim.attempts - 1))
        postpone = partial(self._frontier.postpone, counts=not resting)
        await self._patience.ask(postpone, claim.key, now + wait, error.reason)

    async def _emit(self, document: Document, publication: Publication) -> None:
        await self._services.queue.put(document)
        self.counters.yielded(document.published_at.timestamp(), publication.origin)

    def _internal(self, error: Exception) -> None:
        """A defect of ours: counted and named by type; its message might hold text."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} in {last.name}:{last.lineno}"
        sentence = f"source {self.source.name}: {where}."
        log.error("%s", sentence)
        self.counters.failed("internal", sentence)


def _names(key: str, final: str, declared: str | None) -> frozenset[str]:
    """Other addresses of a page by its answer: the last one, and the canonical one it declares.

    A template may declare one for all its pages: it counts only as an edition of the same page.
    """
    editions = {declared} if declared and same_page(final, declared) else set()
    return frozenset({canonical(url) for url in {final, *editions}} - {key})
