"""Which source the model serves worst, and weights of the sources that would serve it better.

The figure is the worst source's excess loss: its loss before learning (next-window likelihood)
less the mean of all pairs.

The weights serve the worst source better, and may raise the mean loss by so much only. Their aim is
a step of exponentiated gradient ascent on the sources' losses, as in group DRO (Sagawa et al. 2020,
algorithm 1; of topics: Oren et al. 2019):

    w_s ∝ u_s exp(η (ℓ_s − ℓ)),    Σ_s share_s w_s = 1

with u_s the weights in use, ℓ_s the loss in the window, and shares by tokens, so that the learning
rate of the text as a whole stays as it is. Used window after window, this is their algorithm.

Group DRO bounds the worst loss alone. Here the mean may lie at most `bias_rise` above what it would
be without weights, and two estimates of that have to keep within it:

- predicted: a source's loss falls with the text that was learnt of it, ℓ_s = a_s − g_s ln n_s (n_s
  tokens read so far, each times its weight then; least squares over the windows, g_s ≥ 0). Weights
  kept for good make w_s n_s of them, so the mean rises by −Σ share_s g_s ln w_s.
- measured: the mean in the window against that of the last windows without weights, both with the
  shares of this window, so that a source that wrote more is not taken for a rise.

The weights go as far towards the aim, from 1 and in logs, as the prediction allows. It is convex
along that way and 0 at its start, so halving finds the furthest point. When what was measured is
above the limit there is no step: the weights in use go back towards 1 by the ratio of both, which
by the same convexity is far enough if the weights did it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embedding.evaluation.losses import source_losses, source_weights, worst_source
from embedding.kernel.errors import InputError
from embedding.snapshots.format import Manifest
from embedding.trends.config import TrendsConfig
from embedding.trends.material import Snapshots, windows_up_to
from embedding.trends.rows import Bias

_Weights = Mapping[str, float]
_HALVINGS = 30
_WITHOUT = 3
"""Windows without weights that a mean is compared with."""


@dataclass(frozen=True)
class Proposal:
    """Weights of the sources that were scored, and what they are expected to cost.

    weights    by source, rounded to 0.001
    reach      how far they go from 1 (0) to the aim (1)
    predicted  rise of the mean loss over that without weights, as a part of it (0.01: 1 %); None
               before a source was scored in two windows: then there is no step
    measured   the same of the weights in use; None where none are, or no window was without
    returning  the measured rise is above the limit: the weights go back towards 1
    """

    weights: dict[str, float]
    reach: float
    predicted: float | None
    measured: float | None
    returning: bool


def propose(manifests: Sequence[Manifest], used: _Weights, config: TrendsConfig) -> Proposal:
    """Weights after the window of the last of `manifests`, which are in order of time.

    used  weights in use, 1 for a source that is not named
    """
    now = manifests[-1]
    losses, mean = source_losses(now.quality), now.quality["nll"]
    shares = _shares(now, losses)
    current = {name: used.get(name, 1.0) for name in losses}
    measured = measured_rise(manifests, current)
    returning = measured is not None and measured > config.bias_rise
    reach = 1.0
    gains = learning_gains(manifests)
    if measured is not None and returning:
        aim, reach = current, config.bias_rise / measured
    elif not gains:
        aim = current
    else:
        aim = {n: current[n] * math.exp(config.bias_step * (losses[n] - mean)) for n in losses}
    aim = _levelled(aim, shares, config.bias_most)

    def rise(part: float) -> float:
        return predicted_rise(_towards(aim, part, shares, config.bias_most), shares, gains) / mean

    if rise(reach) > config.bias_rise:
        low, high = 0.0, reach
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if rise(middle) <= config.bias_rise else (low, middle)
        reach = low
    weights = _towards(aim, reach, shares, config.bias_most)
    rounded = {name: round(weight, 3) for name, weight in weights.items()}
    return Proposal(rounded, reach, rise(reach) if gains else None, measured, returning)


def predicted_rise(weights: _Weights, shares: _Weights, gains: _Weights) -> float:
    """Nats by which the mean is expected to rise: −Σ share_s g_s ln w_s."""
    return -sum(shares[n] * gains.get(n, 0.0) * math.log(w) for n, w in weights.items())


def learning_gains(manifests: Sequence[Manifest]) -> dict[str, float]:
    """g_s by source: nats that its loss falls while its text grows e times; 0 where it does not.

    A source that was scored in one window has the largest of the others, as nothing is known of
    it. Empty where all are.
    """
    learnt: dict[str, float] = {}
    points: dict[str, list[tuple[float, float]]] = {}
    for manifest in manifests:
        losses, used = source_losses(manifest.quality), source_weights(manifest.quality)
        for name, tokens in manifest.tokens.items():
            weighed = tokens * used.get(name, 1.0)
            middle = learnt.get(name, 0.0) + weighed / 2
            learnt[name] = learnt.get(name, 0.0) + weighed
            if name in losses and weighed:
                points.setdefault(name, []).append((math.log(middle), losses[name]))
    known = {name: _fall(pairs) for name, pairs in points.items() if len(pairs) > 1}
    most = max(known.values(), default=0.0)
    return {name: known.get(name, most) for name in points} if known else {}


def measured_rise(manifests: Sequence[Manifest], current: _Weights) -> float | None:
    """By which part of it the mean of the last window is above that without weights.

    The latest windows without weights, as many as three, are what it is compared with; each with
    the sources that both scored. None without weights in use and where there is no such window.
    """
    now = manifests[-1]
    if all(weight == 1.0 for weight in current.values()):
        return None
    losses = source_losses(now.quality)
    rises = []
    for manifest in reversed(manifests[:-1]):
        before = source_losses(manifest.quality)
        both = sorted(losses.keys() & before.keys())
        if any(w != 1.0 for w in source_weights(manifest.quality).values()) or not both:
            continue
        shares = _shares(now, both)
        without = sum(shares[name] * before[name] for name in both)
        rises.append(sum(shares[name] * losses[name] for name in both) / without - 1)
        if len(rises) == _WITHOUT:
            break
    return sum(rises) / len(rises) if rises else None


def _fall(points: Sequence[tuple[float, float]]) -> float:
    """Least squares slope of (ln tokens, loss), downwards; 0 where the loss rises."""
    tokens, loss = np.asarray(points, dtype=np.float64).T
    tokens = tokens - tokens.mean()
    spread = float(tokens @ tokens)
    return max(-float(tokens @ loss) / spread, 0.0) if spread > 0 else 0.0


def _shares(manifest: Manifest, names: Sequence[str] | _Weights) -> dict[str, float]:
    """Parts of the window's tokens of these sources, 1 together."""
    total = sum(manifest.tokens.get(name, 0) for name in names)
    if not total:
        return {name: 1 / len(names) for name in names}
    return {name: manifest.tokens.get(name, 0) / total for name in names}


def _towards(aim: _Weights, part: float, shares: _Weights, most: float) -> dict[str, float]:
    """So far on the way, in logs, from no weights to `aim`."""
    return _levelled({name: weight**part for name, weight in aim.items()}, shares, most)


def _levelled(weights: _Weights, shares: _Weights, most: float) -> dict[str, float]:
    """Mean 1 over the shares; none leaves [1 / most, most]."""
    mean = sum(weights[name] * share for name, share in shares.items()) or 1.0
    return {name: min(max(weight / mean, 1 / most), most) for name, weight in weights.items()}


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

    predicted, measured, returning  of the proposed weights, as in `Proposal`
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
    manifests = [opened.manifest for opened in readable]
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
