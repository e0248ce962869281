"""Planted changes of meaning: who finds them, how surely, how soon?

    yeoron bench drift reviews.jsonl --tokenizer kiwi

A dated corpus is dealt out to windows by chance and changes of known word, date and strength are
planted, with decoys (`embedding/evaluation/planting.py`). Ours learns it as `yeoron train --dated`
does, one snapshot a window, and judges each window against the one before. The baselines are what
people use: gensim trained anew for each window and turned onto the one before (Procrustes; Hamilton
et al. 2016), gensim that goes on learning (`build_vocab(update=True)`; Kim et al. 2014) compared by
cosine, and neighbour overlap (Gonen et al. 2020) of both. All rank the same words: those with so
many mentions (`--least`) in both windows.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import hardware, versions
from embedding.config import validate
from embedding.errors import YeoronError
from embedding.evaluation.detection import Detection, Judgement, detect
from embedding.evaluation.planting import Document, PlantedCorpus, PlantingConfig, plant
from embedding.models import ModelConfig
from embedding.records import FloatArray, WindowUnit
from embedding.snapshots.store import SnapshotStore
from embedding.stream.config import StreamConfig
from embedding.text import TextConfig, TextPipeline
from embedding.training import TrainRequest, train_corpus
from embedding.trends.config import TrendsConfig
from embedding.trends.material import Material, gather
from embedding.trends.moved import judge_words, pair_in
from embedding.trends.nearest import nearest
from embedding.trends.pair import Pair, unit
from embedding.trends.shift import cosine_distance, fit_rotation, overlap_shift
from embedding.worker.config import NodeConfig
from embedding.worker.reading import dated_lines
from embedding.worker.spec import CorpusShare

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("yeoron", "numpy", "numba", "pyarrow", "torch", "gensim", "kiwipiepy")
OURS = ("combined", "usage", "procrustes", "neighbours", "local")
NEIGHBOURS = 50
CANDIDATES = 10_000
MIN_COUNT = 5


@dataclass(frozen=True)
class Compared:
    """Words with enough mentions in a window and the one before, with mentions in it."""

    window: int
    words: list[str]
    mentions: np.ndarray


def documents(path: Path, tokenizer: str, most: int | None) -> list[Document]:
    """Documents in order of time, as sentences of words."""
    pipeline = TextPipeline(TextConfig(tokenizer=tokenizer, mask=False))  # type: ignore[arg-type]
    lines = sorted(dated_lines(CorpusShare(path=str(path))), key=lambda line: line.when)
    step = max(1, len(lines) // most) if most else 1
    found = [pipeline.words(line.text) for line in lines[::step]]
    return [[list(s) for s in document] for document in found if document]


def compared(corpus: PlantedCorpus, least: int) -> list[Compared]:
    counts = [Counter(w for doc in docs for s in doc for w in s) for docs in corpus.windows]
    found = []
    for at in range(1, len(counts)):
        before, now = counts[at - 1], counts[at]
        words = sorted(w for w, n in now.items() if n >= least and before[w] >= least)
        found.append(Compared(at, words, np.array([now[w] for w in words], dtype=np.int64)))
    return found


def judgement(which: Compared, scores: dict[str, float], flagged: set[str] | None) -> Judgement:
    """Words that an estimator says nothing of come last."""
    lowest = min(scores.values(), default=0.0) - 1.0
    return Judgement(
        which.window,
        which.words,
        np.array([scores.get(w, lowest) for w in which.words], dtype=np.float32),
        None if flagged is None else np.array([w in flagged for w in which.words]),
        which.mentions,
    )


def ours(
    corpus: PlantedCorpus, which: Sequence[Compared], given: Namespace
) -> Iterator[tuple[str, list[Judgement], float]]:
    """Each of our estimators over the snapshots of one training."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "planted.jsonl", Path(folder) / "store"
        write(corpus, path)
        request = {
            "corpus": path,
            "out": out,
            "dated": WindowUnit.MONTH,
            "min_count": MIN_COUNT,
            "nodes": given.nodes,
            "model": ModelConfig(dim=given.dim, seed=given.seed),
            "node": NodeConfig(replay_ratio=given.replay, block_tokens=given.block),
            "stream": StreamConfig(replay_tokens=given.memory),
        }
        began = time.process_time()
        result = train_corpus(validate(TrainRequest, request, "bench drift"))
        trained = time.process_time() - began
        store, refs = SnapshotStore(str(out)), result.snapshots
        found: dict[str, list[Judgement]] = {name: [] for name in OURS}
        seconds = dict.fromkeys(OURS, trained)
        for one in which:
            material = gather(store, refs[one.window].id)
            pair = pair_in(material, TrendsConfig())
            for name in OURS:
                began = time.process_time()
                found[name].append(judged_by(name, material, pair, one))
                seconds[name] += time.process_time() - began
        yield from ((name, found[name], seconds[name]) for name in OURS)


def judged_by(name: str, material: Material, pair: Pair, which: Compared) -> Judgement:
    config = TrendsConfig(estimator=name, min_count=1)  # type: ignore[arg-type]
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
                file.write(json.dumps({"date": date, "text": text}, ensure_ascii=False) + "\n")


