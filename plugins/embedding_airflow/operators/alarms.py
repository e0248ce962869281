"""Sources that are out of their usual range, as task instances of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from embedding_airflow.operators.base import YeoronOperator
from embedding_airflow.progress import standing

if TYPE_CHECKING:
    from airflow.sdk import Context

    from embedding.settings import Settings


class LookForAlarms(YeoronOperator):
    """Asks the parameter server which sources have an alarm.

    Result: a list of `{"source", "event", "since", "sentence"}`, by name; empty when all is well.
    """

    def work(self, settings: Settings, context: Context) -> list[dict[str, str]]:  # noqa: ARG002
        """Look once; AirflowException while the server is away, so that the task is retried."""
        url = settings.server_status_url
        try:
            answer = httpx.get(url, timeout=10.0, trust_env=False)
            answer.raise_for_status()
            alarms = standing(answer.json())
        except (httpx.HTTPError, ValueError, AttributeError) as error:
            raise AirflowException(
                f"The parameter server at {url} did not answer ({type(error).__name__}): is it "
                "running (`yeoron status`)?"
            ) from error
        self.log.info("%d sources have an alarm.", len(alarms))
        return [{"source": name, **alarm} for name, alarm in sorted(alarms.items())]


class RaiseAlarm(YeoronOperator):
    """Fails with the alarm's sentence: the grid shows it, and whoever is told of failed tasks (an
    e-mail, a notifier) is told of it.
    """

    ui_color = "#f6d5d5"

    def __init__(
        self, *, source: str, event: str, since: str, sentence: str, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.source = source
        self.event = event
        self.since = since
        self.sentence = sentence

    def work(self, settings: Settings, context: Context) -> None:  # noqa: ARG002
        """Fail; a retry would say the same."""
        message = f"Source {self.source}, {self.event} since {self.since}: {self.sentence}."
        self.log.warning("%s", message)
        raise AirflowFailException(message)
