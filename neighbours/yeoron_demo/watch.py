"""Watching a demo run: one look at every part, and the line that shows progress."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from embedding.kernel.errors import PlatformError
from embedding.kernel.records import Window
from embedding.platform.processes import memory
from embedding.platform.supervisor import Supervisor
from embedding.settings import Settings
from yeoron_demo.airflow_api import AirflowApi

STREAM, EVALUATE, TREND = "opinion_stream", "evaluate_snapshot", "trend_report"
STILL_SECONDS = 900.0
"""After so long in which nothing was learnt, cut or reported on, a demo has failed. How long it
takes in all depends on the machine."""
DROPPED_SECONDS = 15.0
"""After so long without a run that is under way, an event that no run names was dropped."""


@dataclass
class Watch:
    """What was seen so far; peaks are kept, the rest is the latest look.

    started, first_learnt  when the demo began, and when its first window was cut (monotonic
                           seconds)
    """

    windows: Sequence[Window]
    started: float = 0.0
    first_learnt: float = math.nan
    status: dict[str, Any] = field(default_factory=dict)
    runs: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    peak_bytes: int = 0
    peak_words_per_second: float = 0.0
    at_rest: dict[str, float] = field(default_factory=dict)
    """DAG → since when (monotonic seconds) its runs are over while a snapshot lacks one."""

    def run_id(self, window: Window) -> str:
        return f"demo__{window.label}"

    def states(self, dag: str) -> list[str]:
        return [str(run["state"]) for run in self.runs.get(dag, [])]

    def learnt(self) -> list[str]:
        """Labels of the windows that have a snapshot."""
        known = self.status.get("windows") or {}
        labels = [window.label for window in self.windows]
        return [label for label in labels if (known.get(label) or {}).get("snapshot")]

    def missing(self, dag: str) -> dict[str, str]:
        """Label → id of the snapshots that no run of a DAG is about."""
        known = self.status.get("windows") or {}
        named = {name for run in self.runs.get(dag, []) for name in run.get("snapshots", ())}
        cut = {label: str(known[label]["snapshot"]) for label in self.learnt()}
        return {label: name for label, name in cut.items() if name not in named}

    @property
    def state(self) -> object:
        """What differs from an earlier look while the demo goes on."""
        learnt = [self.status.get(name) for name in ("documents", "tokens", "replayed_tokens")]
        return learnt, self.learnt(), [self.states(dag) for dag in self.runs]

    @property
    def all_cut(self) -> bool:
        """Every window has its snapshot, and its run has ended."""
        return self.states(STREAM).count("success") >= len(self.windows) <= len(self.learnt())

    def over(self, dag: str) -> bool:
        """Every run of a DAG has ended well."""
        return set(self.states(dag)) <= {"success"}

    @property
    def done(self) -> bool:
        """Every window was cut, and each snapshot was evaluated and reported on."""
        later = (EVALUATE, TREND)
        return self.all_cut and all(self.over(dag) and not self.missing(dag) for dag in later)

    def failed(self) -> tuple[str, str] | None:
        """(dag, run id) of a failed run."""
        for dag, runs in self.runs.items():
            for run in runs:
                if run["state"] == "failed":
                    return dag, str(run["dag_run_id"])
        return None


def look(watch: Watch, settings: Settings, airflow: AirflowApi, client: httpx.Client) -> None:
    """Look once at the server and at Airflow."""
    try:
        watch.status = client.get(settings.server_status_url).raise_for_status().json()
    except (httpx.HTTPError, ValueError):
        return
    watch.peak_words_per_second = max(
        watch.peak_words_per_second, float(watch.status.get("words_per_second") or 0)
    )
    for dag in (STREAM, EVALUATE, TREND):
        watch.runs[dag] = airflow.runs(dag)
        if dag != STREAM:
            for run in watch.runs[dag]:
                events = airflow.get(f"/dags/{dag}/dagRuns/{run['dag_run_id']}/upstreamAssetEvents")
                run["snapshots"] = [event["extra"]["id"] for event in events["asset_events"]]
                run["snapshots"] += [(run.get("conf") or {}).get("snapshot_id")]


def start_dropped(watch: Watch, airflow: AirflowApi, now: float) -> None:
    """Start what Airflow will not start by itself before the next snapshot.

    Airflow 3.3 queues one event of an asset for each DAG. While a DAG is at its `max_active_runs`,
    a second event is merged into the one that waits, and the run that follows takes the events up
    to the first of them: the second one waits for the next event, which a demo does not have.
    """
    for dag in (EVALUATE, TREND):
        missing = watch.missing(dag)
        if not (watch.all_cut and watch.over(dag) and missing):
            watch.at_rest.pop(dag, None)
        elif now - watch.at_rest.setdefault(dag, now) > DROPPED_SECONDS:
            for label, name in missing.items():
                airflow.trigger(dag, f"demo__{label}", {"snapshot_id": name})
            del watch.at_rest[dag]


def watch_until_done(
    watch: Watch,
    settings: Settings,
    airflow: AirflowApi,
    supervisor: Supervisor,
    console: Console,
    *,
    documents: int,
    still: float = STILL_SECONDS,
) -> None:
    """Show progress until everything is done; raises PlatformError when a part fails, and where
    nothing goes on for `still` seconds.
    """
    state, since = watch.state, time.monotonic()
    bar = Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} documents"),
        TimeElapsedColumn(),
    )
    task = bar.add_task("Playing", total=documents)
    with (
        httpx.Client(timeout=10, trust_env=False) as client,
        Live(bar, console=console, refresh_per_second=2) as live,
    ):
        learnt: list[str] = []
        while not watch.done:
            look(watch, settings, airflow, client)
            start_dropped(watch, airflow, time.monotonic())
            for label in watch.learnt():
                if label not in learnt:
                    learnt.append(label)
                    now = time.monotonic()
                    watch.first_learnt = now if len(learnt) == 1 else watch.first_learnt
                    console.print(
                        f"{label} is learnt and on the page after {now - watch.started:.0f} s: "
                        f"{settings.trends_url}"
                    )
            watch.peak_bytes = max(watch.peak_bytes, memory(settings.paths.home))
            bar.update(task, completed=watch.status.get("documents", 0))
            live.update(Group(bar, _table(watch)))
            failed = watch.failed()
            if failed:
                tasks = ", ".join(airflow.failed_tasks(*failed)) or "a task"
                raise PlatformError(
                    f"{failed[0]}: run {failed[1]} failed in {tasks}; its log is in Airflow at "
                    f"{settings.airflow_url}."
                )
            if watch.state != state:
                state, since = watch.state, time.monotonic()
            elif time.monotonic() - since > still:
                raise PlatformError(
                    f"the demo stands still since {still:.0f} s: {_where(watch)}. The platform "
                    f"still runs: look at {settings.trends_url} and {settings.paths.logs}, or stop "
                    "it with `make down`."
                )
            _require_alive(supervisor)
            time.sleep(2.0)


def _require_alive(supervisor: Supervisor) -> None:
    for name, state in supervisor.states().items():
        if state == "FATAL":
            raise PlatformError(f"{name} died; the end of its log:\n{supervisor.log_tail(name)}")


def _where(watch: Watch) -> str:
    runs = [f"{dag} {'/'.join(watch.states(dag)) or 'no run'}" for dag in watch.runs]
    documents = watch.status.get("documents", 0)
    return f"{documents} documents learnt, watermark {watch.status.get('watermark')}, " + ", ".join(
        runs
    )


def _table(watch: Watch) -> Table:
    status = watch.status
    table = Table(box=None, show_header=False, pad_edge=False)
    lag = status.get("lag") or {}
    tokens, speed = status.get("tokens", 0), status.get("words_per_second", 0)
    table.add_row("tokens", f"{tokens:,} ({speed:,.0f}/s)")
    table.add_row("vocabulary", f"{status.get('vocabulary', 0):,} words")
    table.add_row("event time", str(status.get("watermark") or "–")[:16])
    table.add_row("lag", f"p50 {lag.get('p50_s') or 0:.1f} s, p95 {lag.get('p95_s') or 0:.1f} s")
    table.add_row("windows", _windows(watch))
    return table


def _windows(watch: Watch) -> str:
    known = watch.status.get("windows") or {}
    parts = []
    for window in watch.windows:
        entry = known.get(window.label) or {}
        mark = "cut" if entry.get("snapshot") else f"{entry.get('documents', 0)} documents"
        parts.append(f"{window.label} {mark}")
    return " · ".join(parts)
