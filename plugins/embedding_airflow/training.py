"""From the form's choices to trainings: the grid, and the one place that calls the trainer."""

from __future__ import annotations

import json
import math
import shutil
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from embedding.kernel.errors import ConfigError
from embedding_airflow.choices import choices

if TYPE_CHECKING:
    from embedding.kernel.records import SnapshotRef
    from embedding.settings import Settings
    from embedding.training import TrainRequest, TrainResult
    from embedding.training.request import TrainProgress
    from embedding_airflow.tracking.comparison import CurvePoint

LIMIT = 32
"""Combinations in one comparison; each is a whole training."""
CHOICES = {
    "policy": "policies",
    "compression": "compressions",
    "topology": "topologies",
    "model": "models",
    "dim": "dims",
}
"""What a setting chooses, and the param that names the choices."""
USUAL = {"compression": "fp16", "topology": "ps"}
"""Choices that a label does not name."""
TWO_GROUPS = {"kind": "ps", "server_groups": 2}
"""What `servers` among the topologies stands for."""
ROUNDS = 3
"""Rounds of L-BFGS that a training with sandblaster has at least, where it has as many blocks."""


def settings_grid(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination of the params that name several, with what they share.

    Each is a dict of `policy`, `compression`, `topology`, `model`, `dim`, `corpus`, `nodes`,
    `tokens`, `epochs`. Raises ConfigError for more than LIMIT of them.
    """
    shared = {key: params[key] for key in ("corpus", "nodes", "tokens", "epochs")}
    chosen = product(*(params[several] for several in CHOICES.values()))
    grid = [{**dict(zip(CHOICES, each, strict=True)), **shared} for each in chosen]
    if len(grid) > LIMIT:
        raise ConfigError(
            f"params {', '.join(CHOICES.values())} make {len(grid)} combinations; at most {LIMIT} "
            "are accepted, each is a whole training."
        )
    return grid


def label_of(setting: Mapping[str, Any]) -> str:
    """Short name of a setting, in Airflow, in MLflow and as a folder."""
    name = f"{setting['model']}-{setting['dim']}-{setting['policy']}"
    return name + "".join(
        f"-{setting[key]}" for key, usual in USUAL.items() if setting[key] != usual
    )


def workable(
    settings: Settings, grid: Sequence[Mapping[str, Any]]
) -> tuple[list[Mapping[str, Any]], dict[str, str]]:
    """The settings that go together, and why each of the others does not, by its label.

    Raises ConfigError with the first reason when none does.
    """
    from embedding.training.checks import check_options

    fit, unfit = [], {}
    for setting in grid:
        try:
            request = request_of(settings, setting, None)
            check_options(request)
        except ConfigError as error:
            unfit[label_of(setting)] = str(error)
        else:
            fit.append(setting)
    if not fit:
        raise ConfigError(next(iter(unfit.values())))
    return fit, unfit


def request_of(settings: Settings, setting: Mapping[str, Any], store: Path | None) -> TrainRequest:
    """The training that a setting of the grid asks for; ConfigError for what does not fit."""
    from embedding.kernel.config import validate
    from embedding.server.policies.traits import POLICIES
    from embedding.training import TrainRequest

    model = {**settings.model.model_dump(), "model": setting["model"], "dim": setting["dim"]}
    given: dict[str, Any] = {
        **{key: setting[key] for key in ("nodes", "tokens", "epochs")},
        "corpus": _offered(settings, setting["corpus"]) or generated_corpus(settings),
        "out": store,
        "model": model,
        "sync": {**settings.sync.model_dump(), "policy": setting["policy"]},
        # What tunes compressions comes with them.
        "exchange": {
            **settings.exchange.model_dump(include={"threshold", "top_share"}),
            "compression": setting["compression"],
        },
        "topology": TWO_GROUPS
        if setting["topology"] == "servers"
        else {"kind": setting["topology"]},
        "text": settings.text.model_dump(),
        "server": {"device": settings.server.device, "min_count": settings.server.min_count},
    }
    request = validate(TrainRequest, given, "compare_training")
    if not POLICIES.traits(request.sync.policy).needs_rounds:
        return request
    # A short training would be over before its first round of L-BFGS.
    blocks = int(setting["tokens"]) // request.nodes // request.node_config.block_tokens
    every = max(1, min(given["sync"]["lbfgs_every"], blocks // ROUNDS))
    return request.model_copy(
        update={"sync": request.sync.model_copy(update={"lbfgs_every": every})}
    )


@dataclass(frozen=True)
class TrainedSetting:
    """What one setting of a comparison came to.

    metrics    figures that trainings are compared by (`comparable`) and those of the snapshot
    made_from  what it was made with (`provenance.params`)
    curve      figures over the training
    """

    metrics: dict[str, float]
    snapshot: SnapshotRef
    made_from: dict[str, object]
    curve: list[CurvePoint]


def train_setting(settings: Settings, setting: Mapping[str, Any], store: Path) -> TrainedSetting:
    """Train one setting to its end; its snapshot goes to the folder `store`.

    Raises InputError for a corpus that cannot be read, ConfigError for settings that do not go
    together.
    """
    from embedding.evaluation.evaluate import evaluate_snapshot
    from embedding.snapshots.store import SnapshotStore
    from embedding.training import train_corpus
    from embedding_airflow.tracking import provenance
    from embedding_airflow.tracking.comparison import CurvePoint

    request = request_of(settings, setting, store)
    # A retried task begins again, and a training takes no store that holds snapshots.
    shutil.rmtree(store, ignore_errors=True)
    curve: list[CurvePoint] = []
    began = time.monotonic()

    def note(now: TrainProgress) -> None:
        figures = {"words_per_second": now.words_per_second}
        if now.loss is not None:
            figures["loss"] = now.loss
        curve.append(CurvePoint(now.tokens, time.monotonic() - began, figures))

    result = train_corpus(request, note)
    ref = result.snapshots[-1]
    snapshot = SnapshotStore(str(store)).open(ref.id)
    judged = evaluate_snapshot(snapshot, settings.evaluation.gold, settings.evaluation.device)
    # A corpus too small to learn from has no loss, and an XCom takes finite numbers only.
    merged = {**judged.metrics, **comparable(result, judged.metrics)}
    finite = {name: value for name, value in merged.items() if math.isfinite(value)}
    return TrainedSetting(finite, ref, provenance.params(snapshot.manifest), curve)


def comparable(result: TrainResult, judged: Mapping[str, float]) -> dict[str, float]:
    """What one compares trainings by, under the same names for every setting.

    held_out_loss is the loss of pairs before their text was learnt (prequential, nats): of the
    first tokens as well as of the last. staleness: pushes between a node's read and its push.
    """
    record, sync = result.to_dict(), result.sync
    rounds = sync.get("rounds", {"rounds": 0, "tokens": 0})
    figures = {
        "loss": result.loss,
        "words_per_second": result.words_per_second,
        "train_seconds": result.train_seconds,
        "tokens_trained": float(result.tokens_trained),
        "bytes_per_token": record["bytes_sent_per_token"],
        "bytes_pushed_per_token": record["bytes_pushed_per_token"],
        "bytes_pulled_per_token": record["bytes_pulled_per_token"],
        "peak_memory_bytes": float(sum(result.peak_memory.values())),
        "dropped_tokens": float(sync["dropped_tokens"]),
        "dropped_share": sync["dropped_tokens"] / max(result.tokens_trained, 1),
        "staleness": sync["staleness"],
        "policy_switches": float(sync["switched"]),
        "lbfgs_rounds": float(rounds["rounds"]),
        "lbfgs_tokens": float(rounds["tokens"]),
    }
    if "nll" in judged:
        figures["held_out_loss"] = judged["nll"]
    return figures


def _offered(settings: Settings, corpus: str | None) -> Path | None:
    """The file that was chosen; whoever starts a DAG must not read others of this machine.

    Raises ConfigError for a file that is neither offered nor in the home.
    """
    if not corpus:
        return None
    path, home = Path(corpus).resolve(), settings.paths.home.resolve()
    if path.is_relative_to(home) or path in {
        Path(offered).resolve() for offered in choices().corpora
    }:
        return path
    raise ConfigError(
        f"corpus {corpus}: a file of the folder $YEORON_DATA, of a source or below {home} is "
        "accepted; the form lists them."
    )


def generated_corpus(settings: Settings) -> Path:
    """The invented corpus as a dated file under the platform's home; written once.

    ConfigError where the package that invents it is not installed.
    """
    try:
        from yeoron_simweb.config import SimwebConfig
        from yeoron_simweb.generated import generate
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"corpus: none is named, and {error.name}, with which one is invented, is not "
            'installed; name a file, or pip install "yeoron[all]".'
        ) from error

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
