"""How soon a word gets its meaning: known words get a new name at some moment of the stream.

    python -m benchmarks newword CORPUS

From that moment on each chosen word is read under another name only, so that the new word has to
be learnt from nothing and its original is the one word that is known to mean the same. After 10,
20, 30, 60, 100 and 150 mentions (those before it had a row count too): is the original among the
new word's ten nearest (snapshots/nearness.py)? Once by the rows as they are trained, once as
readers get them, and of these also by the bare cosine; "inferred alone" lays the renamed words over
and no other: what the competition of other young words costs.
All settings go on from one state, learnt in one pass over the part before.

CORPUS is dated JSONL, read in time order, or text with a sentence a line, which is shuffled first.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.dated import documents
from benchmarks.kept import RESULTS
from benchmarks.local import FRESH_ROWS, Local, Sentences, Words, nearest_ranks, ticks
from embedding.kernel.errors import InputError
from embedding.models.config import ModelConfig
from embedding.server.config import ServerConfig
from embedding.server.parts import Content
from embedding.worker.config import NodeConfig
from yeoron_bench.results import ended, facts, keep_and_print

MARKS = (10, 20, 30, 60, 100, 150)
NEAR = 10
BAND = (100, 500)
"""Mentions per million words of the words that are chosen, before and after the moment."""
AFTER = 0.2
TICK = 4096
LOOK = 4
"""Ticks between two looks at the model."""
MIN_COUNT = 5
SETTINGS = {"": 0.0, ", replay": 3.0}
"""Name → replayed tokens for each fresh one."""
Curves = dict[str, list[tuple[int, int]]]


@dataclass(frozen=True)
class Task:
    """Sentences before and after the moment, and the words that are renamed."""

    before: Sentences
    after: Sentences
    chosen: list[str]

    def name(self, word: str) -> str:
        return f"{word}\u2032"


def read(path: Path, words: int, chosen: int, seed: int) -> Task:
    texts = list(documents(path, words))
    sentences = [sentence for _, document in texts for sentence in document if sentence]
    if not any(date for date, _ in texts):
        np.random.default_rng(seed).shuffle(sentences)
    ends = np.cumsum([len(sentence) for sentence in sentences])
    cut = int(np.searchsorted(ends, ends[-1] * (1 - AFTER))) if len(ends) else 0
    before, after = sentences[:cut], sentences[cut:]
    shares = []
    for part in (before, after):
        counts = Counter(word for sentence in part for word in sentence)
        total = max(sum(counts.values()), 1)
        low, high = (share * total / 1e6 for share in BAND)
        shares.append({word for word, n in counts.items() if max(low, MARKS[-1] / 2) <= n <= high})
    fit = sorted(word for word in shares[0] & shares[1] if len(word) > 1)
    if len(fit) < chosen:
        raise InputError(
            f"{path}: {len(fit)} words occur {BAND[0]} to {BAND[1]} times in a million words and "
            f"{MARKS[-1] // 2} times in the last fifth; {chosen} are needed: a longer corpus is."
        )
    picked = np.random.default_rng(seed).choice(fit, chosen, replace=False)
    return Task(before, after, [str(word) for word in picked])


def follow(task: Task, local: Local) -> dict[str, Curves]:
    """Each chosen word's (mentions, place of the original) as time goes on, by way of reading."""
    new = {word: task.name(word) for word in task.chosen}
    mentions: Counter[str] = Counter()
    by_setting: dict[str, Curves] = {}
    for number, sentences in enumerate(ticks(task.after, TICK)):
        renamed = [[new.get(word, word) for word in sentence] for sentence in sentences]
        mentions.update(word for sentence in sentences for word in sentence if word in new)
        local.learn(renamed)
        if number % LOOK:
            continue
        for name, (known, cosine) in readings(local, set(new.values())).items():
            curves = by_setting.setdefault(name, {word: [] for word in task.chosen})
            ranks = nearest_ranks(known, list(new.values()), task.chosen, cosine=cosine)
            for word, rank in zip(task.chosen, ranks.tolist(), strict=True):
                curves[word].append((mentions[word], rank))
        if min(mentions[word] for word in task.chosen) >= MARKS[-1]:
            break
    return by_setting


def readings(local: Local, new: set[str]) -> dict[str, tuple[Words, bool]]:
    """The model as it is trained, as it is read, and with the renamed words alone laid over.

    With each, whether places are by the bare cosine and not as readers get them.
    """
    trained, read = local.words(trained=True), local.words()
    renamed = np.array([word in new for word in trained.names])
    mixed = np.where(renamed[:, None], read.vectors, trained.vectors)
    return {
        "as trained": (trained, False),
        "as read": (read, False),
        "as read, by bare cosine": (read, True),
        "inferred alone": (replace(trained, vectors=mixed), False),
    }


def summary(ranks_of: dict[str, list[tuple[int, int]]]) -> dict[str, Any]:
    """By number of mentions: share of originals among the ten nearest, and their median place."""
    medians = {
        mark: [
            next((r for n, r in reversed(curve) if n <= mark), 10**9) for curve in ranks_of.values()
        ]
        for mark in MARKS
    }
    return {
        "share": {n: float(np.mean(np.array(ranks) < NEAR)) for n, ranks in medians.items()},
        "median_place": {n: int(np.median(ranks)) + 1 for n, ranks in medians.items()},
    }


def bench_newword(
    corpus: Path,
    words: int = 2_500_000,
    chosen: int = 100,
    *,
    dim: int = 100,
    seed: int = 1,
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Measure, print a table, write a dated JSON and Markdown file; returns what was written."""
    task = read(corpus, words, chosen, seed)
    model = ModelConfig(dim=dim, seed=seed).model_copy(update=FRESH_ROWS)
    server = ServerConfig(min_count=MIN_COUNT, device="cpu", half_life_tokens=None)
    content = _base(task, model, server)
    runs = {}
    for name, ratio in SETTINGS.items():
        started = time.process_time()
        local = Local(model, NodeConfig(replay_ratio=ratio), server, content)
        for way, curves in follow(task, local).items():
            runs[way + name] = {**summary(curves), "replay_ratio": ratio}
        print(f"replay {ratio:g}: {time.process_time() - started:.0f} s", file=sys.stderr)
    report = {
        **facts("newword", ("numpy", "numba", "torch", "scipy")),
        "config": model.model_dump(mode="json"),
        "min_count": MIN_COUNT,
        "rare_mentions": server.rare_mentions,
        "tick_tokens": TICK,
        "corpus": {
            "file": corpus.name,
            "tokens_before": sum(map(len, task.before)),
            "tokens_after": sum(map(len, task.after)),
        },
        "chosen": task.chosen,
        "band_per_million": BAND,
        "runs": runs,
    }
    keep_and_print(report, results=results, part=corpus.name.split(".")[0])
    return report


def _base(task: Task, model: ModelConfig, server: ServerConfig) -> Content:
    """The part before, learnt in one pass with a stream's settings."""
    local = Local(model, NodeConfig(), server)
    for sentences in ticks(task.before, NodeConfig().block_tokens):
        local.learn(sentences)
    return local.content()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--words", type=int, default=2_500_000)
    parser.add_argument("--chosen", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    return ended(
        lambda: bench_newword(
            given.corpus, given.words, given.chosen, seed=given.seed, results=given.results
        )
    )


if __name__ == "__main__":
    sys.exit(main())
