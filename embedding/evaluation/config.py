"""Settings of evaluation and of experiment tracking."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from embedding.kernel.config import Config, Secret


class EvaluationConfig(Config):
    """What a snapshot is judged by and where the figures go."""

    tracking_uri: Secret | None = None
    """MLflow's tracking address (`http://…`, `sqlite:///…`); none: the platform's own MLflow."""
    experiment: str = Field("yeoron", min_length=1)
    """Name of the MLflow experiment that holds the runs."""
    gold: tuple[Path, ...] = ()
    """Gold files: word pairs with scores (three columns) or analogies (four words a line)."""
    floors: Path | None = None
    """TOML file of floors that a snapshot must keep before `newest` or `best` names it."""
    max_rise: float | None = Field(default=0.15, ge=0)
    """Share by which `nll` may be above that of the snapshot that `newest` names; None: by any."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where similarity and analogy are computed; `auto` takes a GPU when there is one."""

    # Constants: a file that sets one is refused.
    # Name of the registered model whose versions are the snapshots.
    model_name: ClassVar = "yeoron"
    best_by: ClassVar = "nll"  # The figure that decides which snapshot `best` names.
