"""Whether a snapshot serves one source worse than the others: the worst source's excess loss."""

from __future__ import annotations

from collections.abc import Mapping


def source_losses(quality: Mapping[str, float]) -> dict[str, float]:
    """Loss before learning by source, from the figures `nll.SOURCE` of a manifest."""
    losses = (item for item in quality.items() if item[0].startswith(("nll.", "nll/")))
    return {name[len("nll.") :]: value for name, value in losses}


def source_weights(quality: Mapping[str, float]) -> dict[str, float]:
    """Weight in training by source while the window was read, from the figures `weight.SOURCE`.

    Empty where no node had weights.
    """
    weights = (item for item in quality.items() if item[0].startswith(("weight.", "weight/")))
    return {name[len("weight.") :]: value for name, value in weights}


def worst_source(quality: Mapping[str, float]) -> tuple[str, float] | None:
    """The source of highest loss before learning, and by how many nats that is above the mean.

    quality  a manifest's figures; the mean is `nll`, that of all pairs of the window

    None where fewer than two sources were scored: then nothing can be served worse.
    """
    losses, mean = source_losses(quality), quality.get("nll")
    if mean is None or len(losses) < 2:
        return None
    worst = min(losses, key=lambda name: (-losses[name], name))
    return worst, losses[worst] - mean
