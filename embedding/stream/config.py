"""Settings of the stream room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from embedding.kernel.config import Config, extended
from embedding.kernel.registry import NoTraits, Registry

REPLAYS: Registry[Any, NoTraits] = Registry(
    "replay memory", "yeoron.replays", {"uniform": "embedding.stream.replay"}, lab=True
)
"""How sentences are drawn again: a `ReplayKind` each."""


@extended("stream")
class StreamConfig(Config):
    """Queue between crawler and gradients, and the replay memory behind it."""

    INTERNAL: ClassVar = frozenset(("queue_tokens",))

    REMOVED: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("replay_anneal", "replay_mix"), "leave it out: replay has one value of it"
    )

    queue_tokens: int = Field(default=200_000, ge=1_000)
    """Tokens that may wait between crawler and gradients; the crawler pauses when it is full."""

    replay: Annotated[str, AfterValidator(REPLAYS.check)] = "uniform"
    """How the replay memory draws sentences: uniform, all alike; loss, by their loss to the power
    of alpha (Schaul et al. 2016); or gradient, by its norm, unbiased (Alain et al. 2015)."""

    replay_tokens: int = Field(default=2_000_000, ge=1_000)
    """Tokens that the replay memory holds at most; the oldest sentences leave first."""
