"""Configuration of the trends page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field, model_validator

from embedding.ask.config import SENTIMENT, AskConfig, AxisConfig
from embedding.kernel.config import Config
from embedding.kernel.ports import is_loopback


class PageConfig(Config):
    """What the trends page shows, and how it is served alone."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "front_rows": "leave it out: the front page shows ten words of a ranking",
        "open_snapshots": "leave it out: 64 snapshots are kept open",
        "mapped_mb": "leave it out: 200 MB of mapped files may stay in memory",
        "status_timeout_s": "leave it out: the live panel waits 1.5 s for the server",
        "refresh_s": "leave it out: the list of snapshots is read again after 2 s",
        "locale": "leave it out: put a catalogue beside those in `embedding/web/locale`",
        "snapshots": "write server.snapshots",
        "source_weights": "write node.source_weights",
        "chromium": "write crawl.browser",
        "trends": "write it under [trends]",
        **dict.fromkeys(
            ("reports", "evidence", "team", "status_url", "token_file", "tokens", "accounts"),
            "leave it out: it is that of this home (paths.home)",
        ),
        "headlines_file": "leave it out: they are kept in the home (paths.home)",
    }

    axes: tuple[AxisConfig, ...] = (SENTIMENT,)
    """Axes that a word's page shows; words of an end that no window uses are passed over."""

    requests_per_minute: int = Field(default=600, ge=1, le=10_000)
    """Answers that one token may have in a minute; beyond it a program waits."""

    host: str = "127.0.0.1"
    """Address `yeoron web` listens on; other than loopback only with tls_cert and tls_key."""

    port: int = Field(default=8090, ge=0, le=65535)
    """Port `yeoron web` listens on; 0 takes a free one."""

    tls_cert: Path | None = None
    """PEM certificate chain of `yeoron web`."""

    tls_key: Path | None = None
    """PEM private key of the certificate."""

    watch: tuple[str, ...] = Field(default=(), max_length=40)
    """Words that everybody's watch list begins with."""

    headlines: bool = True
    """Whether readers may have the headlines of original documents fetched again."""

    keep_headlines: bool = False
    """Whether a headline that was fetched is kept, with address, source and time. The text
    of a document is never kept."""

    # Constants: a file that sets one is refused.
    session_hours: ClassVar = 12.0  # How long a login lasts.

    @model_validator(mode="after")
    def _listens_safely(self) -> PageConfig:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key are given together or not at all")
        if not is_loopback(self.host) and self.tls_cert is None:
            raise ValueError(
                f"host {self.host} is not loopback: the login would be readable on the way; it is "
                "accepted with tls_cert and tls_key"
            )
        return self


class WebConfig(AskConfig, PageConfig):
    """The page of one home: its settings, and where it reads from."""

    REMOVED: ClassVar[Mapping[str, str]] = {}

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

    headlines_file: Path = Path("var/headlines.db")
    """Where headlines are kept, if they are."""

    chromium: Path | None = None
    """Chromium that prints reports as PDF; left out: `crawl.browser`, else the system's."""
