"""Families of metrics: of one figure, or of samples that differ by labels such as the node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeGuard

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

Family = CounterMetricFamily | GaugeMetricFamily
Figures = Mapping[str, tuple[str | Callable[[Any], Any], str]]
"""By name of a metric its figure, a key or a function of what has it, and its help."""


def plain(kind: type[Family], figures: Figures, of: Mapping[str, Any]) -> Iterator[Family]:
    """Metrics without labels; of a figure that is None there is none."""
    for name, (figure, text) in figures.items():
        value = _read(of, figure)
        if value is not None:
            yield kind(f"yeoron_{name}", text, value=value)


def by(
    label: str, kind: type[Family], figures: Figures, things: Mapping[Any, Any]
) -> Iterator[Family]:
    """Metrics with a sample for each thing, by the value of the label; names begin with it."""
    for name, (figure, text) in figures.items():
        values = ((of, _read(thing, figure)) for of, thing in things.items())
        yield labelled(kind, f"{label}_{name}", text, label, values)


def labelled(
    kind: type[Family], name: str, text: str, labels: str, values: Iterable[tuple[object, Any]]
) -> Family:
    """A metric of (value of the label, figure); what is no number is left out.

    labels  their names; of several the value is a tuple
    """
    family = kind(f"yeoron_{name}", text, labels=labels.split())
    for of, figure in values:
        if is_number(figure):
            of_labels = of if isinstance(of, tuple) else (of,)
            family.add_metric([str(each) for each in of_labels], figure)
    return family


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether a figure is one; a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read(thing: Mapping[str, Any], figure: str | Callable[[Any], Any]) -> Any:
    return thing.get(figure) if isinstance(figure, str) else figure(thing)
