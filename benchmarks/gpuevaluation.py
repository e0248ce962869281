"""Evaluations on a GPU against the CPU, in one run: seconds of both, and whether they agree.

Each side computes the same figures of the same random vectors, which lie where it computes. What a
report permutes comes from files, so its way to the GPU is in the seconds of that row.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from embedding.evaluation.gold import AnalogyGold, PairGold
from embedding.evaluation.judging import analogy, similarity
from embedding.evaluation.losses import pip_loss, ppmi
from embedding.kernel.devices import to_host
from embedding.kernel.records import FloatArray, IntArray
from embedding.server.rows.torchdevice import TorchDevice
from embedding.snapshots.nearness import centre_of, directions_of, frequent, sureness
from embedding.trends.permutation import MOST_UNITS, PERMUTATIONS, Measured, permutations
from embedding.trends.replicas import Units

NEAREST = 10
_QUERIES = 256
"""Words whose neighbours are looked for at a time."""
_PERMUTED = 128
"""Words whose labels are permuted at a time, as in a report."""


def pip_on_device(vectors: Tensor, together: FloatArray) -> float:
    """`pip_loss`, the eigenvectors and products where the vectors lie."""
    target = torch.from_numpy(ppmi(together)).to(vectors.device)
    values, basis = torch.linalg.eigh(target)
    order = values.abs().argsort(descending=True, stable=True)[: vectors.shape[1]]
    theirs = basis[:, order] * values[order].abs().sqrt()
    ours = vectors.double()
    own, other, cross = (
        float(torch.linalg.norm(product))
        for product in (ours.T @ ours, theirs.T @ theirs, ours.T @ theirs)
    )
    return math.sqrt(max(0.0, 2.0 - 2.0 * cross**2 / (own * other)))


def nearest(directions: FloatArray, sure: FloatArray, words: int) -> IntArray:
    """int64 [words, NEAREST]: the nearest of the first words, the nearest of all first."""
    nearest_rows = []
    for at in range(0, words, _QUERIES):
        near = directions[at : min(at + _QUERIES, words)] @ directions.T * sure
        near[np.arange(len(near)), at + np.arange(len(near))] = -np.inf
        best = np.argpartition(near, -NEAREST, axis=1)[:, -NEAREST:]
        order = np.argsort(-np.take_along_axis(near, best, axis=1), axis=1, kind="stable")
        nearest_rows.append(np.take_along_axis(best, order, axis=1))
    return np.concatenate(nearest_rows)


def nearest_on_device(directions: Tensor, sure: Tensor) -> Tensor:
    """`nearest` of all words, where they lie."""
    nearest_rows = []
    for at in range(0, len(directions), _QUERIES):
        near = directions[at : at + _QUERIES] @ directions.T * sure
        own = torch.arange(len(near), device=near.device)
        near[own, at + own] = -torch.inf
        nearest_rows.append(near.topk(NEAREST, dim=1).indices)
    return torch.cat(nearest_rows)


def measured_on_device(units: Units, common: FloatArray, device: TorchDevice) -> Measured:
    """`Measured.of`: permuted on the device. Each word has enough documents of both times."""
    rest, documents = (device.place(each) for each in units.residuals())
    axes = device.place(common)
    chosen = device.place(permutations(units, PERMUTATIONS).astype(np.float32))
    rest = rest - (rest @ axes) @ axes.T
    squares = ((chosen @ (rest @ rest.transpose(1, 2))) * chosen).sum(2)
    weight = torch.zeros_like(squares)
    for source in np.unique(units.source).tolist():
        own = device.place(np.flatnonzero(units.source == source))
        after = documents[:, own] @ chosen[:, own].T
        total = documents[:, own].sum(1)[:, None]
        weight += after * (total - after) / total.clamp(min=1e-9)
    means, weights = to_host(squares / weight), to_host(weight[:, 0])
    return Measured.by(means.astype(np.float64), weights.astype(np.float64))


def drawn_units(words: int, dim: int, seed: int) -> Units:
    """Units of words of two sources and both times, each with documents."""
    random = np.random.default_rng(seed)
    documents = random.integers(1, 9, (words, MOST_UNITS)).astype(np.float32)
    sums = random.normal(0, 1, (words, MOST_UNITS, dim)).astype(np.float32) * documents[..., None]
    at = np.arange(MOST_UNITS)
    return Units(documents, sums, at % 4 > 1, at % 2, np.zeros(MOST_UNITS, dtype=bool))


def evaluations(
    device: TorchDevice, *, words: int = 100_000, dim: int = 100, frequent_words: int = 500
) -> dict[str, dict[str, float]]:
    """By evaluation: seconds on the CPU and on the device, and the difference of their answers.

    frequent_words  compared by the PIP loss

    The CPU looks for the neighbours of a twentieth of the words; its seconds are those times 20.
    """
    random = np.random.default_rng(1)
    vectors = random.normal(0, 1, (words, dim)).astype(np.float32)
    on_device = device.place(vectors)
    together = random.poisson(2.0, (frequent_words, frequent_words)).astype(np.float32)
    drawn = [[f"w{at}" for at in four] for four in random.integers(0, words, (4_000, 4)).tolist()]
    pairs = PairGold("drawn", tuple((a, b, float(len(c))) for a, b, c, _ in drawn))
    questions = AnalogyGold("drawn", {"all": tuple((a, b, c, d) for a, b, c, d in drawn)})
    counts = random.zipf(1.5, words)
    sure, centre = sureness(counts), centre_of(vectors[frequent(counts)])
    directions = directions_of(vectors, centre)
    device_directions, device_sure = device.place(directions), device.place(sure)
    asked = max(1, words // 20)
    units = drawn_units(max(1, words // 50), dim, 2)
    common = np.linalg.qr(random.normal(0, 1, (dim, 2)))[0].astype(np.float32)
    parts = [
        Units(units.documents[at], units.sums[at], units.later, units.source, units.older)
        for at in np.array_split(
            np.arange(len(units.documents)), max(1, len(units.documents) // _PERMUTED)
        )
    ]

    def rows(given: Any) -> IntArray:
        return np.array([int(word[1:]) for word in given], dtype=np.int64)

    def both(here: Callable[[], Any], far: Callable[[], Any]) -> tuple[Any, Any, dict[str, float]]:
        answers, took = [], []
        for call in (here, far):
            for _ in range(2):  # the first compiles
                device.wait()
                began = time.perf_counter()
                answer = call()
                device.wait()
                seconds = time.perf_counter() - began
            answers.append(answer)
            took.append(seconds)
        return *answers, {"cpu_s": took[0], "device_s": took[1]}

    figures: dict[str, dict[str, float]] = {}
    head = on_device[:frequent_words]
    cpu, other, seconds = both(
        lambda: pip_loss(vectors[:frequent_words], together), lambda: pip_on_device(head, together)
    )
    figures["PIP loss"] = {**seconds, "difference": abs(cpu - other)}
    cpu, other, seconds = both(
        lambda: similarity(vectors, rows, pairs).rho, lambda: similarity(on_device, rows, pairs).rho
    )
    figures["similarity"] = {**seconds, "difference": abs(cpu - other)}
    cpu, other, seconds = both(
        lambda: analogy(vectors, rows, questions)[0].accuracy,
        lambda: analogy(on_device, rows, questions)[0].accuracy,
    )
    figures["analogy"] = {**seconds, "difference": abs(cpu - other)}
    cpu, other, seconds = both(
        lambda: nearest(directions, sure, asked),
        lambda: nearest_on_device(device_directions, device_sure),
    )
    seconds["cpu_s"] *= words / asked
    apart = float((cpu != to_host(other)[:asked]).mean())
    figures["neighbours of all words"] = {**seconds, "difference": apart}
    cpu, other, seconds = both(
        lambda: [Measured.of(part, common).observed for part in parts],
        lambda: [measured_on_device(part, common, device).observed for part in parts],
    )
    here, far = np.concatenate(cpu), np.concatenate(other)
    figures["permutations"] = {**seconds, "difference": float(np.abs(here / far - 1).max())}
    return figures
