"""# retention: what is too old goes

Once a day each store loses what is older than the settings `[retention]` say, as `yeoron retain`
does by hand: addresses of documents, addresses of the frontier, trend reports, states that
rollbacks put aside, log files, and, where that is set, snapshots and runs of MLflow. The result
says for each store how much it was. It is not paused at first: what the settings promise happens.
"""

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from embedding_airflow.deadlines import done_within
from embedding_airflow.operators.retention import Retain

with DAG(
    "retention",
    description="Remove what is older than the settings say, once a day",
    schedule=timedelta(days=1),
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    is_paused_upon_creation=False,
    max_active_runs=1,
    deadline=done_within(timedelta(hours=2)),
    tags=["yeoron", "operations"],
    doc_md=__doc__,
    default_args={"owner": "yeoron", "retries": 2, "retry_delay": timedelta(minutes=10)},
):
    Retain(task_id="retain")
