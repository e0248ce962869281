"""# compare_training: which setting trains best?

A form of choices; each combination becomes one mapped task, which trains on the same corpus and
logs a child run under one parent run in MLflow, where they are compared. A task that is retried
continues its child run instead of opening a second one.
"""

from datetime import timedelta

from airflow.sdk import DAG

from embedding_airflow.operators.training import CloseComparison, OpenComparison, TrainSetting
from embedding_airflow.params import training_params

with DAG(
    "compare_training",
    description="Train with several settings and compare them in MLflow",
    schedule=None,
    max_active_runs=1,
    params=training_params(),
    tags=["yeoron", "training"],
    doc_md=__doc__,
    default_args={"owner": "yeoron", "retries": 1, "retry_delay": timedelta(seconds=10)},
):
    comparison = OpenComparison(task_id="open_comparison")
    # One at a time: settings that share the machine would slow each other down.
    trained = TrainSetting.partial(
        task_id="train", map_index_template="{{ task.variant }}", max_active_tis_per_dagrun=1
    ).expand_kwargs(comparison.output)
    trained >> CloseComparison(
        task_id="close_comparison", opened="open_comparison", trained="train"
    )
