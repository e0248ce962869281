"""Who gets notices of a trend report, how, and from which threshold on."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from embedding.kernel.config import Config, Secret
from embedding.kernel.ports import is_loopback
from embedding.trends.rows import RANKINGS

ReportFormat = Literal["none", "html", "pdf", "pptx"]
"""Formats of a report that goes with a mail."""


class NotifyConfig(Config):
    """Notices of the `trend_report` DAG; without an address none is sent. Password and webhook
    are secrets: give them by the environment (`YEORON_NOTIFY__WEBHOOK`,
    `YEORON_NOTIFY__SMTP_PASSWORD`), or in a file that only you may read."""

    words: tuple[str, ...] = Field(default=(), max_length=200)
    """Watched words: their figures are in every notice, whether they pass the threshold or not."""

    rankings: tuple[str, ...] = ("moved", "born")
    """Rankings whose clear words are in a notice."""

    false_discovery: float = Field(default=0.05, gt=0, le=1)
    """A word of these rankings is in a notice when its q is at most this."""

    most: int = Field(default=20, ge=1, le=200)
    """Words of one ranking in a notice."""

    webhook: Secret = SecretStr("")
    """Address that takes Slack's `{"text": …}` by POST; https, or http on this machine."""

    email_to: tuple[str, ...] = ()
    """Addresses that mail goes to."""

    email_from: str = "yeoron@localhost"
    """Address that mail comes from."""

    attach: ReportFormat = "none"
    """Report that goes with a mail, as `yeoron report` writes it; pdf and pptx need the extra
    `report`."""

    attach_language: str = "ko"
    """Language of that report, of those that the page has."""

    attach_quiet: bool = False
    """Whether that report is mailed of windows with nothing to tell, too."""

    smtp_host: str = ""
    """Mail server; needed with `email_to`."""

    smtp_port: int = Field(default=587, ge=1, le=65535)
    """Its port."""

    smtp_tls: Literal["starttls", "tls", "none"] = "starttls"
    """How the connection is protected; none only to this machine."""

    smtp_user: str = ""
    """Login there; empty: none."""

    smtp_password: Secret = SecretStr("")
    """Its password."""

    # Constants: a file that sets one is refused.
    timeout_s: ClassVar = 30.0  # Seconds that a delivery may take.

    @field_validator("rankings")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if unknown := set(value) - set(RANKINGS):
            raise ValueError(f"{', '.join(sorted(unknown))}: accepted are {', '.join(RANKINGS)}")
        return value

    @field_validator("email_to", "email_from")
    @classmethod
    def _addresses(cls, value: tuple[str, ...] | str) -> tuple[str, ...] | str:
        for address in (value,) if isinstance(value, str) else value:
            name, at, host = address.rpartition("@")
            if not (name and at and host) or any(c.isspace() or c in ",;<>" for c in address):
                raise ValueError(f"{address!r} is no mail address")
        return value

    @field_validator("webhook")
    @classmethod
    def _protected(cls, value: SecretStr) -> SecretStr:
        address = value.get_secret_value()
        if not address or address.startswith("https://"):
            return value
        host = address.removeprefix("http://").partition("/")[0].rpartition(":")[0]
        if address.startswith("http://") and is_loopback(host):
            return value
        raise ValueError("https:// is needed, or http:// with a port of this machine")

    @model_validator(mode="after")
    def _deliverable(self) -> NotifyConfig:
        if self.email_to and not self.smtp_host:
            raise ValueError("email_to needs smtp_host")
        if self.smtp_tls == "none" and self.smtp_host and not is_loopback(self.smtp_host):
            raise ValueError("smtp_tls none is accepted for a mail server of this machine only")
        return self

    @property
    def channels(self) -> tuple[str, ...]:
        configured_by = {
            "email": bool(self.email_to),
            "webhook": bool(self.webhook.get_secret_value()),
        }
        return tuple(name for name, configured in configured_by.items() if configured)
