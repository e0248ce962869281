"""A set for `lsc.py` from documents that nobody has judged: graded changes are planted in them.

    python -m benchmarks lscplanted tokens.jsonl OUT --seed 5 --kind uses

tokens.jsonl: one document a line, a JSON list of sentences, each a list of words. Documents go to
windows by chance, so that nothing but what is planted differs: words that exchange their contexts,
and words that gain those of another one (`yeoron_bench/planting.py`). 30 changed words and 15
of like frequency that did not change are targets.

    plain  running text; most targets have 5 to 50 mentions a side
    uses   sentences that hold a target, up to 100 a side and target, as samples for annotation are
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from embedding.kernel.records import IntArray
from yeoron_bench.planting import (
    ChangeKind,
    PlantedCorpus,
    PlantedDocument,
    PlantingConfig,
    plant,
)
from yeoron_bench.results import ended

STRENGTHS = (0.15, 0.3, 0.5, 0.75, 1.0)
CHANGED, STABLE = 30, 15
USES = 100
LEAST = {"plain": 12, "uses": 110}
"""Mentions in a window that a planted word has at least, on average."""
CALLED = 0.25
"""Graded change from which the binary truth is 1."""
Side = list[Sequence[str]]


def make(
    documents: Sequence[PlantedDocument], out: Path, kind: str, tokens: int, seed: int
) -> None:
    rng = np.random.default_rng(1000 + seed)
    pool = _pool(documents, rng.permutation(len(documents)), kind, tokens)
    config = PlantingConfig(
        windows=4,
        first=3,
        exchanges=5,
        gains=2,
        decoys=0,
        strengths=STRENGTHS,
        least=LEAST[kind],
        common=250,
        seed=seed,
    )
    corpus = plant(pool, config)
    sides = [[s for document in corpus.windows[at] for s in document] for at in (2, 3)]
    counts = [Counter(word for s in side for word in s) for side in sides]
    truth = _truth(corpus, counts[0])
    touched = set(truth) | corpus.touched
    if kind == "plain":
        sides = [_first(side, tokens) for side in sides]
        counts = [Counter(word for s in side for word in s) for side in sides]
        truth = {w: v for w, v in truth.items() if min(counts[0][w], counts[1][w]) >= 5}
    words = sorted(truth)
    rng.shuffle(words)
    words = words[:CHANGED]
    stable = _stable(words, counts, touched, rng)
    truth = {word: truth[word] for word in words} | dict.fromkeys(stable, 0.0)
    if kind == "uses":
        sides = [_uses(side, set(truth), rng) for side in sides]
    _write(out, sides, truth)


def _pool(
    documents: Sequence[PlantedDocument], order: IntArray, kind: str, tokens: int
) -> list[PlantedDocument]:
    if kind == "uses":
        return [documents[at] for at in order]
    drawn, read = [], 0.0
    for at in order:
        drawn.append(documents[at])
        read += sum(map(len, documents[at]))
        if read >= 4 * tokens * 1.25:
            break
    return drawn


def _truth(corpus: PlantedCorpus, counts: Mapping[str, int]) -> dict[str, float]:
    """Share of a word's mentions afterwards that stand in contexts of another word."""
    truth = {}
    for change in corpus.planted:
        truth[change.word] = change.strength
        if change.kind is ChangeKind.GAINED and change.other is not None:
            gained = counts[change.other] * change.strength
            truth[change.word] = gained / (counts[change.word] + gained)
    return truth


def _stable(
    words: Sequence[str],
    counts: Sequence[Mapping[str, int]],
    touched: set[str],
    rng: np.random.Generator,
) -> list[str]:
    before, after = counts
    least = min(before[word] for word in words)
    left = [
        w for w, n in before.items() if w not in touched and n >= least and after[w] >= 0.6 * least
    ]
    chosen: list[str] = []
    for word in rng.permutation(words)[:STABLE]:
        near = sorted(left, key=lambda w: (abs(np.log(before[w] / before[word])), w))[:20]
        near = [other for other in near if other not in chosen]
        chosen.append(near[int(rng.integers(len(near)))])
    return chosen


def _first(side: Side, tokens: int) -> Side:
    ends = np.cumsum([len(sentence) for sentence in side])
    return side[: int(np.searchsorted(ends, tokens)) + 1]


def _uses(side: Side, targets: set[str], rng: np.random.Generator) -> Side:
    sentences: Side = []
    counts: Counter[str] = Counter()
    for at in rng.permutation(len(side)):
        own = set(side[at]) & targets
        if 5 <= len(side[at]) <= 60 and any(counts[word] < USES for word in own):
            sentences.append(side[at])
            counts.update(own)
    return sentences


def _write(out: Path, sides: Sequence[Side], truth: Mapping[str, float]) -> None:
    for which, side in enumerate(sides, start=1):
        lemma = out / f"corpus{which}" / "lemma"
        lemma.mkdir(parents=True)
        text = "".join(" ".join(sentence) + "\n" for sentence in side)
        (lemma / "planted.txt").write_text(text, encoding="utf-8")
    (out / "truth").mkdir()
    words = sorted(truth)
    (out / "targets.txt").write_text("".join(f"{w}\n" for w in words), encoding="utf-8")
    for name, rows in (
        ("graded", [f"{w}\t{truth[w]:.4f}\n" for w in words]),
        ("binary", [f"{w}\t{int(truth[w] >= CALLED)}\n" for w in words]),
    ):
        (out / "truth" / f"{name}.txt").write_text("".join(rows), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("documents", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--kind", choices=tuple(LEAST), default="uses")
    parser.add_argument("--tokens", type=int, default=150_000, help="a side, of plain text")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    with given.documents.open(encoding="utf-8") as lines:
        documents = [record for line in lines if (record := json.loads(line))]
    return ended(lambda: make(documents, given.out, given.kind, given.tokens, given.seed))


if __name__ == "__main__":
    sys.exit(main())
