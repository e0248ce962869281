"""Which source the model serves worst, and weights of the sources that would serve it better.

The figure is the worst source's excess loss: its loss before learning (next-window likelihood)
less the mean of all pairs. `weights.py` says how the weights are found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from embedding.evaluation.bias import source_losses, source_weights, worst_source
from embedding.kernel.errors import InputError
from embedding.snapshots.format import Manifest
from embedding.trends.config import TrendsConfig
from embedding.trends.material import Snapshots, windows_up_to
from embedding.trends.rows import Bias
from embedding.trends.weights import propose


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
    """The figure of a window, its sources (the worst served first), and the windows up to it.

    predicted, measured, returning  of the proposed weights, as in `weights.Proposal`
    limit                           the rise of the mean loss that they may bring
    """

    snapshot: str
    label: str
    bias: Bias
    sources: tuple[SourceLoss, ...]
    windows: tuple[WindowBias, ...]
    predicted: float | None
    measured: float | None
    returning: bool
    limit: float


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
    id: str = "latest",
    weights: Mapping[str, float] | None = None,
) -> SourceBias:
    """The figure of snapshot `id`, and proposed weights.

    weights  in use (`node.source_weights`), 1 for a source that is not named; those that the
             nodes told of while the window was read go before them

    Raises InputError where fewer than two sources were scored in that window; SnapshotError when
    it cannot be read. Earlier ones that cannot be read are passed over.
    """
    config = config or TrendsConfig()
    snapshot = store.open(id)
    manifest = snapshot.manifest
    used = source_weights(manifest.quality) or weights or {}
    bias = bias_of(manifest)
    if bias is None:
        scored = ", ".join(source_losses(manifest.quality)) or "none"
        raise InputError(
            f"bias of window {manifest.window.label}: a loss before learning is needed of at least "
            f"two sources; scored were: {scored}."
        )
    readable, _ = windows_up_to(store, snapshot, config.history_windows)
    manifests = [one.manifest for one in readable]
    proposal = propose(manifests, used, config)
    total = max(sum(manifest.tokens.values()), 1)
    rows = [
        SourceLoss(
            source=name,
            loss=bias.losses.get(name),
            excess=bias.losses[name] - bias.mean if name in bias.losses else None,
            tokens=manifest.tokens.get(name, 0),
            share=manifest.tokens.get(name, 0) / total,
            weight=used.get(name, 1.0),
            proposed=proposal.weights.get(name),
        )
        for name in {*manifest.tokens, *bias.losses}
    ]
    rows.sort(key=lambda row: (row.loss is None, -(row.loss or 0.0), row.source))
    windows = [WindowBias(m.id, m.window.label, bias_of(m)) for m in manifests]
    return SourceBias(
        manifest.id,
        manifest.window.label,
        bias,
        tuple(rows),
        tuple(windows),
        predicted=proposal.predicted,
        measured=proposal.measured,
        returning=proposal.returning,
        limit=config.bias_rise,
    )
