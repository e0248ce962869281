"""Build and save the trend report of one snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from embedding_airflow.assets import TRENDS
from embedding_airflow.operators.base import YeoronOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from embedding.settings import Settings
    from embedding.trends.rows import TrendReport
    from embedding.web.handout.writing import Attachment

_SHOWN = 10


class BuildTrendReport(YeoronOperator):
    """Compares `snapshot_id` with the snapshots before it and saves the report.

    Result: `id`, `window`, `notes`, `significant` (how many surely changed, by ranking), `stories`
    and the ten first rows of `moved`, `born` and `risen`, each a word with its figures.
    Event on the asset `trends`: `id`.
    """

    def __init__(self, *, snapshot_id: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.snapshot_id = snapshot_id

    def work(self, settings: Settings, context: Context) -> dict[str, Any]:
        """Build, save, summarise."""
        from embedding.snapshots.store import SnapshotStore
        from embedding.trends.report import build_report
        from embedding.trends.storage import save

        store = SnapshotStore(settings.snapshot_store)
        report = build_report(store, self.snapshot_id, settings.trends, settings.paths.trends)
        save(report, settings.paths.trends)
        for note in report.notes:
            self.log.warning("%s", note.text)
        self.log.info("Window %s: %s.", report.snapshot.label, _counted(report))
        context["outlet_events"][TRENDS].extra = {"id": self.snapshot_id}
        return summary_of(report)


def _counted(report: TrendReport) -> str:
    from embedding.trends.rows import RANKINGS

    words = ", ".join(
        f"{len(report.significant(name)):,} {name} of {report.compared(name):,} words"
        for name in RANKINGS
    )
    return f"{len(report.significant_stories()):,} stories; {words}"


class NotifyOfReport(YeoronOperator):
    """Tells of a saved report by the channels that are set (`notify.*`); without any it is skipped.

    What was sent by a channel is noted beside the report, so a retry sends nothing twice.
    Result: `id`, `sent` (channels), `words` (told of, by part of the notice). XCom `skipped`: why
    it was, where it was.
    """

    def __init__(self, *, snapshot_id: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.snapshot_id = snapshot_id

    def work(self, settings: Settings, context: Context) -> dict[str, Any]:
        """Compose and send."""
        from airflow.sdk.exceptions import AirflowSkipException

        from embedding.ask.answers import Answers
        from embedding.show.team import TeamStore, with_team
        from embedding_airflow.notices.delivery import notify

        if not settings.notify.channels:
            reason = "nobody is to be told: set notify.webhook or notify.email_to"
            context["ti"].xcom_push(key="skipped", value=reason)
            raise AirflowSkipException(reason)
        folder, page = settings.paths.trends, settings.trends_url
        team, answers = settings.page.team, Answers(settings.page)
        config = with_team(settings.notify, TeamStore(team)) if team else settings.notify

        def attach() -> Attachment:
            from embedding.web.handout.writing import HandoutMaker

            maker = HandoutMaker(settings.page, page, config.attach_language, answers)
            return maker.attachment(self.snapshot_id, config.attach)

        attached = None if config.attach == "none" else attach
        notified = notify(answers, self.snapshot_id, folder, config, page, attached)
        self.log.info("Sent by %s.", ", ".join(notified.sent) or "no channel: nothing to tell")
        return {"id": notified.id, "sent": list(notified.sent), "words": notified.words}


def summary_of(report: TrendReport) -> dict[str, Any]:
    """What is small enough for an XCom and a person wants to see there."""
    from embedding.trends.rows import RANKINGS

    rankings = {"moved": report.moved, "born": report.born, "risen": report.risen}
    return {
        "id": report.snapshot.id,
        "window": report.snapshot.label,
        "notes": [note.code for note in report.notes],
        "significant": {name: len(report.significant(name)) for name in RANKINGS},
        "stories": [
            {
                "id": story.id,
                "title": " ".join(story.title),
                "q": story.q,
                "documents": story.documents,
            }
            for story in report.stories[:_SHOWN]
        ],
        **{
            name: [
                {
                    "word": row.word,
                    "score": round(row.score, 3),
                    "documents": row.documents,
                    "documents_before": row.documents_before,
                    "q": round(row.q, 4),
                    "significant": row.significant,
                }
                for row in rows[:_SHOWN]
            ]
            for name, rows in rankings.items()
        },
    }
