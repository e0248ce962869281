"""All figures of one snapshot that can be computed from the snapshot itself and gold files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embedding.evaluation.gold import PairGold, read_gold
from embedding.evaluation.judging import analogy, similarity
from embedding.evaluation.losses import source_losses, source_weights, worst_source
from embedding.kernel.devices import DeviceArray, on_gpu
from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray
from embedding.snapshots.snapshot import Snapshot

_SCATTER = 5_000


@dataclass(frozen=True)
class SnapshotEvaluation:
    """Figures of one snapshot.

    metrics  finite numbers by name: `words`, `tokens`, `documents`, `norm/mean`, `vocabulary/seen`,
             the manifest's quality figures (`nll`, `nll/SOURCE`, `weight/SOURCE`, `pip`), `bias`,
             `similarity/GOLD`, `analogy/GOLD`, `analogy/GOLD/SECTION`, `coverage/GOLD`
    tables   arrays for plots: `frequency` float32 [m] (running counts) and `norm` float32 [m] of
             the same words, at most 5,000, spread evenly over the frequency ranks
    skipped  one sentence for each figure that could not be had
    """

    metrics: dict[str, float]
    tables: dict[str, FloatArray]
    skipped: tuple[str, ...]


def evaluate_snapshot(
    snapshot: Snapshot, gold: Sequence[Path] = (), device: str = "auto"
) -> SnapshotEvaluation:
    """Judge one snapshot.

    A gold file that is missing, malformed or does not meet the vocabulary becomes a sentence in
    `skipped`; the rest goes on. Raises ConfigError for a device that is not there.
    """
    gpu = on_gpu(device)
    metrics = _size(snapshot)
    norms = np.linalg.norm(snapshot.vectors, axis=1)
    if len(norms):
        metrics["norm/mean"] = float(norms.mean())
    metrics.update(snapshot.manifest.quality)
    for source, loss in source_losses(snapshot.manifest.quality).items():
        metrics.pop(f"nll.{source}", None)
        metrics[f"nll/{source}"] = loss
    for source, weight in source_weights(snapshot.manifest.quality).items():
        metrics.pop(f"weight.{source}", None)
        metrics[f"weight/{source}"] = weight
    if (worst := worst_source(snapshot.manifest.quality)) is not None:
        metrics["bias"] = worst[1]
    skipped: list[str] = []
    if gold:
        vectors: FloatArray | DeviceArray = snapshot.vectors
        if gpu:
            import torch

            vectors = torch.tensor(vectors, device="cuda")
        for path in gold:
            try:
                metrics.update(_judge(vectors, snapshot, path))
            except InputError as error:
                skipped.append(str(error))
    at = np.unique(np.linspace(0, max(len(norms) - 1, 0), _SCATTER).astype(np.int64))
    order = np.argsort(-snapshot.counts, kind="stable")[at[: len(norms)]]
    tables: dict[str, FloatArray] = {
        "frequency": snapshot.counts[order].astype(np.float32),
        "norm": norms[order].astype(np.float32),
    }
    finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
    return SnapshotEvaluation(finite, tables, tuple(skipped))


def _size(snapshot: Snapshot) -> dict[str, float]:
    manifest = snapshot.manifest
    seen = np.count_nonzero(
        (snapshot.last_seen >= manifest.window.start.timestamp())
        & (snapshot.last_seen < manifest.window.end.timestamp())
    )
    figures = {
        "words": float(len(snapshot)),
        "vocabulary/seen": float(seen),
        "tokens": float(sum(manifest.tokens.values())),
        "documents": float(sum(manifest.documents.values())),
    }
    figures.update({f"tokens/{name}": float(n) for name, n in manifest.tokens.items()})
    figures.update({f"documents/{name}": float(n) for name, n in manifest.documents.items()})
    return figures


def _judge(vectors: DeviceArray, snapshot: Snapshot, path: Path) -> dict[str, float]:
    gold = read_gold(path)
    if isinstance(gold, PairGold):
        result = similarity(vectors, snapshot.rows, gold)
        if math.isnan(result.rho):
            raise InputError(
                f"gold file {path}: only {result.covered} of {result.pairs} pairs have both words "
                f"in snapshot {snapshot.id}, which gives no rank correlation."
            )
        return {f"similarity/{gold.name}": result.rho, f"coverage/{gold.name}": result.coverage}
    total, sections = analogy(vectors, snapshot.rows, gold)
    if not total.asked:
        raise InputError(
            f"gold file {path}: none of {total.questions} questions has its four words in "
            f"snapshot {snapshot.id}."
        )
    figures = {f"analogy/{gold.name}/{name}": part.accuracy for name, part in sections.items()}
    figures[f"analogy/{gold.name}"] = total.accuracy
    figures[f"coverage/{gold.name}"] = total.asked / total.questions
    return figures
