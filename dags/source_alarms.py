"""# source_alarms: which sources fell silent?

Unpause it and every ten minutes the parameter server is asked which sources are out of their usual
range (`page_changed`, `blocked`, `unreachable`, `empty`; see docs/concepts/crawling.md). Each of
them becomes a task instance named after the source that fails with the alarm's sentence: the grid
shows it, and whatever you attach to failed tasks tells you of it. Without an alarm the task is
skipped.
"""

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from embedding_airflow.operators.alarms import LookForAlarms, RaiseAlarm

with DAG(
    "source_alarms",
    description="Fail a task for each source that is out of its usual range",
    schedule=timedelta(minutes=10),
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    is_paused_upon_creation=True,
    max_active_runs=1,
    tags=["yeoron", "stream"],
    doc_md=__doc__,
    default_args={"owner": "yeoron", "retries": 1, "retry_delay": timedelta(seconds=30)},
):
    look = LookForAlarms(task_id="look")
    RaiseAlarm.partial(
        task_id="alarm", map_index_template="{{ task.source }}: {{ task.event }}"
    ).expand_kwargs(look.output)
