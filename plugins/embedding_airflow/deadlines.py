"""Runs that are not done in time: Airflow's deadline alerts, told by the platform's notices.

Airflow's scheduler finds what is late, and its triggerer calls `tell_late`: that works also where
the tasks that hang hold every place for tasks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk.definitions.callback import AsyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

if TYPE_CHECKING:
    from embedding_airflow.notices.notice import Notice

log = logging.getLogger(__name__)


def done_within(interval: timedelta) -> DeadlineAlert:
    """A notice when a run is not done so long after it was asked for (queued)."""
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=interval,
        callback=AsyncCallback(tell_late),
    )


async def tell_late(context: Mapping[str, Any]) -> str:
    """Send the notice of a late run by each channel of `notify.*`; which ones, in a sentence.

    context  Airflow's: `dag_run` as its API gives it, `deadline` with `deadline_time`
    Airflow keeps what is returned or raised beside the deadline. Raises PlatformError for a channel
    that cannot be used.
    """
    return await asyncio.to_thread(_tell, context)


def _tell(context: Mapping[str, Any]) -> str:
    from embedding.settings import load_settings
    from embedding_airflow.notices.delivery import deliver

    settings = load_settings()
    notice = late_notice(context, settings.airflow_url)
    log.warning("%s: %s", notice.subject, notice.address)
    for channel in settings.notify.channels:
        deliver(notice, channel, settings.notify)
    return f"Sent by {', '.join(settings.notify.channels) or 'no channel: notify.* names none'}."


def late_notice(context: Mapping[str, Any], airflow_url: str) -> Notice:
    """What is told of a late run: its name, its window where it has one, since when it is late."""
    from embedding_airflow.notices.notice import Notice, NoticeLine

    run = context["dag_run"]
    dag, name = str(run["dag_id"]), str(run["dag_run_id"])
    address = f"{airflow_url}/dags/{quote(dag, safe='')}/runs/{quote(name, safe='')}"
    what = str(run.get("note") or name)
    detail = (
        f"asked for at {_minute(run.get('queued_at'))}, to be done by "
        f"{_minute(context['deadline']['deadline_time'])} UTC; it is {run.get('state')}"
    )
    line = NoticeLine(what, detail, address)
    return Notice(f"{dag}: a run is late", (("Late", (line,)),), address)


def _minute(when: object) -> str:
    """`2020-02-03 04:05` of a time or of its ISO form."""
    return str(when or "?").replace("T", " ")[:16]
