"""The params of the DAGs: type, description and choices of each field of the run form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from airflow.sdk import Param

import embedding
from embedding.exchange.compression.traits import COMPRESSIONS
from embedding.exchange.topologies.traits import SERVERS, TOPOLOGIES
from embedding.kernel.config import field_meanings
from embedding.models.traits import MODELS
from embedding.server.policies.traits import POLICIES
from embedding_airflow.choices import choices
from embedding_airflow.windows import LABEL

WINDOW_UNITS = ["auto", "hour", "day", "week", "month"]
_FILES = {"training": "request.py"}
FOR_EXPERTS = "For experts"
"""The second part of a form, closed at first: what most runs leave as it is."""
TOPOLOGY_HELP = "How rows travel; servers: two server groups, each with all rows."


def stream_params() -> dict[str, Param]:
    """`opinion_stream`: which window, and how long to wait for it."""
    return {
        "window": Param(
            None,
            type=["null", "string"],
            pattern=LABEL,
            title="Window",
            description="Event time to cut: 2020-02 (a month), 2020-02-03 (a day) or "
            "2020-02-03T04 (an hour). Empty: the last window that has ended.",
        ),
        "unit": Param(
            "auto",
            type="string",
            enum=WINDOW_UNITS,
            title="Unit",
            description="Length of the window. auto: as the label says, else what the server "
            "counts in. With week, a day stands for the week that holds it.",
        ),
        "window_start": _moment(
            "Window start", "Start of a window of any length; give the end too."
        ),
        "window_end": _moment("Window end", "End (exclusive) of a window of any length."),
        "on_timeout": Param(
            "go_on",
            type="string",
            section=FOR_EXPERTS,
            enum=["go_on", "fail"],
            title="On timeout",
            description="When a source group has not passed the window in time: cut what was read "
            "and say so, or fail.",
        ),
        "time_limit_s": _seconds(
            "Time limit", 86_400, 1, "Longest wait for a source group, in seconds."
        ),
        "idle_after_s": _seconds(
            "Idle after",
            60,
            1,
            "A source that is silent for so many seconds is waited for no longer once the window "
            "is over for the others.",
        ),
        "poll_s": _seconds(
            "Poll interval", 3, 0.1, "Seconds between two looks at the server's status."
        ),
        "unreachable_s": _seconds(
            "Unreachable after",
            120,
            1,
            "Seconds without any answer of the server after which the task is retried.",
        ),
    }


def snapshot_params() -> dict[str, Param]:
    """`evaluate_snapshot` and `trend_report` when they are run by hand."""
    return {
        "snapshot_id": Param(
            "latest",
            type="string",
            minLength=1,
            title="Snapshot",
            examples=["latest", *choices().snapshots],
            description="Pick a snapshot, or give its id; latest is the newest one. A run that an "
            "asset event started takes the snapshots of its events instead.",
        )
    }


def rollback_params() -> dict[str, Param]:
    """`rollback`: where to go back to, what to leave out, why, and whether to do it."""
    known = choices()
    return {
        "to": _offered(
            "Snapshot",
            ["nothing", *known.snapshots],
            "The snapshot to go back to, or `nothing`.",
        ),
        "source": _offered(
            "Source", known.sources, "A poisoned source: it is blocked, and learnt without."
        ),
        "since": _offered(
            "First window", known.windows, "The first window to be forgotten, as in 2020-02."
        ),
        "reason": Param(
            type="string",
            minLength=1,
            title="Reason",
            description="Kept with the withdrawn snapshots and the blocked source.",
        ),
        "confirm": _offered(
            "Confirm",
            ["nothing", *known.snapshots],
            "The snapshot to go back to (or `nothing`). Empty: a dry run, whose log says what "
            "would go and what to enter here.",
        ),
    }


def discover_params() -> dict[str, Param]:
    """`discover_sources`: where to begin, and how many requests to spend."""
    return {
        "seeds": Param(
            None,
            type=["null", "array"],
            items={"type": "string", "pattern": "^https?://"},
            title="Seeds",
            description=f"{_meaning('crawl', 'DiscoverConfig', 'seeds')} Empty: discover.seeds.",
        ),
        "requests": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            title="Requests",
            description=f"{_meaning('crawl', 'DiscoverConfig', 'requests')} Empty: as set.",
        ),
    }


def training_params() -> dict[str, Param]:
    """`compare_training`: the grid of settings, one mapped run for each that can work."""
    return {
        "corpus": _offered(
            "Corpus",
            choices().corpora,
            f"{_meaning('training', 'TrainRequest', 'corpus')} Empty: an invented corpus.",
        ),
        "policies": _choices(
            "Policies", ["bsp", "ssp"], POLICIES, _meaning("server", "SyncConfig", "policy")
        ),
        "compressions": _choices(
            "Compressions",
            ["fp16"],
            COMPRESSIONS,
            _meaning("exchange", "ExchangeConfig", "compression"),
        ),
        "topologies": _choices("Topologies", ["ps"], (*TOPOLOGIES, SERVERS), TOPOLOGY_HELP),
        "models": _choices("Models", ["sgns"], MODELS, _meaning("models", "ModelConfig", "model")),
        "dims": Param(
            [64],
            type="array",
            items={"type": "integer", "minimum": 2, "maximum": 2048},
            minItems=1,
            uniqueItems=True,
            title="Dimensions",
            description=_meaning("models", "ModelConfig", "dim"),
        ),
        "nodes": _number("nodes", 2, 1, 64),
        "tokens": _number("tokens", 200_000, 1_000, None),
        "epochs": _number("epochs", 1, 1, 1_000),
        "name": Param(
            "compare_training",
            type="string",
            minLength=1,
            title="Name",
            description="Name of the parent run in MLflow.",
        ),
    }


def _meaning(room: str, section: str, name: str) -> str:
    """What a setting means, by its docstring. Rooms are not imported: a DAG is parsed often."""
    file = Path(embedding.__file__).parent / room / _FILES.get(room, "config.py")
    return field_meanings(file.read_text(encoding="utf-8"), section)[name]


def _moment(title: str, description: str) -> Param:
    kind: dict[str, Any] = {
        "type": ["null", "string"],
        "format": "date-time",
        "section": FOR_EXPERTS,
    }
    return Param(None, title=title, description=description, **kind)


def _offered(title: str, offered: Sequence[str], description: str) -> Param:
    """An optional text; the form offers some values to pick from, and takes others too."""
    kind: dict[str, Any] = {"type": ["null", "string"], "examples": list(offered)}
    return Param(None, title=title, description=description, **kind)


def _seconds(title: str, default: float, minimum: float, description: str) -> Param:
    kind: dict[str, Any] = {"type": "number", "minimum": minimum, "section": FOR_EXPERTS}
    return Param(default, title=title, description=description, **kind)


def _number(name: str, default: int, least: int, most: int | None) -> Param:
    """A field of a training's request."""
    kind: dict[str, Any] = {"type": "integer", "minimum": least}
    if most is not None:
        kind["maximum"] = most
    meaning = _meaning("training", "TrainRequest", name)
    return Param(default, title=name.capitalize(), description=meaning, **kind)


def _choices(title: str, default: list[str], accepted: Iterable[str], description: str) -> Param:
    """Several of a few; `examples` makes the form show them as a list to pick from."""
    names = list(accepted)
    return Param(
        default,
        type="array",
        items={"type": "string", "enum": names},
        examples=names,
        title=title,
        minItems=1,
        uniqueItems=True,
        description=description.replace("{policies}", ", ".join(names)),
    )
