"""From the form's choices to trainings: the grid, and the one place that calls the trainer."""

from __future__ import annotations

import json
import math
import shutil
import uuid
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedding.errors import ConfigError

if TYPE_CHECKING:
    from embedding.records import SnapshotRef
    from embedding.settings import Settings

LIMIT = 32
"""Combinations in one comparison; each is a whole training."""


def settings_grid(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination of the params `policies`, `models` and `dims`, with what they share.

    Each is a dict of `policy`, `model`, `dim`, `corpus`, `nodes`, `tokens`, `epochs`. Raises
    ConfigError for more than LIMIT of them.
    """
    shared = {key: params[key] for key in ("corpus", "nodes", "tokens", "epochs")}
    grid = [
        {"policy": policy, "model": model, "dim": dim, **shared}
        for policy, model, dim in product(params["policies"], params["models"], params["dims"])
    ]
    if len(grid) > LIMIT:
        raise ConfigError(
            f"params policies, models and dims make {len(grid)} combinations; at most {LIMIT} are "
            "accepted, each is a whole training."
        )
    return grid


def label_of(setting: Mapping[str, Any]) -> str:
    """Short name of a setting, in Airflow, in MLflow and as a folder."""
    return f"{setting['model']}-{setting['dim']}-{setting['policy']}"


def train_setting(
    settings: Settings, setting: Mapping[str, Any], store: Path
) -> tuple[dict[str, float], SnapshotRef]:
    """Train one setting to its end; its snapshot goes to the folder `store`.

    Returns the training's figures (`loss`, `words_per_second`, `train_seconds`,
    `tokens_trained`) with those of the snapshot, and the snapshot. Raises InputError for a corpus
    that cannot be read, ConfigError for settings that do not go together.
    """
    from embedding.config import validate
    from embedding.evaluation.evaluate import evaluate_snapshot
    from embedding.snapshots.store import SnapshotStore
    from embedding.training import TrainRequest, train_corpus

    corpus = Path(setting["corpus"]) if setting["corpus"] else generated_corpus(settings)
    chosen = {key: setting[key] for key in ("nodes", "tokens", "epochs")}
    model = {**settings.model.model_dump(), "model": setting["model"], "dim": setting["dim"]}
    sync = {**settings.sync.model_dump(), "policy": setting["policy"]}
    given = {
        **chosen,
        "corpus": corpus,
        "out": store,
        "model": model,
        "sync": sync,
        "text": settings.text.model_dump(),
        "device": settings.server.device,
        "min_count": settings.server.min_count,
    }
    # A retried task begins anew, and a training takes no store that holds snapshots.
    shutil.rmtree(store, ignore_errors=True)
    result = train_corpus(validate(TrainRequest, given, "compare_training"))
    ref = result.snapshots[-1]
    judged = evaluate_snapshot(
        SnapshotStore(str(store)).open(ref.id), settings.evaluation.gold, settings.evaluation.device
    )
    figures = {
        "loss": result.loss,
        "words_per_second": result.words_per_second,
        "train_seconds": result.train_seconds,
        "tokens_trained": float(result.tokens_trained),
    }
    # A corpus too small to learn from has no loss, and an XCom takes finite numbers only.
    merged = {**judged.metrics, **figures}
    return {name: value for name, value in merged.items() if math.isfinite(value)}, ref


def generated_corpus(settings: Settings) -> Path:
    """The invented corpus as a dated file under the platform's home; written once."""
    from embedding.simweb.config import SimwebConfig
    from embedding.simweb.generated import generate

    path = settings.paths.home.resolve() / "generated-corpus.jsonl"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        with draft.open("w", encoding="utf-8") as file:
            for document in generate(SimwebConfig()).documents:
                line = {
                    "date": document.when.isoformat(),
                    "title": document.title,
                    "text": document.text,
                }
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        draft.replace(path)
    return path