def gensim(
    corpus: PlantedCorpus, which: Sequence[Compared], given: Namespace, *, goes_on: bool
) -> Iterator[tuple[str, list[Judgement], float]]:
    """Cosine (after Procrustes when each window is learnt anew) and neighbour overlap."""
    began = time.process_time()
    spaces = list(_gensim_spaces(corpus, given, goes_on=goes_on))
    trained = time.process_time() - began
    way = "goes on" if goes_on else "each window"
    for figure in ("cosine", "neighbours"):
        began = time.process_time()
        judged = []
        for one in which:
            pair = _paired(spaces[one.window - 1], spaces[one.window])
            values = _baseline(pair, figure, turned=not goes_on)
            judged.append(judgement(one, dict(zip(pair.words, values, strict=True)), None))
        name = "procrustes" if figure == "cosine" and not goes_on else figure
        yield f"gensim {way}, {name}", judged, trained + time.process_time() - began


def _gensim_spaces(
    corpus: PlantedCorpus, given: Namespace, *, goes_on: bool
) -> Iterator[tuple[dict[str, int], FloatArray, np.ndarray]]:
    from gensim.models import Word2Vec

    settings = {"vector_size": given.dim, "sg": 1, "negative": 5, "window": 5, "sample": 1e-4}
    epochs = given.epochs if goes_on else 2 * given.epochs
    model, counts = None, Counter[str]()
    for docs in corpus.windows:
        sentences = [list(sentence) for document in docs for sentence in document]
        if model is None or not goes_on:
            model = Word2Vec(min_count=MIN_COUNT, workers=1, seed=given.seed, **settings)
            counts = Counter()
            model.build_vocab(sentences)
        else:
            model.build_vocab(sentences, update=True)
        counts.update(word for sentence in sentences for word in sentence)
        model.train(sentences, total_examples=len(sentences), epochs=epochs)
        words = dict(model.wv.key_to_index)
        often = np.array([counts[word] for word in words], dtype=np.int64)
        yield words, model.wv.vectors[: len(words)].copy(), often


def _paired(
    before: tuple[dict[str, int], FloatArray, np.ndarray],
    after: tuple[dict[str, int], FloatArray, np.ndarray],
) -> Pair:
    words = [word for word in after[0] if word in before[0]]
    old = np.array([before[0][word] for word in words])
    new = np.array([after[0][word] for word in words])
    return Pair(
        words=tuple(words),
        before=unit(before[1][old]),
        after=unit(after[1][new]),
        seen_before=before[2][old],
        seen_after=after[2][new],
    )


def _baseline(pair: Pair, figure: str, *, turned: bool) -> list[float]:
    rows = np.arange(len(pair), dtype=np.int64)
    if figure == "neighbours":
        candidates = pair.frequent(CANDIDATES)
        near = [
            nearest(side, rows, candidates, NEIGHBOURS, 1024) for side in (pair.before, pair.after)
        ]
        return list(map(float, overlap_shift(near[0], near[1], len(pair))))
    before = pair.before @ fit_rotation(pair.before, pair.after) if turned else pair.before
    return list(map(float, cosine_distance(before, pair.after)))


def measure(given: Namespace) -> dict[str, Any]:
    docs = documents(given.corpus, given.tokenizer, given.documents)
    runs: list[dict[str, Any]] = []
    for seed in range(given.seeds):
        given.seed = 1 + seed
        config = PlantingConfig(windows=given.windows, seed=seed, shuffle=not given.ordered)
        if given.null:
            config = config.model_copy(update={"exchanges": 0, "gains": 0, "decoys": 0})
        corpus = plant(docs, config)
        which = compared(corpus, given.least)
        sides = [ours(corpus, which, given)]
        if not given.no_peers:
            sides += [gensim(corpus, which, given, goes_on=on) for on in (True, False)]
        for side in sides:
            for name, judged, seconds in side:
                found = detect(judged, corpus)
                runs.append(
                    {"seed": seed, "name": name, "cpu_s": round(seconds, 1), **asdict(found)}
                )
                say(name, found)
    return {"runs": runs, "documents": len(docs)}


def say(name: str, found: Detection) -> None:
    strengths = " ".join(f"{k}:{v:.2f}" for k, v in found.by_strength.items())
    bands = " ".join(f"{v:.2f}" for v in found.by_band.values())
    rest = ""
    if found.recall is not None:
        precision = float("nan") if found.precision is None else found.precision
        rest = (
            f" · called {found.flagged}, precision {precision:.2f}, recall {found.recall:.2f}, "
            f"false {found.false_discovery:.3f}, after {found.mentions} mentions"
        )
    decoys = " ".join(f"{k} {v:.2f}" for k, v in found.by_decoy.items())
    ranking = f"AP {found.average_precision:.3f} ({strengths}; bands {bands})"
    print(f"{name:32s} {ranking}{rest} | {decoys}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path, help="dated JSONL, plain or .xz")
    parser.add_argument("--tokenizer", default="whitespace")
    parser.add_argument("--documents", type=int, default=None)
    parser.add_argument("--windows", type=int, default=6)
    parser.add_argument("--least", type=int, default=20)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--replay", type=float, default=2.0)
    parser.add_argument("--memory", type=int, default=200_000, help="tokens of replay memory")
    parser.add_argument("--block", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--null", action="store_true", help="plant nothing: all finds are false")
    parser.add_argument("--ordered", action="store_true", help="keep the corpus' own order of time")
    parser.add_argument("--no-peers", action="store_true")
    given = parser.parse_args(arguments)
    try:
        found = measure(given)
    except YeoronError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    now = datetime.now(UTC)
    record = {
        "what": "planted changes",
        "at": now.isoformat(timespec="seconds"),
        "corpus": given.corpus.name,
        "settings": {k: v for k, v in vars(given).items() if k != "corpus"},
        "hardware": hardware(),
        "versions": versions(PACKAGES),
        **found,
    }
    path = RESULTS / f"drift-{now:%Y-%m-%dT%H%M}.json"
    path.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"Written to {path}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
