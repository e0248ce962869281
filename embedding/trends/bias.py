"""Which source the model serves worst, and weights of the sources that would serve it better.

The figure is the worst source's excess loss: its loss before learning (next-window likelihood)
less the mean of all pairs. The weights are a step of exponentiated gradient ascent on the sources'
losses, as in group DRO (Sagawa et al. 2020, algorithm 1; of topics: Oren et al. 2019):

    w_s ∝ u_s exp(η (ℓ_s − ℓ)),    Σ_s share_s w_s = 1

with u_s the weights in use, ℓ_s the loss in the window, and shares by tokens, so that the learning
rate of the text as a whole stays as it is. Proposed and used window after window, this is their
algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from embedding.errors import InputError
from embedding.evaluation.bias import source_losses, worst_source
from embedding.snapshots.format import Manifest
from embedding.trends.config import TrendsConfig
from embedding.trends.material import Snapshots, windows_up_to
from embedding.trends.rows import Bias


@dataclass(frozen=True)
class SourceLoss:
    """One source in the reported window.

    loss, excess  nats a pair before it was learnt, and above the mean; None: not scored
    tokens        read in the window; share of all
    weight        in use; proposed: None where it was not scored
    """

    source: str
    loss: float | None
    excess: float | None
    tokens: int
    share: float
    weight: float
    proposed: float | None


@dataclass(frozen=True)
class WindowBias:
    """The figure of one window; None where fewer than two sources were scored."""

    snapshot: str
    label: str
    bias: Bias | None


@dataclass(frozen=True)
class SourceBias:
    """The figure of a window, its sources (the worst served first), and the windows up to it."""

    snapshot: str
    label: str
    bias: Bias
    sources: tuple[SourceLoss, ...]
    windows: tuple[WindowBias, ...]


def bias_of(manifest: Manifest) -> Bias | None:
    """The figure of one snapshot; None where fewer than two sources were scored."""
    worst = worst_source(manifest.quality)
    if worst is None:
        return None
    losses = source_losses(manifest.quality)
    return Bias(worst[0], worst[1], manifest.quality["nll"], dict(sorted(losses.items())))


def source_bias(
    store: Snapshots,
    config: TrendsConfig | None = None,
    *,
    id: str = "latest",  # noqa: A002 - as the store names it
    weights: Mapping[str, float] | None = None,
) -> SourceBias:
    """The figure of snapshot `id`, and proposed weights.

    weights  in use (`node.source_weights`), 1 for a source that is not named

    Raises InputError where fewer than two sources were scored in that window; SnapshotError when
    it cannot be read. Earlier ones that cannot be read are passed over.
    """
    config = config or TrendsConfig()
    snapshot = store.open(id)
    manifest, used = snapshot.manifest, weights or {}
    bias = bias_of(manifest)
    if bias is None:
        scored = ", ".join(source_losses(manifest.quality)) or "none"
        raise InputError(
            f"bias of window {manifest.window.label}: a loss before learning is needed of at least "
            f"two sources; scored were: {scored}."
        )
    readable, _ = windows_up_to(store, snapshot, config.history_windows)
    proposed = proposed_weights(manifest, bias, used, config)
    total = max(sum(manifest.tokens.values()), 1)
    rows = [
        SourceLoss(
            source=name,
            loss=bias.losses.get(name),
            excess=bias.losses[name] - bias.mean if name in bias.losses else None,
            tokens=manifest.tokens.get(name, 0),
            share=manifest.tokens.get(name, 0) / total,
            weight=used.get(name, 1.0),
            proposed=proposed.get(name),
        )
        for name in {*manifest.tokens, *bias.losses}
    ]
    rows.sort(key=lambda row: (row.loss is None, -(row.loss or 0.0), row.source))
    shown = [one.manifest for one in readable]
    windows = [WindowBias(m.id, m.window.label, bias_of(m)) for m in shown]
    return SourceBias(manifest.id, manifest.window.label, bias, tuple(rows), tuple(windows))


def proposed_weights(
    manifest: Manifest, bias: Bias, used: Mapping[str, float], config: TrendsConfig
) -> dict[str, float]:
    """Weights by source (the module's formula), rounded to 0.001.

    None leaves [1 / bias_most, bias_most].
    """
    raised = {
        name: used.get(name, 1.0) * math.exp(config.bias_step * (loss - bias.mean))
        for name, loss in bias.losses.items()
    }
    read = sum(manifest.tokens.get(name, 0) for name in raised)
    mean = sum(w * manifest.tokens.get(name, 0) for name, w in raised.items()) / max(read, 1)
    most = config.bias_most
    bounded = {name: min(max(w / (mean or 1.0), 1 / most), most) for name, w in raised.items()}
    return {name: round(w, 3) for name, w in bounded.items()}
