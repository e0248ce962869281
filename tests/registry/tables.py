"""Writes the tables of traits in docs/extending.md; run as `python -m tests.registry.tables`."""

from __future__ import annotations

from pathlib import Path

from embedding.exchange.compression.traits import COMPRESSIONS
from embedding.exchange.topologies.traits import TOPOLOGIES
from embedding.importing.readers import READERS
from embedding.kernel.registry import table_of
from embedding.models.traits import MODELS
from embedding.server.compatibility import NEEDS
from embedding.server.policies.traits import POLICIES
from embedding.sources.kinds import SOURCES
from embedding.text.tokenizers import TOKENIZERS
from embedding.trends.estimators import ESTIMATORS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"
MARK = "a test compares them.\n\n"
REGISTRIES = (
    POLICIES,
    COMPRESSIONS,
    TOPOLOGIES,
    MODELS,
    ESTIMATORS,
    TOKENIZERS,
    SOURCES,
    READERS,
)


def tables() -> str:
    """All registries, then what needs which trait."""
    needs = ["| for | needs of a | the trait | because |", "|---|---|---|---|"]
    needs += [
        f"| {need.feature} | {need.registry.kind} | `{need.trait}` | {need.because} |"
        for need in NEEDS
    ]
    return "\n\n".join([*map(table_of, REGISTRIES), "\n".join(needs)]) + "\n"


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text[: text.index(MARK) + len(MARK)] + tables(), encoding="utf-8")
