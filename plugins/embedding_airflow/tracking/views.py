"""Columns and charts that MLflow's list of runs opens with.

MLflow keeps a view that somebody shares in a tag of the experiment, and opens it where an address
names the tag's key. The tags written here are such views (MLflow 3.17: the state of
`ExperimentPageUIState` as JSON); a key that MLflow does not know opens the usual list.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_TAG = "mlflow.sharedViewState."
_KEY = "viewStateShareKey"
SNAPSHOTS_VIEW = "yeoron-snapshots"
"""Key of the view of the snapshots' runs."""
MEASURED = ("nll", "held_out_loss", "words_per_second", "bytes_per_token")
"""Figures of a training that stand first."""


def snapshots_view() -> tuple[str, str]:
    """The tag of the snapshots' view, key and value: gate and collapse before the rest."""
    figures = ("gate", "nll", "mean_cosine", "first_axis", "words")
    columns = ["attributes.`Duration`", *map(_metric, figures), _param("window"), _param("policy")]
    return f"{_TAG}{SNAPSHOTS_VIEW}", json.dumps(_state(columns, ()), ensure_ascii=False)


def comparison_view(parent: str, varied: Sequence[str]) -> tuple[str, str]:
    """The tag of one comparison's view, whose key is the parent's run id.

    varied  params that differ between its trainings: columns beside the figures, and the first axes
            of the parallel coordinates
    """
    columns = [*map(_param, varied), *map(_metric, MEASURED), "attributes.`Duration`"]
    charts = (
        {
            "type": "PARALLEL",
            "uuid": f"parallel-{parent}",
            "metricSectionId": "yeoron",
            "deleted": False,
            "isGenerated": False,
            "runsCountToCompare": 100,
            "selectedParams": list(varied),
            "selectedMetrics": list(MEASURED),
            "showAllRuns": True,
        },
    )
    state = {**_state(columns, charts), "searchFilter": f"tags.`mlflow.parentRunId` = '{parent}'"}
    return f"{_TAG}{parent}", json.dumps(state, ensure_ascii=False)


def address(experiment: str, key: str, *, charts: bool = False) -> str:
    """The part of MLflow's address after the host that opens a view."""
    mode = "&compareRunsMode=CHART" if charts else ""
    return f"/#/experiments/{experiment}/runs?{_KEY}={key}{mode}"


def _state(columns: Sequence[str], charts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What a page of runs needs to know; the rest is MLflow's own choice."""
    state: dict[str, Any] = {
        "searchFilter": "",
        "orderByKey": "attributes.`start_time`",
        "orderByAsc": False,
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": list(columns),
        "runsExpanded": {},
        "runsPinned": [],
        "runsHidden": [],
        "runsHiddenMode": "FIRST_20_RUNS",
        "runsVisibilityMap": {},
        "viewMaximized": False,
        "runListHidden": False,
        "isAccordionReordered": False,
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "groupBy": None,
        "groupsExpanded": {},
        "autoRefreshEnabled": True,
        "globalLineChartConfig": {
            "xAxisKey": "step",
            "lineSmoothness": 0,
            "selectedXAxisMetricKey": "",
        },
    }
    if charts:
        state["compareRunCharts"] = list(charts)
        section = {"uuid": "yeoron", "name": "Comparison", "display": True, "columns": 1}
        state["compareRunSections"] = [
            {**section, "isReordered": False, "deleted": False, "isGenerated": False}
        ]
    return state


def _param(name: str) -> str:
    return f"params.`{name}`"


def _metric(name: str) -> str:
    return f"metrics.`{name}`"
