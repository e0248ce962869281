"""Configuration of the trends page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field, model_validator

from embedding.ask.config import AskConfig
from embedding.kernel.ports import is_loopback


class WebConfig(AskConfig):
    """Where the trends page reads from, and how it is served alone."""

    REMOVED: ClassVar[Mapping[str, str]] = {
        "front_rows": "leave it out: the front page shows ten words of a ranking",
        "open_snapshots": "leave it out: 64 snapshots are kept open",
        "mapped_mb": "leave it out: 200 MB of mapped files may stay in memory",
        "status_timeout_s": "leave it out: the live panel waits 1.5 s for the server",
    }

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
