"""A yardstick for calls: which words changed, by a test whose units are documents.

    python -m benchmarks documents tokens.jsonl STORE --window 2020-03 --null 3

tokens.jsonl: lines {"date": "2020-02-03", "text": "words by blanks, sentence by line"}; STORE: what
`yeoron train --dated --window month` made of them. Both windows are read by the vectors of the
later snapshot. A document that uses a word says one unit vector of it:

    x = Σ_c w_c (u_c - ū) - n t,    w = a / (a + p),    t = Σ w (u - ū) / (m + BRIEF)

over all contexts c of its n mentions, with u_c the unit vector of c, ū the weighted mean of all
(smooth inverse frequency: Arora, Liang and Ma 2017; p: share of all words), and for t, what the
document is about, over all its m words. Sentences that stand in several texts count once. Documents
are assigned to units. With s_k and n_k the sum and the documents of unit k, N = Σ n_k and r units:

    log T,    T = |m_2 - m_1|² / (v_1 + v_2),    m = Σ s_k / N,
    v = (r-1)/r · Σ |s_k - n_k m|² / (1 - n_k/N)² / N²    (jackknife, Tukey 1958)

is compared with permutations of what the units say beside the mean of their own window. Divided by
its variance it shows a change of the mean also where one window has many documents and the other
few (Janssen 1997). p is the tail of Pearson's type III distribution with the permutations' moments.
--null assigns the documents of both windows by chance: every call is then false.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import pearson3

from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray, IntArray
from embedding.snapshots.nearness import unit_rows
from embedding.snapshots.snapshot import Snapshot
from embedding.snapshots.store import SnapshotStore
from embedding.trends.significance import benjamini_hochberg
from yeoron_bench.results import ended

Figures = npt.NDArray[np.float64]
Text = list[list[str]]
"""Sentences of words."""

FREQUENT = 1e-3
"""a: a word with this share of the text counts half."""
BRIEF = 100.0
"""Words of a document of which half is taken for what it is about."""
REPEATED = 4
"""Words of the shortest sentence that counts once however many texts it stands in."""
WINDOW = 5
"""Words on each side that are contexts."""


@dataclass(frozen=True)
class Uses:
    """Of each word: documents float32 [units], sums float32 [units, dim]."""

    documents: Mapping[str, FloatArray]
    sums: Mapping[str, FloatArray]


def meanings(snapshot: Snapshot) -> tuple[dict[str, int], FloatArray]:
    """Row of each word, and w (u - ū) float32 [n, dim]."""
    units = unit_rows(np.asarray(snapshot.vectors))
    counts = np.asarray(snapshot.counts, dtype=np.float64)
    share = counts / max(counts.sum(), 1.0)
    weight = (FREQUENT / (FREQUENT + share)).astype(np.float32)
    heavy = (share * weight).astype(np.float32)
    centre = heavy @ units / max(float(heavy.sum()), 1e-12)
    vectors: FloatArray = (units - centre) * weight[:, None]
    return {word: at for at, word in enumerate(snapshot.words)}, vectors


def uses_of(
    documents: Sequence[Text],
    rows: Mapping[str, int],
    vectors: FloatArray,
    units: int,
    random: np.random.Generator,
) -> Uses:
    """What the documents of a window say of their words."""
    dim = vectors.shape[1]
    sums: dict[str, FloatArray] = defaultdict(lambda: np.zeros((units, dim), np.float32))
    counts: dict[str, FloatArray] = defaultdict(lambda: np.zeros(units, np.float32))
    seen: set[tuple[str, ...]] = set()
    for text in documents:
        own: list[tuple[list[str], FloatArray]] = []
        for sentence in text:
            key = tuple(sentence)
            if len(key) >= REPEATED and key in seen:
                continue
            seen.add(key)
            known = [word for word in sentence if word in rows]
            own.append((known, vectors[[rows[word] for word in known]]))
        length = sum(len(words) for words, _ in own)
        topic = sum((said.sum(axis=0) for _, said in own), np.zeros(dim)) / (length + BRIEF)
        unit = int(random.integers(units))
        for word, said in _document(own, topic).items():
            size = float(np.linalg.norm(said))
            if size > 1e-6:
                sums[word][unit] += said / size
                counts[word][unit] += 1
    return Uses(dict(counts), dict(sums))


def _document(own: Sequence[tuple[list[str], FloatArray]], topic: Figures) -> dict[str, Figures]:
    found: dict[str, Figures] = {}
    for words, said in own:
        ends = np.concatenate([np.zeros((1, len(topic))), np.cumsum(said, axis=0)])
        for at, word in enumerate(words):
            low, high = max(0, at - WINDOW), min(len(words), at + WINDOW + 1)
            around = ends[high] - ends[low] - said[at] - (high - low - 1) * topic
            found[word] = found[word] + around if word in found else around
    return found


def tested(before: Uses, after: Uses, word: str, labels: FloatArray) -> tuple[float, float]:
    """z and p of a word. labels: float32 [1 + permutations, 2 · units], the true ones first."""
    counts = np.concatenate([before.documents[word], after.documents[word]])
    sums = np.concatenate([before.sums[word], after.sums[word]])
    half = len(counts) // 2
    observed = float(ratio(counts, sums, labels[:1])[0])
    beside = sums.copy()
    for side in (slice(half), slice(half, None)):
        mean = sums[side].sum(axis=0) / max(float(counts[side].sum()), 1e-9)
        beside[side] -= counts[side, None] * mean
    null = ratio(counts, beside, labels[1:])
    null = null[np.isfinite(null)]
    if not np.isfinite(observed) or len(null) < len(labels) / 2:
        return 0.0, 1.0
    z = (observed - null.mean()) / null.std()
    skew = ((null - null.mean()) ** 3).mean() / null.std() ** 3
    return float(z), float(np.clip(pearson3.sf(z, max(float(skew), 0.0)), 1e-300, 1.0))


def ratio(counts: FloatArray, sums: FloatArray, labels: FloatArray) -> Figures:
    """log T float64 [k] of each row of labels [k, u]; NaN with fewer than two units on a side."""
    means, variances = zip(*(_side(counts, sums, one) for one in (1 - labels, labels)), strict=True)
    apart = ((means[1] - means[0]) ** 2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Figures = np.log(np.maximum(apart, 1e-30) / (variances[0] + variances[1]))
    return found


def _side(counts: FloatArray, sums: FloatArray, label: FloatArray) -> tuple[Figures, Figures]:
    total = np.maximum((label @ counts).astype(np.float64), 1e-9)
    mean = (label @ sums) / total[:, None]
    share = np.minimum(counts / total[:, None], 1.0 - 1e-6)
    heavy = label / (1.0 - share) ** 2
    spread = (
        heavy @ (sums.astype(np.float64) ** 2).sum(axis=1)
        - 2.0 * (mean * (heavy @ (counts[:, None] * sums))).sum(axis=1)
        + (mean**2).sum(axis=1) * (heavy @ counts**2)
    )
    held = label @ (counts > 0).astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance: Figures = np.maximum(spread, 0.0) / total**2 * (held - 1) / held
    variance[held < 1.5] = np.nan
    return mean, variance


def compare(
    one: Sequence[Text], other: Sequence[Text], snapshot: Snapshot, given: Any, seed: int = 0
) -> list[tuple[str, float, float]]:
    """Word, z and q, surest first."""
    random = np.random.default_rng(seed)
    rows, vectors = meanings(snapshot)
    before, after = (uses_of(side, rows, vectors, given.units, random) for side in (one, other))
    observed = np.repeat([0.0, 1.0], given.units).astype(np.float32)[None]
    permuted = random.permuted(np.repeat(observed, given.permutations, axis=0), axis=1)
    labels = np.concatenate([observed, permuted])
    words = [
        word
        for word, counts in after.documents.items()
        if counts.sum() >= given.least
        and word in before.documents
        and before.documents[word].sum() >= given.least
    ]
    found = [(word, *tested(before, after, word, labels)) for word in words]
    q = benjamini_hochberg(np.array([p for *_, p in found]))
    order: IntArray = np.argsort([p for *_, p in found], kind="stable")
    return [(found[at][0], found[at][1], float(q[at])) for at in order.tolist()]


def measure(given: Any) -> None:
    texts: dict[str, list[Text]] = defaultdict(list)
    for line in given.tokens.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        texts[record["date"][:7]].append([one.split() for one in record["text"].split("\n")])
    store = SnapshotStore(str(given.store))
    snapshots = {f"{ref.window_start:%Y-%m}": ref.id for ref in store.list()}
    months = sorted(set(texts) & set(snapshots))
    if given.window not in months[1:]:
        raise InputError(f"window {given.window}: {', '.join(months[1:]) or 'none'} can be judged.")
    earlier = months[months.index(given.window) - 1]
    snapshot = store.open(snapshots[given.window])
    one, other = texts[earlier], texts[given.window]
    found = compare(one, other, snapshot, given)
    called = sum(q <= 0.05 for *_, q in found)
    first = " ".join(f"{word}({z:.1f})" for word, z, _ in found[:30])
    print(f"{earlier} -> {given.window}: {called} of {len(found)} called: {first}", flush=True)
    both = [*one, *other]
    for seed in range(1, given.null + 1):
        order = np.random.default_rng(seed).permutation(len(both)).tolist()
        first_side = [both[at] for at in order[: len(one)]]
        other_side = [both[at] for at in order[len(one) :]]
        false = compare(first_side, other_side, snapshot, given, seed)
        n = sum(q <= 0.05 for *_, q in false)
        print(f"    assigned by chance: {n} of {len(false)} called", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tokens", type=Path)
    parser.add_argument("store", type=Path)
    parser.add_argument("--window", required=True, help="month that is judged, as 2020-03")
    parser.add_argument("--null", type=int, default=1)
    parser.add_argument("--units", type=int, default=16)
    parser.add_argument("--permutations", type=int, default=499)
    parser.add_argument("--least", type=int, default=6, help="documents on either side")
    return ended(lambda: measure(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
