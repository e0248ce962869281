"""# opinion_stream: one window of the stream

One run stands for one window of event time over a stream that keeps going.

1. **attach_pool** starts the nodes that are missing on the Dask cluster and attaches to the rest.
2. **source_groups** reads `sources.toml`.
3. **crawl** has one mapped task for each source group. It waits, deferred and so without holding
   a worker, until the group's sources have been learnt up to the end of the window.
4. **cut_snapshot** asks the parameter server for the window's snapshot and updates the asset
   `snapshots`, which starts `evaluate_snapshot` and `trend_report`.

Nodes go on after the run. A retry of any task attaches to what is there and repeats nothing.
"""

from datetime import timedelta

from airflow.sdk import DAG

from embedding_airflow.assets import SNAPSHOTS, SOURCES
from embedding_airflow.deadlines import done_within
from embedding_airflow.operators.pool import AttachPool, SourceGroups
from embedding_airflow.operators.snapshot import CutSnapshot
from embedding_airflow.params import stream_params
from embedding_airflow.sensors import CrawlSensor

with DAG(
    "opinion_stream",
    description="Crawl and learn one window of event time, then cut its snapshot",
    schedule=None,
    max_active_runs=1,
    params=stream_params(),
    deadline=done_within(timedelta(hours=30)),
    tags=["yeoron", "stream"],
    doc_md=__doc__,
    default_args={"owner": "yeoron", "retries": 2, "retry_delay": timedelta(seconds=10)},
):
    pool = AttachPool(task_id="attach_pool")
    groups = SourceGroups(task_id="source_groups")
    crawl = CrawlSensor.partial(
        task_id="crawl", map_index_template="{{ task.group }}"
    ).expand_kwargs(groups.output)
    cut = CutSnapshot(task_id="cut_snapshot", inlets=[SOURCES], outlets=[SNAPSHOTS])
    pool >> crawl >> cut
