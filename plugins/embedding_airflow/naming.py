"""Names of windows in Airflow's lists of runs, and what they lack, as the note of each run.

The plugin registers these functions, which Airflow's scheduler calls for every run of every DAG:
tasks cannot write notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl

from embedding.kernel.errors import YeoronError
from embedding_airflow.assets import LACKS
from embedding_airflow.choices import FormSettings, window_of_id

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

_LONGEST = 1_000
"""Characters of a note that Airflow keeps."""


@hookimpl
def on_dag_run_running(dag_run: DagRun, msg: str) -> None:  # noqa: ARG001 - Airflow's names
    """Write the note, unless a person has written one."""
    dag = dag_run.get_dag()
    if "yeoron" not in dag.tags or dag_run.note:
        return
    when = dag_run.logical_date or dag_run.run_after or datetime.now(UTC)
    events = [event.extra or {} for event in dag_run.consumed_asset_events]
    named = windows_of(set(dag.params), dag_run.conf or {}, events, when)
    if named:
        dag_run.note = f"{'Window' if len(named) == 1 else 'Windows'} {', '.join(named)}"[:_LONGEST]
    _add(dag_run, [sentence for event in events for sentence in event.get(LACKS, ())])


@hookimpl
def on_dag_run_success(dag_run: DagRun, msg: str) -> None:  # noqa: ARG001 - Airflow's names
    """Add what the snapshot of the run lacks, also to the note of a person."""
    from airflow.models.xcom import XComModel
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    if session is None or "yeoron" not in dag_run.get_dag().tags:
        return
    wanted = XComModel.get_many(run_id=dag_run.run_id, dag_ids=dag_run.dag_id, key=LACKS)
    _add(
        dag_run,
        [
            str(sentence)
            for value in session.scalars(wanted)
            for sentence in XComModel.deserialize_value(value)
        ],
    )


def _add(dag_run: DagRun, sentences: Iterable[str]) -> None:
    for sentence in sentences:
        note = dag_run.note or ""
        if sentence not in note:
            dag_run.note = f"{note} {sentence}".strip()[:_LONGEST]


def windows_of(
    params: Iterable[str],
    conf: Mapping[str, Any],
    events: Iterable[Mapping[str, Any]],
    when: datetime,
) -> list[str]:
    """Labels of the windows that a run is about; none where that is not known before it runs.

    params  names of the DAG's params, which say what its runs are about
    conf    what was given for them
    events  extras of the asset events that started the run
    when    the run's logical date
    """
    if "window" in params:
        from embedding_airflow.windows import run_window

        try:
            return [run_window(conf, when, FormSettings.read().calendar).label]
        except YeoronError:
            return []  # its first task says what is wrong
    if "snapshot_id" in params:
        windows = [str(event["window"]) for event in events if event.get("window")]
        asked = str(conf.get("snapshot_id") or "")
        return list(dict.fromkeys(windows)) or [name for name in [window_of_id(asked)] if name]
    return []
