"""Metrics whose samples differ by one label, such as the node or the shard."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeGuard

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

Family = CounterMetricFamily | GaugeMetricFamily


def labelled(
    kind: type[Family], name: str, text: str, label: str, values: Iterable[tuple[object, Any]]
) -> Family:
    """A metric of (value of the label, figure); what is no number is left out."""
    family = kind(f"yeoron_{name}", text, labels=[label])
    for of, figure in values:
        if is_number(figure):
            family.add_metric([str(of)], figure)
    return family


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a figure is one; a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)
