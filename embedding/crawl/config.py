"""Settings of the crawler."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field, SecretStr

from embedding.crawl.lease import LeaseConfig
from embedding.kernel.config import Config, Secret


class CrawlConfig(Config):
    """How to fetch: politeness, limits, extraction, duplicates, frontier."""

    INTERNAL: ClassVar = frozenset(
        ("concurrency", "render_contexts", "browser_memory_mb", "dedupe_min_chars", "near_window")
    )

    REMOVED: ClassVar[Mapping[str, str]] = {
        "max_redirects": "leave it out: five redirects are followed",
        "robots_ttl": "leave it out: a robots.txt is believed for a day",
        "render_requests": "leave it out: a rendered page may make 300 requests",
        "replay_clock_every": "leave it out: the clock is read every second",
        "robots_agent": "leave it out: groups of robots.txt are those of `yeoron`",
    }

    user_agent: str = "Yeoron/0.1 (research crawler; set crawl.user_agent to your contact)"
    """Sent with each request; name an address or a page where you can be reached."""
    frontier: Secret = SecretStr("sqlite:///var/frontier.db")
    """SQLAlchemy address of the frontier's own database, in place of `database.url`; the default
    is a file in the home."""
    leases: LeaseConfig = LeaseConfig()
    """Which node reads which source."""
    rate: float = Field(1.0, gt=0)
    """Requests per second to one host, unless a source sets its own."""
    per_host: int = Field(2, gt=0)
    """Requests in flight to one host."""
    concurrency: int = Field(32, gt=0)
    """Requests in flight to all hosts together."""
    timeout: float = Field(20.0, gt=0)
    """Seconds that one request may take, from connection to the last byte."""
    max_bytes: int = Field(8 * 1024 * 1024, gt=0)
    """Most bytes of one answer, on the wire and after decompression alike."""
    allow_private_hosts: tuple[str, ...] = ()
    """Hosts that may have private, loopback or link-local addresses: `name:port`, or `name` for its
    ports 80 and 443. Only sources that are at one of them may name them."""
    extract_processes: int = Field(1, ge=0)
    """Processes that read pages and listings; 0 reads them in a thread of the crawler."""
    max_chars: int = Field(50_000, ge=1_000)
    """Characters of a document that are read; a longer one is cut where a sentence or word ends."""
    dedupe_min_chars: int = Field(100, ge=0)
    """Shorter texts are never duplicates: many people may write the same short comment."""
    near_window: int = Field(20_000, ge=0)
    """Latest documents that a new one is compared with; 0 switches the comparison off."""
    slowest: float = Field(4.0, ge=1)
    """The pause between two polls of a source that does not change grows to at most this many
    times `every`."""
    poll_rate: float | None = Field(None, gt=0)
    """Requests per second that all listings of a node may cost together; null: no such limit."""
    browser: Path | None = None
    """Chromium executable; null looks for the system's, then for Playwright's own."""
    render_contexts: int = Field(2, gt=0, le=64)
    """Rendered pages that are open at once."""
    browser_memory_mb: float = Field(700.0, ge=100)
    """Megabytes of Chromium's processes and its driver after which it is started again; at twice
    as much it is killed in the middle of its pages, which are then shown again."""
    pseudonym_key: Secret = SecretStr("")
    """Key of author pseudonyms; empty: a random one for each start of a pool of nodes."""
    replay_clock_url: str | None = None
    """JSON `{"knots": [[event, wall], …]}` of a web that plays back the past."""

    # Constants: a file that sets one is refused.
    attempts: ClassVar = 4  # Tries of one address before it is given up.
    # Seconds before the second try; doubled each time, Retry-After is obeyed beyond it.
    backoff: ClassVar = 2.0
    queue: ClassVar = 64  # Documents that wait for the consumer before fetching pauses.
    # Seconds after which the reading of one page or listing is killed.
    extract_timeout: ClassVar = 20.0
    # Pages with fewer characters of text are counted as `empty`; inline items need one.
    min_chars: ClassVar = 20
    # Jaccard similarity of three-word shingles above which a text is a near-duplicate.
    near_threshold: ClassVar = 0.85
    # Most polls for each change that is expected of a source, however much could be asked.
    polls_per_change: ClassVar = 2.0
    # Share of the requests to a host that may read listings; the rest is left to pages.
    poll_share: ClassVar = 0.5
    # About so many expected items must be missing before a source's silence is an alarm; a false
    # one comes once in e to this power items.
    silence_evidence: ClassVar = 14.0
    silence_least: ClassVar = 1800.0  # Seconds that a silence lasts at least before it is an alarm.
    render_deadline: ClassVar = 45.0  # Seconds after which a rendered page is killed.
    # Pages after which the browser is started again, so that its memory stays flat.
    recycle_pages: ClassVar = 100


class DiscoverConfig(Config):
    """How far the search for sources goes."""

    seeds: tuple[str, ...] = ()
    """Addresses to start from; none: the sites of the sources that are read already."""
    domains: tuple[str, ...] = ()
    """Further domains that may be looked at, subdomains too; the seeds' own hosts always may."""
    requests: int = Field(200, ge=1, le=100_000)
    """Most requests of one search, robots.txt not counted."""

    # Constants: a file that sets one is refused.
    pages: ClassVar = 40  # Most pages that are looked at for links.
    depth: ClassVar = 2  # Most links between a seed and such a page.
    candidates: ClassVar = 20  # Most listings that are tried.
    samples: ClassVar = 5  # Documents that are read of each listing.
    # A listing is proposed when at least this share of its documents is new.
    least_new: ClassVar = 0.2
