"""Ours, for `drift.py`: train on a planted corpus as `yeoron train` does, judge its windows."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embedding.exchange.payload import TIMES, UNITS
from embedding.kernel.config import validate
from embedding.kernel.records import WindowUnit
from embedding.models.config import LearningRateSchedule, ModelConfig
from embedding.snapshots.store import SnapshotStore
from embedding.stream.config import StreamConfig
from embedding.training import TrainRequest, train_corpus
from embedding.training.request import FRESH_NOISE
from embedding.trends.config import TrendsConfig
from embedding.trends.contrast import source_contrast
from embedding.trends.material import ReportInput, gather
from embedding.trends.moved import judge_words, pair_in
from embedding.trends.pair import SnapshotPair
from embedding.trends.significance import benjamini_hochberg, normal_isf
from embedding.worker.config import NodeConfig
from yeoron_bench.detection import Judgement, overlap
from yeoron_bench.options import DriftOptions
from yeoron_bench.oracle import donors, oracle_p
from yeoron_bench.planting import PlantedCorpus

OURS = ("usage", "procrustes", "neighbours")
ORACLE = "usage, by an oracle"
PLANTED_SOURCES = ("a", "b")
EVERY = 1_000
"""Rows of a contrast that are looked at."""
PLANTED_MIN_COUNT = 5
_FIRST = 200
"""Words of the ranking that two trainings are compared by."""


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

    def record(self, without: Collection[str]) -> dict[str, Any]:
        """All but some of the fields, JSON-safe."""
        return {name: value for name, value in vars(self).items() if name not in without}


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
    with _folder(given, seed) as folder:
        began = time.process_time()
        store = _trained(corpus, folder, given, seed)
        trained = time.process_time() - began
        ids = [ref.id for ref in store.list()]
        names = OURS if given.null else (*OURS, ORACLE)
        judgements: dict[str, list[Judgement]] = {name: [] for name in names}
        seconds = dict.fromkeys(names, trained)
        for compared_window in which:
            material = gather(store, ids[compared_window.window])
            pair = pair_in(material)
            for name in names:
                began = time.process_time()
                moved = donors(corpus, compared_window.window) if name == ORACLE else {}
                judgements[name].append(judged_by(name, material, pair, compared_window, moved))
                seconds[name] += time.process_time() - began
        judged = [JudgedTraining(name, judgements[name], seconds[name]) for name in judgements]
        if given.null:
            contrasts = [
                contrast(store, ids[compared_window.window], compared_window.window)
                for compared_window in which
            ]
            judged.append(JudgedTraining("contrast", contrasts, trained))
        return judged


def contrast(store: SnapshotStore, snapshot: str, window: int) -> Judgement:
    """The words that two sources of a window differ in; documents were assigned at random."""
    rows = source_contrast(store, *PLANTED_SOURCES, TrendsConfig(rows=EVERY), id=snapshot).rows
    words = [row.word for row in rows]
    mentions = np.array([row.mentions_first + row.mentions_second for row in rows], dtype=np.int64)
    return judgement(
        ComparedWindow(window, words, mentions),
        {row.word: row.z for row in rows},
        {row.word for row in rows if row.significant},
    )


def overlaps(
    left: Sequence[JudgedTraining], right: Sequence[JudgedTraining]
) -> Iterator[dict[str, object]]:
    """How far two trainings on the same text, with other seeds, name the same words."""
    for first, second in zip(left, right, strict=True):
        by_window = [
            overlap(a, b, _FIRST) for a, b in zip(first.windows, second.windows, strict=True)
        ]
        calls = sum(each.first + each.second for each in by_window)
        yield {
            "name": first.name,
            "first": _FIRST,
            "ranked_by_window": [round(each.ranked, 3) for each in by_window],
            "ranked": round(float(np.mean([each.ranked for each in by_window])), 3),
            # Dice: of two sets of n words that share m, m / n.
            "called": round(2 * sum(e.both for e in by_window) / calls, 3) if calls else None,
            "called_by_one": sum(each.first for each in by_window),
            "called_by_other": sum(each.second for each in by_window),
        }


def past_windows(given: DriftSetting) -> int:
    """Defaults; the half of a window has the other half alone to be compared with."""
    return 1 if given.null == "same-window" else NodeConfig().past_windows


@contextmanager
def _folder(given: DriftSetting, seed: int) -> Iterator[Path]:
    """Where the training is kept (`--stores`), or a folder that is gone afterwards."""
    if given.stores is None:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
        return
    what = f"{given.null or 'planting'}{given.planting}-training{seed}"
    kept = given.stores / f"{given.corpus.name.split('.')[0]}-{what}"
    kept.mkdir(parents=True, exist_ok=True)
    yield kept


def _trained(corpus: PlantedCorpus, folder: Path, given: DriftSetting, seed: int) -> SnapshotStore:
    """The store of a training; one that was kept, by the same settings, is taken as it is."""
    done, out, path = folder / "settings.json", folder / "store", folder / "planted.jsonl"
    left_out = ("corpus", "epochs", "first", "least", "overlap", "peers", "seeds", "stores")
    settings = given.record(left_out)
    settings |= {"seed": seed, "units": UNITS, "times": TIMES, "sources": bool(given.null)}
    if done.exists() and json.loads(done.read_text(encoding="utf-8")) == settings:
        return SnapshotStore(str(out))
    shutil.rmtree(out, ignore_errors=True)
    write(corpus, path, PLANTED_SOURCES if given.null else ("news",))
    request = {
        "corpus": path,
        "out": out,
        "dated": WindowUnit.MONTH,
        "min_count": PLANTED_MIN_COUNT,
        "nodes": given.nodes,
        "model": ModelConfig(
            dim=given.dim, seed=seed, schedule=LearningRateSchedule.WINDOW, **FRESH_NOISE
        ),
        "node": NodeConfig(
            replay_ratio=given.replay,
            block_tokens=given.block,
            past_windows=past_windows(given),
        ),
        "stream": StreamConfig(replay_tokens=given.memory),
    }
    train_corpus(validate(TrainRequest, request, "bench drift"))
    path.unlink()
    done.write_text(json.dumps(settings), encoding="utf-8")
    return SnapshotStore(str(out))


def judged_by(
    name: str,
    material: ReportInput,
    pair: SnapshotPair,
    which: ComparedWindow,
    moved: Mapping[str, str],
) -> Judgement:
    """By an estimator, or by one that knows what each of the words `moved` took contexts from."""
    config = TrendsConfig(estimator="usage" if name == ORACLE else name, min_count=1)
    words = judge_words(material, pair, config, among=set(which.words))
    if words is None:
        return judgement(which, {}, set())
    names = [pair.words[at] for at in words.rows]
    z, q = words.ranked.z, words.ranked.q
    if moved:
        p = oracle_p(words, names, moved)
        z, q = normal_isf(np.minimum(p, 1.0 - 1e-9)), benjamini_hochberg(p)
    flagged = {w for w, each in zip(names, q, strict=True) if each <= 0.05}
    return judgement(which, dict(zip(names, z.tolist(), strict=True)), flagged)


def write(corpus: PlantedCorpus, path: Path, sources: Sequence[str]) -> None:
    """Windows as months, documents spread over the days, each of a source by chance."""
    random = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        for at, docs in enumerate(corpus.windows):
            for i, document in enumerate(docs):
                day = 1 + i * 28 // len(docs)
                date = f"{2001 + at // 12}-{at % 12 + 1:02d}-{day:02d}"
                line = {
                    "date": date,
                    "source": sources[int(random.integers(len(sources)))],
                    "text": "\n".join(" ".join(sentence) for sentence in document),
                }
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
