"""Ours, for `drift.py`: train on a planted corpus as `yeoron train` does, judge its windows."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from embedding.kernel.config import validate
from embedding.kernel.records import WindowUnit
from embedding.models.config import LearningRateSchedule, ModelConfig
from embedding.snapshots.store import SnapshotStore
from embedding.stream.config import StreamConfig
from embedding.training import TrainRequest, train_corpus
from embedding.training.request import FRESH_NOISE
from embedding.trends.config import TrendsConfig
from embedding.trends.material import ReportInput, gather
from embedding.trends.moved import judge_words, pair_in
from embedding.trends.pair import SnapshotPair
from embedding.worker.config import NodeConfig
from yeoron_bench.detection import Judgement
from yeoron_bench.options import DriftOptions
from yeoron_bench.planting import PlantedCorpus

OURS = ("usage", "procrustes", "neighbours")
PLANTED_MIN_COUNT = 5


@dataclass(frozen=True)
class ComparedWindow:
    """Words with enough mentions in a window and the one before, with mentions in it."""

    window: int
    words: list[str]
    mentions: np.ndarray


@dataclass(frozen=True)
class DriftSetting(DriftOptions):
    """What is planted, and how it is trained and judged.

    planting               seed of the planting that is looked at; the training's is one more
    replay, memory, block  of a node: replay ratio, tokens of replay memory, tokens of a block
    epochs                 of gensim
    """

    planting: int = 0
    dim: int = 100
    nodes: int = 1
    replay: float = 2.0
    memory: int = 200_000
    block: int = 10_000
    epochs: int = 5


def compared(corpus: PlantedCorpus, least: int) -> list[ComparedWindow]:
    counts = [Counter(w for doc in docs for s in doc for w in s) for docs in corpus.windows]
    windows = []
    for at in range(1, len(counts)):
        before, now = counts[at - 1], counts[at]
        words = sorted(w for w, n in now.items() if n >= least and before[w] >= least)
        windows.append(ComparedWindow(at, words, np.array([now[w] for w in words], dtype=np.int64)))
    return windows


def judgement(
    which: ComparedWindow, scores: dict[str, float], flagged: set[str] | None
) -> Judgement:
    """Words that an estimator says nothing of come last."""
    lowest = min(scores.values(), default=0.0) - 1.0
    return Judgement(
        which.window,
        which.words,
        np.array([scores.get(w, lowest) for w in which.words], dtype=np.float32),
        None if flagged is None else np.array([w in flagged for w in which.words]),
        which.mentions,
    )


@dataclass(frozen=True)
class JudgedTraining:
    """What one estimator says of all windows, and the processor seconds of this process."""

    name: str
    windows: list[Judgement]
    seconds: float


def ours(
    corpus: PlantedCorpus, which: Sequence[ComparedWindow], given: DriftSetting, seed: int
) -> list[JudgedTraining]:
    """Each of our estimators over the snapshots of one training with this seed."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        store = _trained(corpus, Path(folder), given, seed)
        trained = time.process_time() - began
        ids = [ref.id for ref in store.list()]
        judgements: dict[str, list[Judgement]] = {name: [] for name in OURS}
        seconds = dict.fromkeys(OURS, trained)
        for window in which:
            material = gather(store, ids[window.window])
            pair = pair_in(material)
            for name in OURS:
                began = time.process_time()
                judgements[name].append(judged_by(name, material, pair, window))
                seconds[name] += time.process_time() - began
        return [JudgedTraining(name, judgements[name], seconds[name]) for name in OURS]


def _trained(corpus: PlantedCorpus, folder: Path, given: DriftSetting, seed: int) -> SnapshotStore:
    """The store of a training."""
    path = folder / "planted.jsonl"
    write(corpus, path)
    request = {
        "corpus": path,
        "out": folder / "store",
        "dated": WindowUnit.MONTH,
        "min_count": PLANTED_MIN_COUNT,
        "nodes": given.nodes,
        "model": ModelConfig(
            dim=given.dim, seed=seed, schedule=LearningRateSchedule.WINDOW, **FRESH_NOISE
        ),
        "node": NodeConfig(replay_ratio=given.replay, block_tokens=given.block),
        "stream": StreamConfig(replay_tokens=given.memory),
    }
    train_corpus(validate(TrainRequest, request, "bench drift"))
    return SnapshotStore(str(folder / "store"))


def judged_by(
    name: str, material: ReportInput, pair: SnapshotPair, which: ComparedWindow
) -> Judgement:
    """By an estimator of the trend report."""
    config = TrendsConfig(estimator=name, min_count=1)
    words = judge_words(material, pair, config, among=set(which.words))
    if words is None:
        return judgement(which, {}, set())
    names = [pair.words[at] for at in words.rows]
    flagged = {w for w, q in zip(names, words.ranked.q, strict=True) if q <= 0.05}
    return judgement(which, dict(zip(names, words.ranked.z.tolist(), strict=True)), flagged)


def write(corpus: PlantedCorpus, path: Path) -> None:
    """Windows as months, documents spread over the days."""
    with path.open("w", encoding="utf-8") as file:
        for at, docs in enumerate(corpus.windows):
            for i, document in enumerate(docs):
                day = 1 + i * 28 // len(docs)
                date = f"{2001 + at // 12}-{at % 12 + 1:02d}-{day:02d}"
                text = "\n".join(" ".join(sentence) for sentence in document)
                line = {"date": date, "source": "news", "text": text}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
