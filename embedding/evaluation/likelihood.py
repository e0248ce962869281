"""Negative log-likelihood of (word, context) pairs under skip-gram with negative sampling."""

from __future__ import annotations

import numpy as np

from embedding.kernel.devices import DeviceArray
from embedding.kernel.errors import InputError


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
