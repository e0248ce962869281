"""Configuration of the trends page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field, model_validator

from embedding.kernel.config import Config
from embedding.kernel.ports import is_loopback
from embedding.trends.config import TrendsConfig


class AxisConfig(Config):
    """An axis that a word's page shows: a name and the words of its two ends."""

    name: str = Field(min_length=1, max_length=40)
    """What the page calls it."""
    positive: tuple[str, ...] = Field(min_length=1)
    """Words of one end."""
    negative: tuple[str, ...] = Field(min_length=1)
    """Words of the other end."""


SENTIMENT = AxisConfig(
    name="sentiment",
    positive=(
        *("좋다", "훌륭하다", "최고", "만족", "감동", "행복", "기쁘다", "아름답다", "고맙다"),
        *("안전", "희망", "성공", "즐겁다", "뛰어나다", "믿다", "사랑", "편하다", "칭찬"),
        *("good", "great", "best", "love", "happy", "excellent", "wonderful", "safe", "hope"),
        *("success", "nice", "beautiful", "perfect", "enjoy"),
    ),
    negative=(
        *("나쁘다", "최악", "실망", "분노", "불안", "싫다", "슬프다", "밉다", "억울하다"),
        *("위험", "절망", "실패", "괴롭다", "형편없다", "두렵다", "고통", "불편", "비난"),
        *("bad", "terrible", "worst", "hate", "sad", "awful", "horrible", "danger", "fear"),
        *("failure", "poor", "ugly", "wrong", "angry"),
    ),
)


class WebConfig(Config):
    """Where the trends page reads from, and how it is served alone."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "front_rows": "leave it out: the front page shows ten words of a ranking",
        "open_snapshots": "leave it out: 64 snapshots are kept open",
        "mapped_mb": "leave it out: 200 MB of mapped files may stay in memory",
        "status_timeout_s": "leave it out: the live panel waits 1.5 s for the server",
    }

    snapshots: str = "var/snapshots"
    """Address of the snapshot store: a folder or an fsspec URL."""

    reports: Path | None = None
    """Folder of saved trend reports; a report that is not there is computed while serving."""

    evidence: Path | None = None
    """Folder of addresses of documents by word, which nodes write; None shows none."""

    team: Path | None = None
    """File of words and notes that all readers share; None: they share nothing."""

    status_url: str | None = None
    """The parameter server's `/status`, for the panel of live figures; None leaves it out."""

    token_file: Path = Path("var/web/token")
    """Holds the login token when the page is served alone; made (mode 600) when missing."""

    tokens: Path = Path("var/web/tokens.sqlite")
    """Digests of the tokens with which programs read (`yeoron token`); made (mode 600) when
    missing."""

    accounts: Path = Path("var/web/accounts.sqlite")
    """Digests of the passwords of people (`yeoron account`), and their sessions; made (mode 600)
    when missing."""

    requests_per_minute: int = Field(default=600, ge=1, le=10_000)
    """Answers that one token may have in a minute; beyond it a program waits."""

    session_hours: float = Field(default=12.0, gt=0, le=24 * 30)
    """How long a login lasts."""

    host: str = "127.0.0.1"
    """Address `yeoron web` listens on; other than loopback only with tls_cert and tls_key."""

    port: int = Field(default=8090, ge=0, le=65535)
    """Port `yeoron web` listens on; 0 takes a free one."""

    tls_cert: Path | None = None
    """PEM certificate chain of `yeoron web`."""

    tls_key: Path | None = None
    """PEM private key of the certificate."""

    locale: Path | None = None
    """Folder of further languages of the page: one catalogue `<language>.po` each, as those in
    `embedding/web/locale`. What a catalogue does not say is said in English."""

    axes: tuple[AxisConfig, ...] = (SENTIMENT,)
    """Axes that a word's page shows; words of an end that no window uses are passed over."""

    watch: tuple[str, ...] = Field(default=(), max_length=40)
    """Words that everybody's watch list begins with."""

    headlines: bool = True
    """Whether readers may have the headlines of original documents fetched again."""

    keep_headlines: bool = False
    """Whether a headline that was fetched is kept, with address, source and time, in
    `headlines_file`. The text of a document is never kept."""

    headlines_file: Path = Path("var/headlines.db")
    """Where headlines are kept, if they are."""

    chromium: Path | None = None
    """Chromium that prints reports as PDF; left out: `crawl.browser`, else the system's."""

    refresh_s: float = Field(default=2.0, ge=0)
    """For this long the list of snapshots is not read again."""

    trends: TrendsConfig = TrendsConfig()
    """How windows are compared."""

    source_weights: dict[str, float] = Field(default_factory=dict)
    """Weights of sources in use; left out: `node.source_weights` of the same settings."""

    @model_validator(mode="after")
    def _listens_safely(self) -> WebConfig:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key are given together or not at all")
        if not is_loopback(self.host) and self.tls_cert is None:
            raise ValueError(
                f"host {self.host} is not loopback: the login would be readable on the way; it is "
                "accepted with tls_cert and tls_key"
            )
        return self
