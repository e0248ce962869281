"""Words whose change people have judged: every estimator of ours beside gensim with Procrustes.

    yeoron bench lsc DIR
    yeoron bench lsc DIR --tokens 150000 --seeds 5

DIR is laid out as SemEval-2020 task 1 is (`neighbours/yeoron_bench/changeset.py`). Each seed draws
sentences (`--tokens`), trains ours once over both corpora as `yeoron train --dated` does, and
gensim on either side.

Ours: how much words changed by the estimators of the trend report, and what stands around each
mention in the text (`neighbours/yeoron_bench/lscours.py`), compared by average pairwise distance
and by prototypes.

A target is called changed when its score is above the mean of other words by `--deviations` of
their standard deviations (mean + t·σ: Kurtyigit et al. 2021, "Lexical Semantic Change Discovery").
The other words are those nearest to the targets in frequency, which are stable but for a few. A
target that an estimator says nothing of gets the median of the others.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from embedding.kernel.records import IntArray
from embedding.trends.significance import TestArray
from yeoron_bench.changeset import ChangeSet, read_change_set
from yeoron_bench.gensimpeers import gensim_scores
from yeoron_bench.lscours import SMOOTHING, WINDOW, context_scores, product_scores, train
from yeoron_bench.options import LscSetting
from yeoron_bench.results import RESULTS, facts, keep, need

_PACKAGES = ("yeoron", "numpy", "numba", "pyarrow", "torch", "gensim", "scipy")
PASSES = (5, 20)
"""Passes of gensim: its default, and as many as so little text takes."""
_OTHERS = 300
"""Words beside the targets that thresholds come from."""
_LEAST = 5
"""Mentions on either side that such a word has at least, unless a target has fewer."""
_Run = dict[str, Any]


def other_words(data: ChangeSet) -> IntArray:
    """int64 [≤ OTHERS]: words that are no targets, nearest to them in frequency."""
    counts = np.minimum(*(side.counts(len(data.words)) for side in (data.before, data.after)))
    targets = np.maximum(counts[data.targets], 1)
    often = np.flatnonzero(counts >= min(_LEAST, int(targets.min())))
    words = np.setdiff1d(often, data.targets)
    apart = np.abs(np.log(counts[words])[:, None] - np.log(targets)).min(axis=1)
    return np.sort(words[np.argsort(apart, kind="stable")[:_OTHERS]])


def standardised(scores: TestArray, targets: int) -> TestArray:
    """float64 [targets]: of the first `targets` scores, in deviations of the others.

    Plain scores where there are too few others to say.
    """
    own, others = scores[:targets], scores[targets:]
    others = others[np.isfinite(others)]
    if len(others) > 1 and others.std() > 0:
        own = (own - others.mean()) / others.std()
    known = own[np.isfinite(own)]
    values: TestArray = np.where(np.isfinite(own), own, np.median(known) if len(known) else 0.0)
    return values


def judged(data: ChangeSet, scores: TestArray, deviations: float) -> dict[str, float | None]:
    """Spearman's ρ with the graded truth (None: no order) and accuracy on the binary one.

    scores  float64 [targets], standardised
    """
    ours, truth = rankdata(scores), rankdata(data.graded)
    ordered = ours.std() > 0 and truth.std() > 0
    return {
        "spearman": round(float(np.corrcoef(ours, truth)[0, 1]), 4) if ordered else None,
        "accuracy": round(float(np.mean((scores > deviations) == data.binary)), 4),
    }


def scored(data: ChangeSet, given: LscSetting, seed: int) -> dict[str, TestArray]:
    """Standardised scores float64 [targets] by estimator."""
    words = np.concatenate([data.targets, other_words(data)])
    with tempfile.TemporaryDirectory() as folder:
        store = train(data, given, seed, Path(folder))
        raw = product_scores(store, words)
        raw |= context_scores(data, store, words)
    scores = {name: standardised(values, len(data.targets)) for name, values in raw.items()}
    for passes in PASSES if given.peers else ():
        peer = gensim_scores(data, words, given, passes, seed)
        scores[f"gensim, {passes} passes, procrustes"] = standardised(peer, len(data.targets))
    return scores


def measure(given: LscSetting) -> _Run:
    """Figures of every estimator by seed, their means, and what was read."""
    data = read_change_set(given.folder)
    if given.peers:
        need("gensim", "it is measured beside ours; --no-peers does without")
    runs: list[_Run] = []
    for seed in range(given.first, given.first + given.seeds):
        drawn = data
        if given.tokens is not None:
            sides = [side.draw(given.tokens, seed) for side in (data.before, data.after)]
            drawn = replace(data, before=sides[0], after=sides[1])
        for name, scores in scored(drawn, given, seed).items():
            figures = judged(data, scores, given.deviations)
            runs.append({"seed": seed, "name": name, **figures, **_size(drawn)})
    return {"set": data.name, "targets": len(data.targets), "runs": runs, "mean": means(runs)}


def _size(data: ChangeSet) -> _Run:
    """Tokens of either side, and targets that a draw left without a mention on one."""
    sides = (data.before, data.after)
    occurs = [side.counts(len(data.words))[data.targets] > 0 for side in sides]
    return {
        "tokens": [len(side.tokens) for side in sides],
        "unseen": int((~(occurs[0] & occurs[1])).sum()),
    }


def means(runs: Sequence[_Run]) -> dict[str, _Run]:
    """By estimator: mean over seeds, and the least and most Spearman."""
    by_name: dict[str, _Run] = {}
    for name in dict.fromkeys(run["name"] for run in runs):
        own = [run for run in runs if run["name"] == name]
        rhos = [run["spearman"] for run in own if run["spearman"] is not None]
        by_name[name] = {
            "spearman": round(float(np.mean(rhos)), 4) if rhos else None,
            "least": min(rhos, default=None),
            "most": max(rhos, default=None),
            "accuracy": round(float(np.mean([run["accuracy"] for run in own])), 4),
        }
    return by_name


def bench_lsc(given: LscSetting, *, as_json: bool, results: Path = RESULTS) -> None:
    """Measure, keep the figures in `results` and print them. Raises YeoronError."""
    figures = measure(given)
    settings = {k: v for k, v in vars(given).items() if k != "folder"}
    record = {
        **facts("lsc", _PACKAGES),
        "settings": settings | {"window": WINDOW, "frequent": SMOOTHING, "others": _OTHERS},
        **figures,
    }
    path = keep(record, results=results, part=figures["set"])
    if as_json:
        print(json.dumps(record, ensure_ascii=False, indent=1))
    else:
        print(f"{path.read_text(encoding='utf-8')}\nWritten to {path}.")
