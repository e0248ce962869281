"""Search for sources, ask a person which of them to read, and act on the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk.exceptions import AirflowSkipException

from embedding_airflow.failures import plain_failures
from embedding_airflow.operators.base import YeoronOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from embedding.settings import Settings

NO_CANDIDATE = "none of them"
"""The option of a person who wants no proposal at all."""
_COLUMNS = ("name", "kind", "url", "why", "settings")


class DiscoverSources(YeoronOperator):
    """Searches from the run's param `seeds`, else from the settings', else from your sites.

    Result: proposals, best first: `name`, `kind`, `url`, `why`, `settings`; no titles, no text.
    Skipped, with what follows, when nothing is proposed.
    """

    def work(self, settings: Settings, context: Context) -> list[dict[str, Any]]:
        """Search."""
        from embedding.discovery.proposals import discover

        params = context["params"]
        changes = {"requests": params["requests"]} if params.get("requests") else {}
        config = settings.discover.model_copy(update=changes)
        discovery = discover(settings, tuple(params.get("seeds") or ()), config=config)
        self.log.info(
            "%d pages and %d requests; %d proposals, %d listings that bring nothing new.",
            discovery.pages,
            discovery.requests,
            len(discovery.candidates),
            len(discovery.dropped),
        )
        if not discovery.candidates:
            raise AirflowSkipException("No new source is proposed.")
        proposals = [each.to_dict() for each in discovery.candidates]
        return [{column: each[column] for column in _COLUMNS} for each in proposals]


class ApproveSources(HITLOperator):
    """Waits, without holding a worker, until a person has chosen among the proposals.

    The page "Required Actions" of the run shows them; whoever may edit the DAG's runs may answer.
    Nobody's answer within `response_timeout` decides nothing: the task is skipped, and the next
    search proposes the same again. Result: names of the approved ones.
    """

    def __init__(
        self, *, proposed: str, response_timeout: timedelta = timedelta(days=6), **kwargs: Any
    ) -> None:
        super().__init__(
            subject="Which of these sources shall be read?",
            options=[NO_CANDIDATE],
            multiple=True,
            response_timeout=response_timeout,
            **kwargs,
        )
        self.proposed = proposed

    def execute(self, context: Context) -> Any:
        """Ask."""
        proposals = self._offer(context)
        self.body = described(proposals)
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> list[str]:
        """Take the answer."""
        self._offer(context)
        answer = super().execute_complete(context, event)
        chosen = [name for name in answer["chosen_options"] if name != NO_CANDIDATE]
        self.log.info("Approved: %s.", ", ".join(chosen) or NO_CANDIDATE)
        return chosen

    def process_trigger_event_error(self, event: dict[str, Any]) -> None:
        """No answer in time is none."""
        if event.get("error_type") == "timeout":
            raise AirflowSkipException("Nobody decided in time; nothing is added or rejected.")
        super().process_trigger_event_error(event)

    def _offer(self, context: Context) -> list[dict[str, Any]]:
        """The proposals, whose names become the options."""
        ti: Any = context["ti"]
        proposals: list[dict[str, Any]] = list(ti.xcom_pull(task_ids=self.proposed))
        self.options = [*(str(each["name"]) for each in proposals), NO_CANDIDATE]
        return proposals


class AddSources(YeoronOperator):
    """Adds the approved sources to sources.toml, in one atomic write, and remembers the others.

    A pool that runs reads the new ones within seconds. Result: `added`, `rejected` (names).
    """

    def __init__(self, *, proposed: str, approved: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.proposed = proposed
        self.approved = approved

    def work(self, settings: Settings, context: Context) -> dict[str, list[str]]:
        """Act on the answer; a second try adds and rejects nothing twice."""
        from embedding.discovery.proposals import decide

        ti: Any = context["ti"]
        with plain_failures():
            done = decide(
                settings,
                list(ti.xcom_pull(task_ids=self.proposed)),
                list(ti.xcom_pull(task_ids=self.approved)),
            )
        self.log.info("Added to %s: %s.", settings.paths.sources, ", ".join(done.added) or "none")
        return {"added": list(done.added), "rejected": list(done.rejected)}


def described(proposals: Sequence[Mapping[str, Any]]) -> str:
    """The proposals as Markdown."""
    lines = [f"- **{each['name']}**: {each['why']} ({each['url']})" for each in proposals]
    return "\n".join(
        [
            "Choose the ones to read; the others are remembered and not proposed again.",
            "",
            *lines,
        ]
    )
