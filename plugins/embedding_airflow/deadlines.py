"""What happens when a run takes longer than it may: a warning, and a notice where one can go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import AsyncCallback, DeadlineAlert, DeadlineReference

if TYPE_CHECKING:
    from embedding.settings import Settings

log = logging.getLogger(__name__)


def within(interval: timedelta) -> DeadlineAlert:
    """A deadline so long after a run was queued, with `tell_of_late_run` as its callback."""
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=interval,
        callback=AsyncCallback(tell_of_late_run, kwargs={"hours": interval.total_seconds() / 3600}),
    )


async def tell_of_late_run(hours: float, context: Mapping[str, Any] | None = None) -> None:
    """Say in the triggerer's log and by each channel of `notify.*` which run is late.

    context  Airflow's: `dag_run` with `dag_id` and `dag_run_id`

    Raises YeoronError where the settings or a channel cannot be used.
    """
    from embedding.settings import load_settings

    run = dict((context or {}).get("dag_run") or {})
    name = f"{run.get('dag_id', 'a DAG')} {run.get('dag_run_id', '')}".strip()
    sentence = f"{name} has not ended within {hours:g} hours."
    log.warning("%s", sentence)
    await asyncio.to_thread(_send, load_settings(), sentence)


def _send(settings: Settings, sentence: str) -> None:
    """By each channel; without any to nobody."""
    from embedding.trends.delivery import deliver
    from embedding.trends.notice import Notice

    notice = Notice(subject=sentence, sections=(), address=settings.airflow_url)
    for channel in settings.notify.channels:
        deliver(notice, channel, settings.notify)
