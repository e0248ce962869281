"""Whose learner it is, and what it learns."""

from __future__ import annotations

from dataclasses import dataclass

from embedding.kernel.records import Calendar
from embedding.models.config import ModelConfig
from embedding.worker.config import NodeConfig


@dataclass(frozen=True)
class LearnerSetup:
    """Settings of a learner.

    calendar    of the windows that its counts are booked in
    most_bytes  of the use of words that one push carries; the rest goes ahead of it
    life        mark of the process, where it hands in how it used words
    """

    node: str
    model: ModelConfig
    config: NodeConfig
    calendar: Calendar
    most_bytes: int = 32 * 2**20
    life: str = ""
