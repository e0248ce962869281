"""The metrics of the nodes' text preparation, as their reports tell it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from embedding.server.figures.families import is_number, labelled

_FIGURES = {
    "known_ratio": (GaugeMetricFamily, "known_share", "Share of eojeols read without an analysis"),
    "cache_bytes": (GaugeMetricFamily, "cache_bytes", "Memory of the cache, by reckoning"),
    "cached_words": (GaugeMetricFamily, "cached_words", "Eojeols in the cache"),
    "forgotten_words": (
        CounterMetricFamily,
        "forgotten_words",
        "Eojeols that left the cache for others",
    ),
    "morphemes": (CounterMetricFamily, "morphemes", "Morphemes that the analyser found"),
    "given_up_documents": (
        CounterMetricFamily,
        "given_up",
        "Documents that could not be prepared, passed on without a word",
    ),
}
"""Name → family, key of `text` in a node's report, help."""


def text_metrics(nodes: Mapping[str, Mapping[str, Any]]) -> Iterator[Metric]:
    """A sample for each node whose report tells of text; what is no number is left out."""
    texts: dict[str, Mapping[str, Any]] = {}
    for node, status in nodes.items():
        text = status["report"].get("text")
        if isinstance(text, Mapping) and text:
            texts[node] = text
    for name, (kind, key, help_text) in _FIGURES.items():
        values = ((node, text.get(key)) for node, text in texts.items())
        yield labelled(kind, f"text_{name}", help_text, "node", values)
    masked = CounterMetricFamily(
        "yeoron_text_masked", "Pieces of personal data masked", labels=["node", "kind"]
    )
    for node, text in texts.items():
        kinds = text.get("masked")
        for kind_name, n in sorted(kinds.items()) if isinstance(kinds, Mapping) else ():
            if is_number(n):
                masked.add_metric([node, str(kind_name)], n)
    yield masked
