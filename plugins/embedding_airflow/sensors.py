"""The sensor that waits, without holding a worker, until a source group has passed the window."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import httpx
from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowException, AirflowSensorTimeout

from embedding_airflow.failures import plain_failures
from embedding_airflow.links import DaskLink, TrendsLink
from embedding_airflow.operators.base import publish_links, window_of
from embedding_airflow.progress import Target, WindowProgress, event_of, judge
from embedding_airflow.triggers import WindowTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context


class CrawlSensor(BaseSensorOperator):
    """Waits until every source in `sources` has been learnt up to the end of the run's window.

    It looks once and then defers to `WindowTrigger`; the crawling itself is the pool's. How long
    it waits and what it does then come from the run's params `time_limit_s`, `idle_after_s`,
    `unreachable_s`, `poll_s` and `on_timeout`. Its result holds names and counts only.
    """

    operator_extra_links: Any = (DaskLink(), TrendsLink())
    ui_color = "#dbe9f4"

    def __init__(self, *, group: str, sources: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.group = group
        self.sources = sources

    def execute(self, context: Context) -> Any:
        """Look once; defer unless the group has passed already."""
        from embedding.settings import load_settings

        publish_links(self, context)
        params, now = context["params"], time.time()
        with plain_failures():
            settings = load_settings()
            window = window_of(context, settings)
        end = window.end.timestamp()
        target = Target(tuple(self.sources), window.label, end, float(params["idle_after_s"]))
        seen = self._look(settings.server_status_url, target, now)
        if seen is not None and seen.done:
            return self.resume(context, event_of("passed", self.group, seen, seen.sentence()))
        if seen is not None:
            self.log.info("%s: %s", self.group, seen.sentence())
        return self._wait(settings.server_status_url, target, now, params)

    def resume(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        """Take the trigger's event: pass, go on with a warning, or fail with its sentence."""
        state, message = event.get("state"), str(event.get("message", ""))
        if state == "unreachable":
            raise AirflowException(message)
        if state == "timeout" and context["params"]["on_timeout"] == "fail":
            raise AirflowSensorTimeout(message)
        if state == "timeout":
            self.log.warning("%s: %s The run goes on with what was read.", self.group, message)
        for name in (*event.get("idle", ()), *event.get("waiting", ())):
            why = (event.get("errors") or {}).get(name, "nothing new was found there")
            self.log.warning("%s: source %s is not waited for: %s.", self.group, name, why)
        alarms = event.get("alarms") or {}
        for name, alarm in alarms.items():
            self.log.warning(
                "%s: alarm, source %s (%s) since %s: %s.",
                self.group,
                name,
                alarm["event"],
                alarm["since"],
                alarm["sentence"],
            )
        self.log.info("%s: %s", self.group, message)
        kept = {key: event[key] for key in event if key not in ("message", "errors", "alarms")}
        # The name of the event by source is enough for an XCom.
        return {**kept, "alarms": {name: alarm["event"] for name, alarm in alarms.items()}}

    def _wait(self, url: str, target: Target, now: float, params: Mapping[str, Any]) -> NoReturn:
        """Give the waiting to the triggerer."""
        trigger = WindowTrigger(
            status_url=url,
            group=self.group,
            sources=list(self.sources),
            label=target.label,
            end=target.end,
            started=now,
            deadline=now + float(params["time_limit_s"]),
            poll_s=float(params["poll_s"]),
            idle_after_s=target.idle_after_s,
            unreachable_s=float(params["unreachable_s"]),
        )
        self.defer(trigger=trigger, method_name="resume")

    def _look(self, url: str, target: Target, now: float) -> WindowProgress | None:
        """How far the group is; None while the server does not answer."""
        try:
            answer = httpx.get(url, timeout=10.0, trust_env=False)
            answer.raise_for_status()
            return judge(answer.json(), target, watched_s=0.0, now=now)
        except (httpx.HTTPError, ValueError, AttributeError):
            # The trigger knows how to wait for a server that is away.
            return None
