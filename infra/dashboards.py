"""Write infra/observability/dashboards: what Grafana shows of Prometheus' figures.

python infra/dashboards.py            write the dashboards
python infra/dashboards.py --check    exit code 1 if one is not up to date
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import generated_files

FOLDER = Path(__file__).resolve().parent / "observability" / "dashboards"
_WIDTH, _HEIGHT, _COLUMNS = 8, 7, 3
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class Panel:
    """A figure over time.

    unit     as Grafana calls it: short, s, bytes, Bps, ops, percentunit
    queries  legend → expression of Prometheus
    """

    title: str
    unit: str
    queries: dict[str, str]
    text: str = ""


def one(title: str, unit: str, expression: str, legend: str = "", text: str = "") -> Panel:
    """A panel of one query."""
    return Panel(title, unit, {legend or title: expression}, text)


DASHBOARDS: dict[str, tuple[str, tuple[Panel, ...]]] = {
    "platform": (
        "Yeoron: platform",
        (
            one("Words learnt", "ops", "yeoron_words_per_second", "words/s"),
            Panel(
                "Nodes",
                "short",
                {"take part": "yeoron_active_nodes", "known": "count(yeoron_node_active)"},
            ),
            one(
                "Reasons why the server does not do all of its work",
                "short",
                "yeoron_ailing_reasons",
                "reasons",
                "The sentences are at /health of the server.",
            ),
            one("Lag from publication", "s", "yeoron_lag_seconds", "quantile {{quantile}}"),
            Panel(
                "Windows",
                "short",
                {"read, not in a snapshot": "yeoron_open_windows", "snapshots": "yeoron_snapshots"},
            ),
            one("Age of the last checkpoint", "s", "yeoron_checkpoint_age_seconds", "age"),
            one("Memory of the server", "bytes", "process_resident_memory_bytes", "resident"),
            Panel(
                "Files of the server",
                "short",
                {"open": "process_open_fds", "allowed": "process_max_fds"},
            ),
            one("Alarms of sources", "short", "sum by (event) (yeoron_source_alarm)", "{{event}}"),
        ),
    ),
    "crawl": (
        "Yeoron: crawl",
        (
            one(
                "Pages read",
                "ops",
                "sum by (source) (rate(yeoron_source_fetched_pages_total[5m]))",
                "{{source}}",
            ),
            one(
                "Failures by reason",
                "ops",
                "sum by (reason) (rate(yeoron_source_faults_total[5m]))",
                "{{reason}}",
            ),
            one("Alarms that stand", "short", "yeoron_source_alarm == 1", "{{source}}: {{event}}"),
            one(
                "Documents learnt",
                "ops",
                "sum by (source) (rate(yeoron_source_documents_total[5m]))",
                "{{source}}",
            ),
            one(
                "Lag of sources, 95 of 100 documents",
                "s",
                'yeoron_source_lag_seconds{quantile="0.95"}',
                "{{source}}",
            ),
            one(
                "Late documents",
                "ops",
                "sum by (source) (rate(yeoron_source_late_documents_total[15m]))",
                "{{source}}",
                "They came after the snapshot of their window was cut.",
            ),
            one(
                "Tokens read, by node",
                "ops",
                "sum by (node) (yeoron_source_read_tokens_per_second)",
                "{{node}}",
            ),
            Panel(
                "Leases",
                "short",
                {
                    "largest load over mean": "yeoron_read_imbalance",
                    "sources moved in an hour": "increase(yeoron_source_moves_total[1h])",
                },
            ),
            one(
                "Waiting for the frontier's database",
                "s",
                "yeoron_node_frontier_away_seconds",
                "{{node}}",
            ),
        ),
    ),
    "training": (
        "Yeoron: training",
        (
            one("Words by node", "ops", "yeoron_node_words_per_second", "{{node}}"),
            Panel(
                "Tokens",
                "ops",
                {
                    "fresh": "rate(yeoron_tokens_total[5m])",
                    "replayed": "rate(yeoron_replayed_tokens_total[5m])",
                },
            ),
            one("Loss before learning, nats a pair", "short", "yeoron_source_nll", "{{source}}"),
            one("Waiting in the queue, tokens", "short", "yeoron_node_queue_tokens", "{{node}}"),
            one(
                "Clocks behind the furthest node",
                "short",
                "max(yeoron_node_clock) - yeoron_node_clock",
                "{{node}}",
            ),
            one(
                "Staleness of a push, 95 of 100",
                "short",
                "histogram_quantile(0.95, rate(yeoron_push_staleness_bucket[5m]))",
                "pushes",
            ),
            Panel(
                "Vocabulary",
                "short",
                {
                    "words with a row": "yeoron_vocabulary_words",
                    "candidates": "yeoron_vocabulary_candidates",
                    "rare words": "yeoron_rare_words",
                },
            ),
            one(
                "Eojeols known without an analysis",
                "percentunit",
                "yeoron_text_known_ratio",
                "{{node}}",
            ),
            one(
                "Personal data masked",
                "ops",
                "sum by (kind) (rate(yeoron_text_masked_total[5m]))",
                "{{kind}}",
            ),
        ),
    ),
    "server": (
        "Yeoron: parameter server",
        (
            one("Pushes applied", "ops", "rate(yeoron_pushes_total[5m])", "pushes/s"),
            Panel(
                "Rows",
                "ops",
                {
                    "received": "yeoron_pushed_rows_per_second",
                    "sent": "yeoron_pulled_rows_per_second",
                },
            ),
            Panel(
                "Bytes",
                "Bps",
                {
                    "received": "rate(yeoron_received_bytes_total[5m])",
                    "sent": "rate(yeoron_sent_bytes_total[5m])",
                },
            ),
            Panel(
                "Pushes that brought nothing",
                "ops",
                {
                    "too late": "rate(yeoron_dropped_pushes_total[5m])",
                    "taken before": "rate(yeoron_duplicate_pushes_total[5m])",
                },
            ),
            one(
                "Messages refused",
                "ops",
                "sum by (kind) (rate(yeoron_refused_messages_total[5m]))",
                "{{kind}}",
            ),
            Panel(
                "Longest pause of training",
                "s",
                {
                    "checkpoint": "yeoron_checkpoint_pause_seconds",
                    "snapshot": "yeoron_cut_pause_seconds",
                },
            ),
            one(
                "Checkpoints that failed",
                "short",
                "increase(yeoron_checkpoint_failures_total[1h])",
                "in an hour",
            ),
            one(
                "Shards: log behind the primary", "short", "yeoron_shard_behind", "shard {{shard}}"
            ),
            one("Server groups: lag", "s", "yeoron_group_lag_seconds", "group {{group}}"),
        ),
    ),
}


def dashboard(name: str) -> dict[str, Any]:
    """A dashboard as Grafana imports it."""
    title, panels = DASHBOARDS[name]
    return {
        "uid": f"yeoron-{name}",
        "title": title,
        "tags": ["yeoron"],
        "timezone": "browser",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Prometheus",
                    "type": "datasource",
                    "query": "prometheus",
                }
            ]
        },
        "panels": [_panel(at, each) for at, each in enumerate(panels)],
    }


def _panel(at: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(at, _COLUMNS)
    return {
        "id": at + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.text,
        "datasource": _SOURCE,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}},
        "targets": [
            {
                "refId": chr(65 + i),
                "expr": expression,
                "legendFormat": legend,
                "datasource": _SOURCE,
            }
            for i, (legend, expression) in enumerate(panel.queries.items())
        ],
    }


def files() -> dict[Path, str]:
    """Every dashboard as the text of its file."""
    return {
        FOLDER / f"{name}.json": json.dumps(dashboard(name), indent=1, ensure_ascii=False) + "\n"
        for name in DASHBOARDS
    }


if __name__ == "__main__":
    sys.exit(generated_files.main(files()))
