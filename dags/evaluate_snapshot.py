"""# evaluate_snapshot: how good is a snapshot?

Runs whenever the asset `snapshots` is updated, for each snapshot that the run's events name (or,
by hand, for the param's): likelihood per source, similarity gold sets, PIP loss, all in one MLflow
run, and the snapshot registered as a model version. What cannot be computed, for instance without
a gold file, is skipped with a sentence in the log.
"""

from datetime import timedelta

from airflow.sdk import DAG

from embedding_airflow.assets import EVALUATIONS, SNAPSHOTS
from embedding_airflow.deadlines import done_within
from embedding_airflow.operators.evaluation import EvaluateSnapshot
from embedding_airflow.operators.snapshot import ChosenSnapshots
from embedding_airflow.params import snapshot_params

with DAG(
    "evaluate_snapshot",
    description="Evaluate a snapshot and log it to MLflow",
    schedule=[SNAPSHOTS],
    max_active_runs=1,
    params=snapshot_params(),
    deadline=done_within(timedelta(hours=2)),
    tags=["yeoron", "evaluation"],
    doc_md=__doc__,
    default_args={"owner": "yeoron", "retries": 2, "retry_delay": timedelta(seconds=10)},
):
    EvaluateSnapshot.partial(
        task_id="evaluate",
        map_index_template="{{ task.snapshot_id }}",
        max_active_tis_per_dag=1,
        inlets=[SNAPSHOTS],
        outlets=[EVALUATIONS],
    ).expand(snapshot_id=ChosenSnapshots(task_id="choose_snapshots").output)
