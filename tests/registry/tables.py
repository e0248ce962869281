"""Writes the tables of traits in docs/extending.md; run as `python -m tests.registry.tables`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from embedding.exchange.compression.traits import COMPRESSIONS
from embedding.exchange.topologies.traits import TOPOLOGIES
from embedding.importing.readers import READERS
from embedding.kernel.registry import Registry
from embedding.models.traits import MODELS
from embedding.server.compatibility import NEEDS
from embedding.server.policies.traits import POLICIES
from embedding.sources.kinds import SOURCES
from embedding.text.tokenizers import TOKENIZERS
from embedding.trends.estimators import ESTIMATORS
from yeoron_bench.markdown import table

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


def table_of(registry: Registry[Any, Any]) -> str:
    """The traits of what comes with Yeoron as a table in Markdown."""
    names = registry.built_in()
    head = [each.name for each in fields(registry.traits(names[0])) if each.repr]
    rows = [
        [f"`{name}`", *(_cell(getattr(registry.traits(name), each)) for each in head)]
        for name in names
    ]
    return table([registry.kind, *head], rows).rstrip("\n")


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: `{each}`" for name, each in value.items())
    if callable(value):
        return f"`{getattr(value, '__name__', value)}`"
    return "" if value in (None, 0, "") else str(value)


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text[: text.index(MARK) + len(MARK)] + tables(), encoding="utf-8")
