"""A dated corpus as the stream of a node: blocks in time order, and pairs to score it by."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray, IntArray, TokenBlock
from embedding.models.config import ModelConfig
from embedding.models.sampling import NoiseTable
from yeoron_bench.corpora import lines_of

MIN_COUNT = 5
BLOCK = 10_000
LEAST_BLOCKS = 20
HELD_OUT = 20  # one document of so many is never learnt
PAIRS = 30_000
FRESH_PAIRS = 3_000
_END = re.compile(r"(?<=[.!?…])\s+|\n+")

Document = tuple[str, list[list[str]]]


@dataclass(frozen=True)
class Pairs:
    """Pairs to score: rows int64 [n] of both tables, noise int64 [n, k]."""

    centres: IntArray
    contexts: IntArray
    noise: IntArray

    def loss(self, vectors: FloatArray, contexts: FloatArray) -> float:
        """Mean negative-sampling loss in nats."""
        total = 0.0
        for at in range(0, len(self.centres), 4096):
            part = slice(at, at + 4096)
            rows = np.concatenate([self.contexts[part, None], self.noise[part]], axis=1)
            scores = np.einsum("bd,bkd->bk", vectors[self.centres[part]], contexts[rows])
            scores[:, 0] *= -1
            total += float(np.logaddexp(0, scores).sum())
        return total / len(self.centres)


@dataclass(frozen=True)
class Stream:
    """A corpus as blocks in time order; rows int64 [W] of each block's words (-1: too rare)."""

    blocks: list[TokenBlock]
    rows: list[IntArray]
    counts: IntArray
    held_out: Pairs
    fresh: list[Pairs]

    @property
    def tokens(self) -> int:
        return sum(block.n_tokens for block in self.blocks)

    @property
    def sentences(self) -> int:
        return sum(len(block.sentences) - 1 for block in self.blocks)

    def first(self, n: int) -> Stream:
        """Its first `n` blocks."""
        return replace(self, blocks=self.blocks[:n])


def documents(path: Path, words: int) -> Iterator[Document]:
    """(date, sentences of words) in time order, about `words` words spread over all dates."""
    records = sorted(_records(path), key=lambda record: record[0])
    sentences = [
        (date, [cut for part in _END.split(text) if (cut := part.split())])
        for date, text in records
    ]
    total = sum(len(words) for _, document in sentences for words in document)
    step = max(1.0, total / words)
    taken = 0
    for at, sentence in enumerate(sentences):
        if sentence[1] and int((at + 1) / step) > taken:
            taken = int((at + 1) / step)
            yield sentence


def _records(path: Path) -> Iterator[tuple[str, str]]:
    expected = "text with a sentence a line, or .jsonl with date and text (or title and content)"
    for line in lines_of(path, expected):
        if ".jsonl" not in path.suffixes:
            yield "", line
            continue
        try:
            record = json.loads(line)
            parts = (record.get(name, "") for name in ("title", "content", "text"))
            yield str(record["date"]), "\n".join(part for part in parts if part)
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise InputError(f"{path}: {error!r}; {expected} is accepted.") from error


def read(path: Path, words: int, config: ModelConfig) -> Stream:
    """Cut a corpus into blocks and a held-out part."""
    learnt: list[Document] = []
    aside: list[Document] = []
    for at, parts in enumerate(documents(path, words)):
        (aside if at % HELD_OUT == HELD_OUT - 1 else learnt).append(parts)
    counted = Counter(word for _, document in learnt for sent in document for word in sent)
    frequent = sorted((w for w in counted if counted[w] >= MIN_COUNT), key=lambda w: -counted[w])
    index = {word: row for row, word in enumerate(frequent)}
    blocks = list(_blocks(learnt))
    if len(blocks) < LEAST_BLOCKS or not aside or not index:
        raise InputError(
            f"{path}: {len(blocks)} blocks of {BLOCK:,} tokens; at least {LEAST_BLOCKS} are "
            f"needed, and words that occur {MIN_COUNT} times."
        )
    rows = [np.array([index.get(word, -1) for word in block.words], np.int64) for block in blocks]
    counts = np.array([counted[word] for word in frequent])
    noise = NoiseTable.build(counts, config.noise_exponent)
    other = TokenBlock.build(
        "held-out", [d for _, d in aside], published=[0.0] * len(aside), keys=[""] * len(aside)
    )
    other_rows = np.array([index.get(word, -1) for word in other.words], np.int64)
    fresh = [
        _pairs(block, own, noise, FRESH_PAIRS, at, config)
        for at, (block, own) in enumerate(zip(blocks, rows, strict=True))
    ]
    held_out = _pairs(other, other_rows, noise, PAIRS, -1, config)
    return Stream(blocks, rows, counts, held_out, fresh)


def _blocks(learnt: Sequence[Document]) -> Iterator[TokenBlock]:
    waiting: list[list[list[str]]] = []
    size = 0
    for _, document in learnt:
        waiting.append(document)
        size += sum(len(words) for words in document)
        if size >= BLOCK:
            yield TokenBlock.build(
                "corpus", waiting, published=[0.0] * len(waiting), keys=[""] * len(waiting)
            )
            waiting, size = [], 0


def _pairs(
    block: TokenBlock, rows: IntArray, noise: NoiseTable, n: int, seed: int, config: ModelConfig
) -> Pairs:
    """`n` pairs of known words within a window of one sentence, drawn by chance."""
    random = np.random.default_rng(seed + 1)
    tokens = rows[block.codes]
    sentence = np.repeat(np.arange(len(block.sentences) - 1), np.diff(block.sentences))
    centre = random.integers(0, len(tokens), 8 * n)
    other = centre + random.integers(1, config.window + 1, 8 * n) * random.choice([-1, 1], 8 * n)
    inside = (other >= 0) & (other < len(tokens))
    centre, other = centre[inside], other[inside]
    fit = (sentence[centre] == sentence[other]) & (tokens[centre] >= 0) & (tokens[other] >= 0)
    centre, other = tokens[centre[fit]][:n], tokens[other[fit]][:n]
    drawn = noise.draw(len(centre) * config.negative, seed + 7)
    return Pairs(centre, other, drawn.reshape(-1, config.negative).astype(np.int64))
