"""What comes in from a node as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from embedding.exchange.setup import Setup


def read_report(report: dict[str, Any]) -> tuple[dict[str, int] | None, float | None]:
    """`sources.*.pending` and `event_now` of a node's report; anything else is only shown."""
    sources = report.get("sources")
    pending: dict[str, int] | None = {} if isinstance(sources, dict) else None
    for name, figures in (sources if isinstance(sources, dict) else {}).items():
        found = figures.get("pending") if isinstance(figures, dict) else None
        if type(found) is int and found >= 0 and pending is not None:
            pending[str(name)] = found
    event_now = report.get("event_now")
    if isinstance(event_now, (int, float)) and abs(event_now) < 1e12:
        return pending, float(event_now)
    return pending, None


def read_weights(reports: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Weight in training by source, the mean over the nodes that report weights; else empty."""
    weights = (report.get("source_weights") for report in reports)
    reported = (pair for each in weights if isinstance(each, dict) for pair in each.items())
    return dict(sorted(_means(reported, below=1e12).items()))


def read_held_out(reports: Iterable[dict[str, Any]]) -> dict[str, float]:
    """Figures of held-out text by name, the mean over the nodes that report them; else empty.

    Of a corpus those of the last window that was rehearsed to the end: the next one is under way.
    """
    names = {
        "held_out": "held_out_loss",
        "held_out_untrained": "held_out_untrained",
        "held_out_unigram": "held_out_unigram",
    }
    rehearsed = (report.get("rehearsed") or report.get("rehearsal") for report in reports)
    figures = (each for each in rehearsed if isinstance(each, dict))
    found = _means(
        ((name, each.get(key)) for each in figures for name, key in names.items()), below=1e6
    )
    return found if "held_out" in found else {}


def read_setup(reports: Iterable[dict[str, Any]]) -> dict[str, object]:
    """What the nodes that report it train with (`Setup`), by name; else empty.

    Where they differ all values are named, as `fp16, onebit`.
    """
    reported: list[dict[str, object]] = []
    for report in reports:
        try:
            reported.append(Setup.model_validate(report.get("setup")).model_dump(mode="json"))
        except ValidationError:
            continue
    return {
        name: _one([each[name] for each in reported]) for name in Setup.model_fields if reported
    }


def lasting(reports: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """What a snapshot needs of each node's report, where it has it: its setup and its weights.

    A checkpoint keeps this, so that a window cut after a restart, before nodes report again, says
    what they trained with.
    """
    reported = {
        node: {"setup": read_setup([report]), "source_weights": read_weights([report])}
        for node, report in reports.items()
    }
    kept = {
        node: {name: one for name, one in each.items() if one} for node, each in reported.items()
    }
    return {node: each for node, each in kept.items() if each}


def _means(reported: Iterable[tuple[object, object]], *, below: float) -> dict[str, float]:
    """The mean of what was reported by each name, of numbers above 0 and below this."""
    found: dict[str, list[float]] = {}
    for name, value in reported:
        if isinstance(value, (int, float)) and 0 < value < below:
            found.setdefault(str(name), []).append(float(value))
    return {name: sum(each) / len(each) for name, each in found.items()}


def _one(values: list[object]) -> object:
    alike = all(value == values[0] for value in values)
    return values[0] if alike else ", ".join(sorted({str(value) for value in values}))
