"""The trigger that watches a group of sources until it has passed a window."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
from airflow.triggers.base import BaseTrigger, TriggerEvent

from embedding_airflow.progress import Target, WindowProgress, event_of, judge, starting

_PATH = "embedding_airflow.triggers.WindowTrigger"


class WindowTrigger(BaseTrigger):
    """Polls the parameter server's `/status` and fires once.

    The event's payload is a dict of counts and names: `state` (`passed`, `timeout` or
    `unreachable`), `group`, `documents`, `tokens`, `passed`, `idle`, `waiting`, `errors`,
    `alarms`, `snapshot`, `message`. It holds no state of its own but times, which are absolute,
    so a triggerer that restarts goes on where the last one stopped.

    status_url       the server's `/status`
    group, sources   name of the group, names of its sources
    label, end       window label, its end in Unix seconds
    started          wall time from which silence is counted, Unix seconds
    deadline         wall time after which it fires `timeout`, Unix seconds
    poll_s           seconds between two looks
    idle_after_s     seconds of silence after which a source is no longer waited for
    unreachable_s    seconds without any answer after which it fires `unreachable`
    """

    def __init__(
        self,
        *,
        status_url: str,
        group: str,
        sources: list[str],
        label: str,
        end: float,
        started: float,
        deadline: float,
        poll_s: float = 3.0,
        idle_after_s: float = 60.0,
        unreachable_s: float = 120.0,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.status_url = status_url
        self.group = group
        self.sources = sources
        self.label = label
        self.end = end
        self.started = started
        self.deadline = deadline
        self.poll_s = poll_s
        self.idle_after_s = idle_after_s
        self.unreachable_s = unreachable_s
        self.client: httpx.AsyncClient | None = None

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = (
            "status_url group sources label end started deadline poll_s idle_after_s unreachable_s"
        )
        return _PATH, {name: getattr(self, name) for name in names.split()}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look, sleep, look again; one event at the end."""
        target = Target(tuple(self.sources), self.label, self.end, self.idle_after_s)
        progress = WindowProgress(done=False, waiting=target.sources)
        answered, logged, since = time.time(), "", self.started
        async with httpx.AsyncClient(timeout=10.0, trust_env=False) as self.client:
            while True:
                try:
                    status = await self._status(self.client)
                except (httpx.HTTPError, ValueError) as error:
                    gone = time.time() - answered
                    self.log.warning(
                        "The parameter server at %s did not answer (%s); %.0f s now.",
                        self.status_url,
                        type(error).__name__,
                        gone,
                    )
                    if gone >= self.unreachable_s:
                        yield self._event("unreachable", progress, self._unreachable(error, gone))
                        return
                else:
                    answered = time.time()
                    if starting(status):
                        since = answered
                    progress = judge(status, target, watched_s=answered - since, now=answered)
                    if progress.sentence() != logged:
                        logged = progress.sentence()
                        self.log.info("%s: %s", self.group, logged)
                    if progress.done:
                        yield self._event("passed", progress, logged)
                        return
                if time.time() >= self.deadline:
                    limit = self.deadline - self.started
                    message = f"Time limit of {limit:.0f} s reached. {progress.sentence()}"
                    yield self._event("timeout", progress, message)
                    return
                await asyncio.sleep(self.poll_s)

    async def cleanup(self) -> None:
        """Close the connection; the nodes go on crawling, they belong to the pool."""
        if self.client is not None:
            await self.client.aclose()

    async def _status(self, client: httpx.AsyncClient) -> dict[str, Any]:
        """The server's status; httpx.HTTPError or ValueError when there is none."""
        answer = await client.get(self.status_url)
        answer.raise_for_status()
        status = answer.json()
        if not isinstance(status, dict):
            raise ValueError("the status is not a JSON object")
        return status

    def _event(self, state: str, progress: WindowProgress, message: str) -> TriggerEvent:
        event = event_of(state, self.group, progress, message)
        return TriggerEvent(event)  # type: ignore[no-untyped-call]

    def _unreachable(self, error: Exception, gone: float) -> str:
        return (
            f"The parameter server at {self.status_url} has not answered for {gone:.0f} s "
            f"({type(error).__name__}): is it running (`yeoron status`), and is "
            "YEORON_SERVER__HTTP_PORT its port?"
        )
