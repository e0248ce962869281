"""What a model is judged by without gold sets: the negative log-likelihood of (word, context) pairs
under skip-gram with negative sampling, and PIP loss, how far an embedding lies from the count
embedding of the same co-occurrences; and which source it serves worse than the others."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from embedding.kernel.devices import DeviceArray
from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray


def nll(vectors: DeviceArray, contexts: DeviceArray, negatives: DeviceArray) -> DeviceArray:
    """Loss of each pair: −log σ(u·v) − Σₖ log σ(−u·nₖ), in nats.

    Mikolov et al. 2013 (Distributed Representations of Words and Phrases), equation 4, with k
    drawn negatives in place of the expectation. Written with softplus, since −log σ(x) =
    softplus(−x), so that it neither overflows nor turns into log 0 for any finite product.

    vectors    float [n, d] rows of `in` (u)
    contexts   float [n, d] rows of `out` (v)
    negatives  float [n, k, d] rows of `out` drawn from the noise distribution
    returns    float [n], on the device and in the dtype of `vectors`; (1 + k)·log 2 when all
               products are 0 (nothing was learnt yet)

    Raises InputError when the shapes disagree.
    """
    if (
        vectors.ndim != 2
        or contexts.shape != vectors.shape
        or negatives.ndim != 3
        or negatives.shape[0] != vectors.shape[0]
        or negatives.shape[2] != vectors.shape[1]
    ):
        raise InputError(
            "likelihood: vectors [n, d], contexts [n, d] and negatives [n, k, d] are accepted, "
            f"got {list(vectors.shape)}, {list(contexts.shape)} and {list(negatives.shape)}."
        )
    positive = (vectors * contexts).sum(1)
    noise = (negatives @ vectors[:, :, None])[:, :, 0]
    return _softplus(-positive) + _softplus(noise).sum(1)


def _softplus(values: DeviceArray) -> DeviceArray:
    """log(1 + eˣ), without overflow."""
    if isinstance(values, np.ndarray):
        return np.maximum(values, 0.0) + np.log1p(np.exp(-np.abs(values)))
    from torch.nn.functional import softplus

    return softplus(values)


def ppmi(cooccurrence: npt.NDArray[np.generic]) -> npt.NDArray[np.float64]:
    """Positive pointwise mutual information of a symmetrised co-occurrence table.

    max(0, log(Cᵢⱼ·ΣC / (Cᵢ·C·ⱼ))), Levy & Goldberg 2014, equation 11 with k = 1.

    cooccurrence  [m, m] counts ≥ 0; returns float64 [m, m]. Raises InputError for other input.
    """
    counts = np.asarray(cooccurrence, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise InputError(
            f"PIP loss: a square co-occurrence table is accepted, got shape {list(counts.shape)}."
        )
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise InputError("PIP loss: co-occurrence counts are finite numbers of at least 0.")
    counts = counts + counts.T
    total = counts.sum()
    rows = counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        pmi = np.log(counts * total) - np.log(np.outer(rows, rows))
    return np.where(counts > 0, np.maximum(pmi, 0.0), 0.0)


def pip_loss(vectors: FloatArray, cooccurrence: npt.NDArray[np.generic]) -> float:
    """Pairwise inner product loss between `vectors` E and the PPMI-SVD embedding F of rank d.

    Yin & Shen 2018 (On the Dimensionality of Word Embedding), definition 1:

        ‖E Eᵀ − F Fᵀ‖_F,          F = U_d |Λ_d|^½ of PPMI = U Λ Uᵀ (α = ½)

    It is invariant to rotations, so two trainings compare without alignment. The two sides have
    unrelated scales (the norm of learnt vectors grows with training), so the figure that compares
    between windows, sizes m and dimensions, and that is returned, is

        ‖ E Eᵀ/‖E Eᵀ‖_F − F Fᵀ/‖F Fᵀ‖_F ‖_F   ∈ [0, √2]

    0: the same geometry up to scale and rotation; √2: orthogonal ones.

    vectors       float [m, d]
    cooccurrence  [m, m] counts, rows and columns in the order of `vectors`
    returns       float; nan when there is nothing to compare with (no word, all-zero vectors, or
                  no pair more frequent than chance)

    Raises InputError when the shapes disagree or counts are not counts. No m × m product of the
    embedding is built: ‖A Aᵀ − B Bᵀ‖² = ‖AᵀA‖² + ‖BᵀB‖² − 2‖AᵀB‖².
    """
    if vectors.ndim != 2 or cooccurrence.shape != (vectors.shape[0],) * 2:
        raise InputError(
            "PIP loss: vectors [m, d] and a co-occurrence table [m, m] are accepted, got "
            f"{list(vectors.shape)} and {list(cooccurrence.shape)}."
        )
    target = ppmi(cooccurrence)
    ours = vectors.astype(np.float64)
    if not bool(target.any()) or not bool(ours.any()):
        return math.nan
    theirs = _factor(target, rank=vectors.shape[1])
    own, other = _norm(ours.T @ ours), _norm(theirs.T @ theirs)
    cross = _norm(ours.T @ theirs)
    return math.sqrt(max(0.0, 2.0 - 2.0 * cross**2 / (own * other)))


def _norm(values: npt.NDArray[np.float64]) -> float:
    return float(np.linalg.norm(values))


def _factor(symmetric: npt.NDArray[np.float64], rank: int) -> npt.NDArray[np.float64]:
    """F [m, min(rank, m)] with F Fᵀ the best |Λ| approximation: SVD of a symmetric matrix."""
    values, basis = np.linalg.eigh(symmetric)
    order = np.argsort(-np.abs(values), kind="stable")[:rank]
    factor: npt.NDArray[np.float64] = basis[:, order] * np.sqrt(np.abs(values[order]))
    return factor


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
