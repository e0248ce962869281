"""Telling of a saved report, once by each channel."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from embedding.snapshots.store import SnapshotStore
from embedding.trends.delivery import deliver
from embedding.trends.notice import Attachment, compose
from embedding.trends.notifying import NotifyConfig
from embedding.trends.rows import TrendReport


@dataclass(frozen=True)
class Delivered:
    """Which channels a notice went by now, and how many words each part of it had."""

    id: str
    sent: tuple[str, ...]
    words: dict[str, int]


def notify(
    report: TrendReport,
    store: SnapshotStore,
    folder: Path,
    config: NotifyConfig,
    page: str,
    attach: Callable[[], Attachment] | None = None,
) -> Delivered:
    """Send the notice of a saved report by every channel that has not had it.

    folder  of saved reports; `.sent-<id>.json` there names the channels that have
    attach  makes the file that goes with a mail; None: none does
    Raises PlatformError for a channel that cannot be used; those before it stay noted.
    """
    before = None if report.compared_with is None else store.open(report.compared_with.id)
    notice = compose(report, store.open(report.snapshot.id), before, config, page)
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
