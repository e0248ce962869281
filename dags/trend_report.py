"""# trend_report: what moved?

Runs whenever the asset `snapshots` is updated, for each snapshot that the run's events name, and
each hour for those that the server amended since (or, by hand, for the param's): compares the
window with the ones before it (words that moved in meaning, new words, words that became frequent)
and saves the report that the trends page shows. Then `notify` tells of watched words and of those
that passed the threshold, by mail or to a webhook, where `notify.*` in the settings says so;
otherwise it is skipped.
"""

from datetime import timedelta

from airflow.sdk import DAG, AssetOrTimeSchedule, CronTriggerTimetable

from embedding_airflow.assets import SNAPSHOTS, TRENDS
from embedding_airflow.deadlines import done_within
from embedding_airflow.operators.snapshot import ChosenSnapshots
from embedding_airflow.operators.trends import BuildTrendReport, NotifyOfReport
from embedding_airflow.params import snapshot_params

with DAG(
    "trend_report",
    description="Compare a snapshot with the ones before it",
    schedule=AssetOrTimeSchedule(
        timetable=CronTriggerTimetable("@hourly", timezone="UTC"), assets=[SNAPSHOTS]
    ),
    catchup=False,
    max_active_runs=1,
    params=snapshot_params(),
    deadline=done_within(timedelta(hours=2)),
    tags=["yeoron", "trends"],
    doc_md=__doc__,
    default_args={"owner": "yeoron", "retries": 2, "retry_delay": timedelta(seconds=10)},
):
    chosen = ChosenSnapshots(task_id="choose_snapshots", unreported=True).output
    common = {"map_index_template": "{{ task.snapshot_id }}", "max_active_tis_per_dag": 1}
    report = BuildTrendReport.partial(
        task_id="report", inlets=[SNAPSHOTS], outlets=[TRENDS], **common
    )
    notify = NotifyOfReport.partial(task_id="notify", inlets=[TRENDS], **common)
    report.expand(snapshot_id=chosen) >> notify.expand(snapshot_id=chosen)
