"""# rollback: back to before a bad window

Started by hand, with one of

- `to`: the snapshot to go back to (or `nothing`);
- `source`: a source that was poisoned. It is blocked, and training goes back to before the first
  window that holds any of it;
- `source` and `since`: the same, but only back to before that window.

and a `reason`. Without `confirm` it is a dry run: the log says what would go and what to confirm.

The pool of nodes ends, snapshots since then are withdrawn (their files stay), the parameter
server begins anew from the snapshot before, MLflow's aliases go back, and the nodes read the
windows again. The server's old state stays in a folder beside the new one.
"""

from datetime import timedelta

from airflow.sdk import DAG

from embedding_airflow.deadlines import done_within
from embedding_airflow.operators.rollback import RollBack
from embedding_airflow.params import rollback_params

with DAG(
    "rollback",
    description="Withdraw snapshots and learn their windows again, without a poisoned source",
    schedule=None,
    max_active_runs=1,
    params=rollback_params(),
    deadline=done_within(timedelta(hours=6)),
    tags=["yeoron", "operations"],
    doc_md=__doc__,
    default_args={"owner": "yeoron", "retries": 2, "retry_delay": timedelta(seconds=10)},
):
    RollBack(task_id="roll_back")
