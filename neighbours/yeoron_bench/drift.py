"""Planted changes of meaning: who finds them, how surely, how soon?

    yeoron bench drift reviews.jsonl --tokenizer kiwi

A dated corpus is assigned to windows by chance and changes of known word, date and strength are
planted, with decoys (`yeoron_bench/planting.py`). Ours learns it as `yeoron train --dated`
does, one snapshot a window, and judges each window against the one before. The baselines are what
people use: gensim trained again for each window and turned onto the one before (Procrustes;
Hamilton et al. 2016), gensim that goes on learning (`build_vocab(update=True)`; Kim et al. 2014)
compared by cosine, and neighbour overlap (Gonen et al. 2020) of both. All rank the same words:
those with so many mentions (`--least`) in both windows.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any

from embedding.kernel.config import validate
from embedding.text.config import TextConfig
from embedding.text.pipeline import TextPipeline
from embedding.worker.spec import CorpusShare
from yeoron_bench.datedlines import dated_lines
from yeoron_bench.detection import Detection, detect
from yeoron_bench.driftjudging import DriftSetting, compared, ours
from yeoron_bench.gensimpeers import gensim
from yeoron_bench.planting import PlantedDocument, PlantingConfig, plant
from yeoron_bench.results import RESULTS, facts, keep, need

_PACKAGES = ("yeoron", "numpy", "numba", "pyarrow", "torch", "gensim", "kiwipiepy")


def documents(path: Path, tokenizer: str, most: int | None) -> list[PlantedDocument]:
    """Documents in order of time, as sentences of words."""
    pipeline = TextPipeline(TextConfig(tokenizer=tokenizer, mask=False))
    lines = sorted(dated_lines(CorpusShare(path=str(path))), key=lambda line: line.when)
    step = max(1, len(lines) // most) if most else 1
    cut = [pipeline.words(line.text) for line in lines[::step]]
    return [[list(s) for s in document] for document in cut if document]


def measure(given: DriftSetting) -> dict[str, Any]:
    if given.peers:
        need("gensim", "it is measured beside ours; --no-peers does without")
    docs = documents(given.corpus, given.tokenizer, given.documents)
    runs: list[dict[str, Any]] = []
    for seed in range(given.first, given.first + given.seeds):
        given = replace(given, planting=seed)
        planting = {"windows": given.windows, "seed": seed, "thin": given.thin}
        corpus = plant(docs, validate(PlantingConfig, planting, "bench drift"))
        which = compared(corpus, given.least)
        peers = [gensim(corpus, which, given, goes_on=way) for way in (True, False)]
        judged = chain(ours(corpus, which, given, 1 + seed), *(peers if given.peers else ()))
        for side in judged:
            detection = detect(side.windows, corpus)
            flags = [window.flagged for window in side.windows]
            calls = [None if flagged is None else int(flagged.sum()) for flagged in flags]
            facts_of = {"seed": seed, "name": side.name, "cpu_s": round(side.seconds, 1)}
            runs.append({**facts_of, "called_by_window": calls, **asdict(detection)})
            say(side.name, detection)
    return {"runs": runs, "documents": len(docs)}


def say(name: str, detection: Detection) -> None:
    strengths = " ".join(f"{k}:{v:.2f}" for k, v in detection.by_strength.items())
    bands = " ".join(f"{v:.2f}" for v in detection.by_band.values())
    rest = ""
    if detection.false_discovery is not None:
        rest = f" · called {detection.flagged}, false {detection.false_discovery:.3f}"
    if detection.recall is not None:
        precision = float("nan") if detection.precision is None else detection.precision
        rest += (
            f", precision {precision:.2f}, recall {detection.recall:.2f}, "
            f"after {detection.mentions} mentions in {detection.documents} documents"
        )
    decoys = " ".join(f"{k} {v:.2f}" for k, v in detection.by_decoy.items())
    ranking = f"AP {detection.average_precision:.3f} ({strengths}; bands {bands})"
    print(f"{name:32s} {ranking}{rest} | {decoys}", flush=True)


def bench_drift(given: DriftSetting, *, results: Path = RESULTS) -> None:
    """Measure, print each estimator as it is done, keep the figures. Raises YeoronError."""
    figures = measure(given)
    record = {
        **facts("drift", _PACKAGES),
        "corpus": given.corpus.name,
        "settings": {k: v for k, v in vars(given).items() if k not in ("corpus", "planting")},
        **figures,
    }
    print(f"Written to {keep(record, results=results)}.")
