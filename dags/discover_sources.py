"""# discover_sources: what else could be read?

Unpause it and once a week the sites of your sources (or `seeds`) are searched for feeds, sitemaps
and listings, within `requests` requests and as politely as everything else.

1. **discover** ranks what it found by new tokens a request and by how different the words are.
2. **approve** waits for a person: open the run's *Required Actions*, choose the sources to read (or
   *none of them*) and answer. It holds no worker meanwhile; after six days it is skipped.
3. **add_sources** appends the chosen ones to `sources.toml` and remembers the others as rejected.
"""

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from embedding_airflow.assets import SOURCES
from embedding_airflow.operators.discovery import AddSources, ApproveSources, DiscoverSources
from embedding_airflow.params import discover_params

with DAG(
    "discover_sources",
    description="Search for new sources and ask a person which to read",
    schedule="@weekly",
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    is_paused_upon_creation=True,
    max_active_runs=1,
    params=discover_params(),
    tags=["yeoron", "stream"],
    doc_md=__doc__,
    default_args={"owner": "yeoron", "retries": 1, "retry_delay": timedelta(seconds=30)},
):
    discover = DiscoverSources(task_id="discover")
    approve = ApproveSources(task_id="approve", proposed="discover")
    (
        discover
        >> approve
        >> AddSources(
            task_id="add_sources", proposed="discover", approved="approve", outlets=[SOURCES]
        )
    )
