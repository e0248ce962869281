"""What a node trains with, as it tells the server and as the manifest of a snapshot says it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from embedding.kernel.config import Config
from embedding.models.config import ModelConfig

_Name = Annotated[str, Field(min_length=1, max_length=40)]


class Setup(Config):
    """What trainings are compared by, as far as a node knows it and the server does not."""

    model: ModelConfig
    """The model."""
    compression: _Name
    """How pushed deltas travel (ExchangeConfig.compression)."""
    topology: _Name
    """How rows travel (TopologyConfig.name)."""
    tokenizer: _Name
    """How text becomes words (TextConfig.tokenizer)."""
    nodes: int = Field(ge=1, le=1_000_000)
    """Nodes that share the work."""
