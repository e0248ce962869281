"""`make demo`: bring everything up, play a dated corpus, wait for each window, say what moved."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

from embedding.kernel.durable import replaced
from embedding.kernel.errors import PlatformError
from embedding.platform.addresses import addresses
from embedding.platform.notes import notes
from embedding.platform.operate import all_services, bring_down, bring_up
from embedding.platform.supervisor import Supervisor
from embedding.settings import Settings, platform_login
from embedding.snapshots.store import SnapshotStore
from embedding.sources.config import load_sources
from yeoron_demo.airflow_api import AirflowApi
from yeoron_demo.demo_settings import DemoPlan, plan_demo, simweb_service, write_demo_settings
from yeoron_demo.pace import Pacer
from yeoron_demo.planted import called, incomplete, planted, verdict
from yeoron_demo.summary import (
    PLANTED_PART,
    Check,
    evaluations,
    of_report,
    of_sources,
    print_summary,
    reports,
)
from yeoron_demo.watch import EVALUATE, STREAM, TREND, Watch, watch_until_done

READY_SECONDS = 1_800.0
"""Longest wait for the services, and for the nodes: a busy machine takes minutes to start Airflow
and to compile kernels."""


def run_demo(
    settings: Settings, corpus: Path | None, seconds_per_month: float | None, console: Console
) -> int:
    """Run the demo; 0 only when every part really ran. The services stay up."""
    home = settings.paths.home / "demo"
    plan = plan_demo(corpus, seconds_per_month)
    console.print(
        f"Playing {plan.documents:,} documents of {len(plan.windows)} months "
        f"({plan.windows[0].label} to {plan.windows[-1].label}) from {plan.corpus}",
        markup=False,
        highlight=False,
    )
    if bring_down(settings):
        console.print("Ended the platform that was running.")
    demo = write_demo_settings(settings, home)
    started = time.monotonic()
    with console.status("Starting the platform …") as line:
        supervisor = bring_up(
            demo,
            extra=[simweb_service(demo, *plan.arguments)],
            progress=lambda name: line.update(f"Started {name} …"),
            timeout=READY_SECONDS,
        )
    console.print(f"All services are up after {time.monotonic() - started:.0f} s.")
    _say_what_comes(demo, console)
    airflow = AirflowApi(demo.airflow_url, *platform_login(demo.paths.airflow))
    try:
        watch = _play(demo, plan, started, airflow, supervisor, console)
        summary = _summarise(demo, plan, watch, airflow, supervisor, time.monotonic() - started)
    finally:
        airflow.close()
    with replaced(home / "summary.json") as file:
        file.write(json.dumps(summary, ensure_ascii=False, indent=2, default=str).encode())
    print_summary(summary, [*reports(demo).values()], console)
    console.print(
        f"While it runs, `yeoron trends stories`, `yeoron status` and `yeoron sources list` show "
        f"the demo. After `make down`, add --settings {home / 'settings.toml'}.",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    return 0 if all(check["ran"] for check in summary["checks"]) else 1


def _say_what_comes(settings: Settings, console: Console) -> None:
    where = addresses(settings)
    lines = (
        f"Trends page: {where['Trends']}, with the login of Airflow: {where['Airflow']}",
        (
            "It shows at once what is being read, and each month as soon as it is learnt. A month "
            "plays as fast as the nodes learn it, which is some minutes in all on two cores."
        ),
    )
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _play(
    settings: Settings,
    plan: DemoPlan,
    started: float,
    airflow: AirflowApi,
    supervisor: Supervisor,
    console: Console,
) -> Watch:
    watch = Watch(plan.windows, started)
    airflow.wait_for_dags((STREAM, EVALUATE, TREND))
    for window in plan.windows:
        airflow.trigger(
            STREAM,
            watch.run_id(window),
            # No source is silent: the web waits for whoever reads it, however slow.
            {"window": window.label, "unit": "month", "idle_after_s": 86_400, "poll_s": 1},
        )
    with console.status("Waiting for the nodes …"):
        _wait_for_nodes(settings)
    web = f"http://127.0.0.1:{settings.ports.simweb}"
    with Pacer(plan.windows, web, settings.server_status_url):
        httpx.post(f"{web}/control/start", timeout=10, trust_env=False).raise_for_status()
        watch_until_done(watch, settings, airflow, supervisor, console, documents=plan.documents)
    return watch


def _wait_for_nodes(settings: Settings, timeout: float = READY_SECONDS) -> None:
    """Wait until every node reads and has analyser and kernels loaded: then the past plays.

    What is published before is late by as long as that takes, which is most where kernels have
    to be compiled first: sources would be taken for silent meanwhile.
    """
    deadline = time.monotonic() + timeout
    while True:
        status = httpx.get(settings.server_status_url, timeout=10, trust_env=False).json()
        reports = [node["report"] or {} for node in status["nodes"].values()]
        reading = [report for report in reports if "event_now" in report]
        ready = [report for report in reading if report.get("prepared") and report.get("warm")]
        if len(ready) >= settings.cluster.nodes:
            return
        if time.monotonic() > deadline:
            raise PlatformError(
                f"{len(ready)} of {settings.cluster.nodes} nodes are ready after {timeout:.0f} s; "
                f"see {settings.paths.logs}/dask-worker-0.log and opinion_stream in Airflow."
            )
        time.sleep(1)


def _summarise(
    settings: Settings,
    plan: DemoPlan,
    watch: Watch,
    airflow: AirflowApi,
    supervisor: Supervisor,
    seconds: float,
) -> dict[str, Any]:
    status = watch.status
    metrics = evaluations(settings)
    reports_by_id = reports(settings)
    snapshots = []
    trends = []
    store = SnapshotStore(settings.snapshot_store)
    for ref in store.list():
        label = f"{ref.window_start:%Y-%m}"
        window = status["windows"].get(label, {})
        snapshots.append(
            {
                "id": ref.id,
                "window": label,
                "words": ref.words,
                "documents": window.get("documents", 0),
                "evaluation": metrics.get(ref.id, {}),
            }
        )
        report = reports_by_id.get(ref.id)
        if report is not None:
            trends.append(of_report(report))
    checks = _checks(settings, plan, watch, airflow, supervisor, len(metrics), trends)
    contrasts = of_sources(store, settings.trends) if snapshots else []
    lacks = incomplete(store)
    where = f"see {settings.trends_url} and {settings.paths.logs}/server.log"
    checks.append(
        Check("usage", not lacks, f"{', '.join(lacks)}; {where}" if lacks else "complete")
    )
    if plan.corpus == "generated":
        right, sentence = verdict(planted(), called(trends, contrasts))
        checks.append(Check(PLANTED_PART, right, sentence if right else f"{sentence}; {where}"))
    return {
        "corpus": plan.corpus,
        "config": _config(settings),
        "sources": status["sources"],
        "documents": status["documents"],
        "tokens": sum(source["tokens"] for source in status["sources"].values()),
        "tokens_trained": status["tokens"],
        "words_per_second": watch.peak_words_per_second,
        "lag": status["lag"],
        "seconds": round(seconds, 1),
        "first_month_seconds": round(watch.first_learnt - watch.started, 1),
        "peak_memory_gb": round(watch.peak_bytes / 2**30, 2),
        "snapshots": snapshots,
        "trends": trends,
        "contrasts": contrasts,
        "checks": [vars(check) for check in checks],
        "notes": notes(status, simulated=True),
        "addresses": addresses(settings),
    }


def _config(settings: Settings) -> dict[str, Any]:
    """What the figures depend on, without paths and secrets."""
    sections = ("cluster", "text", "stream", "model", "node", "sync")
    chosen = {name: getattr(settings, name).model_dump(mode="json") for name in sections}
    server = settings.server.model_dump(mode="json", include={"window", "cut", "min_count"})
    crawl = settings.crawl.model_dump(mode="json", include={"rate", "per_host", "concurrency"})
    return {**chosen, "server": server, "crawl": crawl}


def _checks(
    settings: Settings,
    plan: DemoPlan,
    watch: Watch,
    airflow: AirflowApi,
    supervisor: Supervisor,
    runs: int,
    trends: list[dict[str, Any]],
) -> list[Check]:
    status = watch.status
    skipped = _without_browser(status)
    silent = [
        s.name
        for s in load_sources(settings.paths.sources)
        if s.name not in skipped and not status["sources"].get(s.name, {}).get("documents")
    ]
    services = {s.name for s in all_services(settings)}
    states = supervisor.states()
    down = sorted(name for name in services if states.get(name) != "RUNNING")
    snapshots = len(SnapshotStore(settings.snapshot_store).list())
    windows = len(plan.windows)
    nodes = [name for name, node in status["nodes"].items() if node.get("tokens")]
    inside = airflow.page_status("/yeoron/", logged_in=True)
    outside = airflow.page_status("/yeoron/", logged_in=False)
    dask = httpx.get(settings.dask_dashboard_url, timeout=20, trust_env=False).status_code
    return [
        Check("services", not down, f"not running: {', '.join(down)}" if down else "all run"),
        Check("sources", not silent, f"no document from: {', '.join(silent) or 'none'}"),
        Check("nodes", len(nodes) >= settings.cluster.nodes, f"{len(nodes)} nodes trained"),
        Check("snapshots", snapshots >= windows, f"{snapshots} for {windows} windows"),
        Check("evaluation", runs >= windows, f"{runs} MLflow runs"),
        Check("trend reports", len(trends) >= windows, f"{len(trends)} reports"),
        Check(
            "trends page",
            inside == 200 and outside in {301, 302, 303, 307, 401, 403},
            f"HTTP {inside} with the login, {outside} without",
        ),
        Check("Dask dashboard", dask == 200, f"HTTP {dask}"),
    ]


def _without_browser(status: dict[str, Any]) -> set[str]:
    """Rendered sources that were skipped because no Chromium runs here; the notes say so."""
    reports = [(node.get("report") or {}).get("sources") or {} for node in status["nodes"].values()]
    rows = [item for report in reports for item in report.items()]
    return {name for name, row in rows if (row.get("errors") or {}).get("no_browser")}
