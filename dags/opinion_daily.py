"""# opinion_daily: a window every day

Unpause it and each midnight (of `server.timezone`) starts a run of `opinion_stream` for the day
that ended. For weeks, months or hours change `schedule` and `unit` together.
"""

from datetime import datetime, timedelta

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG

from embedding_airflow.choices import window_zone

_DAY = "{{ macros.ds_add(logical_date.in_timezone(dag.timezone) | ds, -1) }}"

with DAG(
    "opinion_daily",
    description="Start opinion_stream for each day",
    schedule="@daily",
    start_date=datetime(2024, 1, 1, tzinfo=window_zone()),
    catchup=False,
    is_paused_upon_creation=True,
    max_active_runs=1,
    tags=["yeoron", "stream"],
    doc_md=__doc__,
    default_args={"owner": "yeoron", "retries": 2, "retry_delay": timedelta(seconds=30)},
) as dag:
    TriggerDagRunOperator(
        task_id="start_window",
        trigger_dag_id="opinion_stream",
        # Named after its window; a retry finds the run of the first try.
        trigger_run_id=f"daily__{_DAY}",
        logical_date="{{ logical_date }}",
        conf={"unit": "day"},
        skip_when_already_exists=True,
    )
