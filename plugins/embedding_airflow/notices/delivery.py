"""Sending notices by mail or to a webhook, once by each channel. No library logs their content."""

from __future__ import annotations

import json
import smtplib
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from functools import partial
from pathlib import Path

import httpx
import tenacity

from embedding.ask.answers import Answers
from embedding.ask.questions import ReportQuestion, WatchedQuestion
from embedding.kernel.errors import PlatformError
from embedding.show.notifying import NotifyConfig
from embedding.web.handout.writing import Attachment
from embedding_airflow.notices.notice import Notice, compose

ATTEMPTS = 3
_LONGEST = 35_000
"""Characters of a webhook's text; Slack cuts at 40,000."""


@dataclass(frozen=True)
class Delivered:
    """Which channels a notice went by now, and how many words each part of it had."""

    id: str
    sent: tuple[str, ...]
    words: dict[str, int]


def notify(
    answers: Answers,
    window: str,
    folder: Path,
    config: NotifyConfig,
    page: str,
    attach: Callable[[], Attachment] | None = None,
) -> Delivered:
    """Send the notice of a window's report by every channel that has not had it.

    folder  of saved reports; `.sent-<id>.json` there names the channels that have
    attach  makes the file that goes with a mail; None: none does
    Raises PlatformError for a channel that cannot be used; those before it stay noted.
    """
    report = ReportQuestion(window).answer(answers)
    watched = WatchedQuestion(config.words, window).answer(answers)
    notice = compose(report, watched, config, page)
    noted = folder / f".sent-{report.snapshot.id}.json"
    had: list[str] = json.loads(noted.read_text("utf-8")) if noted.is_file() else []
    sent = []
    for channel in config.channels:
        attached = attach if channel == "email" else None
        if channel in had or not (notice or (attached is not None and config.attach_quiet)):
            continue
        goes_along = None if attached is None else attached()
        deliver(notice, channel, config, goes_along)
        sent.append(channel)
        noted.write_text(json.dumps([*had, *sent]), encoding="utf-8")
    words = {title: len(lines) for title, lines in notice.sections}
    return Delivered(report.snapshot.id, tuple(sent), words)


def deliver(
    notice: Notice, channel: str, config: NotifyConfig, attachment: Attachment | None = None
) -> None:
    """Send by one channel (`email` or `webhook`), with two more tries.

    attachment  goes with a mail

    Raises PlatformError that names the channel and what went wrong, never its secret.
    """
    channels: dict[str, Callable[[Notice, NotifyConfig], None]] = {
        "email": partial(_mail, attachment=attachment),
        "webhook": _post,
    }
    send = channels[channel]
    try:
        for attempt in tenacity.Retrying(
            stop=tenacity.stop_after_attempt(ATTEMPTS),
            wait=tenacity.wait_exponential(0.2, max=5.0),
            retry=tenacity.retry_if_exception(_passing),
            reraise=True,
        ):
            with attempt:
                send(notice, config)
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        raise PlatformError(f"notice by {channel}: it was answered with HTTP {status}.") from None
    except smtplib.SMTPException as error:
        raise PlatformError(f"notice by {channel}: {_refusal(error)}.") from None
    except (httpx.HTTPError, OSError) as error:
        raise PlatformError(
            f"notice by {channel}: it could not be reached ({type(error).__name__})."
        ) from None


def as_text(notice: Notice) -> str:
    """Plain text, a line for each word."""
    parts = []
    for title, lines in notice.sections:
        rows = [f"- {line.word}: {line.detail}\n  {line.address}" for line in lines]
        parts.append("\n".join([title, *rows]))
    return "\n\n".join([*parts, notice.address]) + "\n"


def as_slack(notice: Notice) -> str:
    """Slack's markup: what would be markup in a word is written out."""
    parts = [f"*{_escaped(notice.subject)}*"]
    for title, lines in notice.sections:
        rows = [f"• <{line.address}|{_label(line.word)}> {_escaped(line.detail)}" for line in lines]
        parts.append("\n".join([f"*{title}*", *rows]))
    text = "\n\n".join(parts)
    return text if len(text) <= _LONGEST else text[:_LONGEST].rpartition("\n")[0] + "\n…"


def _mail(notice: Notice, config: NotifyConfig, attachment: Attachment | None = None) -> None:
    message = EmailMessage()
    message["Subject"] = notice.subject
    message["From"] = config.email_from
    message["To"] = ", ".join(config.email_to)
    # Of short lines it would be eight-bit text, which not every mail server passes on whole.
    message.set_content(as_text(notice), cte="base64")
    if attachment is not None:
        main, _, sub = attachment.media_type.partition(";")[0].partition("/")
        message.add_attachment(
            attachment.content, maintype=main, subtype=sub, filename=attachment.name
        )
    context = ssl.create_default_context()
    host, port, timeout = config.smtp_host, config.smtp_port, config.timeout_s
    with (
        smtplib.SMTP_SSL(host, port, timeout=timeout, context=context)
        if config.smtp_tls == "tls"
        else smtplib.SMTP(host, port, timeout=timeout)
    ) as server:
        if config.smtp_tls == "starttls":
            server.starttls(context=context)
        if config.smtp_user:
            server.login(config.smtp_user, config.smtp_password.get_secret_value())
        server.send_message(message)


def _post(notice: Notice, config: NotifyConfig) -> None:
    address = config.webhook.get_secret_value()
    answer = httpx.post(
        address, json={"text": as_slack(notice)}, timeout=config.timeout_s, follow_redirects=False
    )
    answer.raise_for_status()


def _passing(error: BaseException) -> bool:
    """Whether a second try may help: not after a refusal."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code == 429 or error.response.status_code >= 500
    if isinstance(error, smtplib.SMTPResponseException):
        return 400 <= error.smtp_code < 500
    if isinstance(error, smtplib.SMTPException):
        return isinstance(error, smtplib.SMTPServerDisconnected)
    return isinstance(error, httpx.HTTPError | OSError)


def _refusal(error: smtplib.SMTPException) -> str:
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return f"the mail server takes none of {len(error.recipients)} recipients"
    if isinstance(error, smtplib.SMTPResponseException):
        return f"the mail server refused with code {error.smtp_code}"
    return f"the mail server could not be used ({type(error).__name__})"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _label(word: str) -> str:
    """A word as the text of a link, where a bar would end it."""
    return _escaped(word).replace("|", "¦").replace("\n", " ")
