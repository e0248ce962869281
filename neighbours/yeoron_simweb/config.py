"""Settings of the simulated web."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path

from pydantic import Field, field_validator, model_validator

from embedding.kernel.config import Config

PARTS = ("politics", "society", "life", "euckr", "board", "comments")
"""The parts among which documents are shared out; the first four are sections of the news site."""

NEWS_SECTIONS = PARTS[:4]
"""Sections of the news site; `euckr` is the one served in EUC-KR."""

HABITS = {
    "old-board": "the board is an old one: tables in EUC-KR, a session's id in every link",
    "false-charset": "articles of the EUC-KR section name another character set than theirs",
    "pictures": "society has a sitemap of pictures without times; a third of its pages have none",
    "empty-page": "the second page of comments is empty, and others follow",
    "relative-times": "life says 어제 10:30 and 3시간 전 in place of dates, in KST",
    "one-canonical": "every article names the front page as its canonical address",
    "frames": "articles of politics stand in a frame, as on the blogs of portals",
    "refresh": "addresses of politics refresh to where the article is",
}
"""Habits of real sites that can be asked for, each of one part of the web."""

MONTH_SECONDS = 365.25 / 12 * 86400.0
"""Mean length of a month in seconds."""

_SHARES = {
    "politics": 0.25,
    "society": 0.15,
    "life": 0.15,
    "euckr": 0.10,
    "board": 0.15,
    "comments": 0.20,
}


class SimwebConfig(Config):
    """What is played, how quickly, and how well or badly the sites behave."""

    host: str = "127.0.0.1"
    """Address to listen on; loopback unless you want other machines to crawl it."""
    port: int = Field(default=8899, ge=0, le=65535)
    """Port to listen on; 0 takes any free one."""
    corpus: Path | None = None
    """Dated corpus (.jsonl or .jsonl.xz, or a folder with one), or `generated`; by default
    $YEORON_DATA, then ../shared/data, then the generated corpus."""
    first_day: dt.date | None = None
    """Play documents from this day on (YYYY-MM-DD); by default from the corpus's first."""
    last_day: dt.date | None = None
    """Play documents up to and including this day; by default to the corpus's last."""
    seconds_per_month: float = Field(default=20.0, gt=0)
    """Wall seconds in which one month of event time passes."""
    speed: float | None = Field(default=None, gt=0)
    """Event seconds per wall second; when given it takes the place of seconds_per_month."""
    longest_gap_hours: float = Field(default=6.0, gt=0)
    """A stretch of event time without documents lasts no longer than this many event hours."""
    max_backlog: int = Field(default=0, ge=0)
    """The clock waits while this many published documents were not fetched yet; 0: never waits."""
    autostart: bool = False
    """Start playing at once, without a request to /control/start."""
    crawl_delay: float = Field(default=0.05, ge=0)
    """Crawl-delay in robots.txt, in seconds; 0 leaves the line out."""
    fault_rate: float = Field(default=0.0, ge=0, le=1)
    """Share of articles whose first fetch answers 500."""
    habits: tuple[str, ...] = ()
    """Habits of real sites that the simulated web has: old-board, false-charset, pictures,
    empty-page, relative-times, one-canonical, frames, refresh; or all."""
    feed_items: int = Field(default=100, ge=1)
    """Entries in a feed (the newest); at least max_backlog, so that no reader misses one."""
    sitemap_items: int = Field(default=1000, ge=1)
    """Entries in a sitemap (the newest); at least max_backlog."""
    page_items: int = Field(default=20, ge=1)
    """Entries on a list page, and posts or comments in one answer where none are asked for."""
    hang_seconds: float = Field(default=30.0, gt=0)
    """How long /fault/hang and /fault/slow keep a client waiting."""
    big_bytes: int = Field(default=200_000_000, ge=1)
    """Size of the body of /fault/big and of the unpacked /fault/gzip-bomb."""
    shares: dict[str, float] = Field(default_factory=lambda: dict(_SHARES))
    """Weight of each part (politics, society, life, euckr, board, comments) in sharing out."""
    seed: int = 0
    """Seed of the generated corpus."""
    documents_per_day: int = Field(default=18, ge=1)
    """Documents of each day of the generated corpus."""

    @property
    def event_speed(self) -> float:
        """Event seconds per wall second."""
        return MONTH_SECONDS / self.seconds_per_month if self.speed is None else self.speed

    @field_validator("habits")
    @classmethod
    def _known(cls, habits: tuple[str, ...]) -> tuple[str, ...]:
        unknown = sorted(set(habits) - set(HABITS) - {"all"})
        if unknown:
            raise ValueError(f"unknown habit {unknown[0]!r}; habits are {', '.join(HABITS)}")
        return tuple(HABITS) if "all" in habits else habits

    @model_validator(mode="after")
    def _check(self) -> SimwebConfig:
        if self.first_day and self.last_day and self.last_day < self.first_day:
            raise ValueError(
                f"last_day {self.last_day} lies before first_day {self.first_day}, "
                "so nothing would be played"
            )
        unknown = sorted(set(self.shares) - set(PARTS))
        if unknown:
            raise ValueError(f"shares: unknown part {unknown[0]!r}; parts are {', '.join(PARTS)}")
        weights = list(self.shares.values())
        if any(not math.isfinite(w) or w < 0 for w in weights) or sum(weights) <= 0:
            raise ValueError("shares: weights must be finite, none negative and not all zero")
        return self
