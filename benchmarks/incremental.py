"""A dated corpus period by period against gensim's `build_vocab(update=True)` and `train`.

    python -m benchmarks incremental reviews.jsonl [--passes one]

Before a period is learnt, both sides score the same pairs of it (a centre, a word of its window,
noise words), all of them words that both know: their mean negative-sampling loss is the figure
(prequential evaluation, Dawid 1984). Both read each period once, or as often as a node with replay
trains on it, with the same settings.

gensim lets the learning rate fall within each call of `train`; so it is measured with that, from
0.025 to 0.0001, and with a constant rate, and judged by the better of the two. Ours is measured as
`yeoron train --dated` does it (blocks, noise words, decay of counts, a rate that falls in each
month), with a constant rate, and with the noise words of other trainings too.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from benchmarks.dated import Pairs, documents
from benchmarks.kept import RESULTS
from benchmarks.local import Local, Words, ticks
from embedding.kernel.errors import InputError
from embedding.kernel.records import FloatArray, IntArray, TokenBlock, WindowUnit
from embedding.models.config import LearningRateSchedule, ModelConfig
from embedding.models.sampling import NoiseTable
from embedding.server.config import ServerConfig
from embedding.training.request import FRESH_NOISE, TrainRequest
from embedding.training.running import HALF_LIFE_TOKENS
from yeoron_bench.results import ended, facts, keep_and_print

MIN_COUNT = 5
PAIRS = 20_000
LEAST_WORDS = 1_000
"""Words both sides must know before a period is scored."""
LETTERS = {"year": 4, "month": 7}
Unit = Literal["year", "quarter", "month"]
Passes = Literal["one", "both"]
"""Whether what replays and what reads each period four times is measured, too."""


@dataclass(frozen=True)
class Period:
    """moments: Unix seconds of each sentence's document."""

    label: str
    sentences: list[list[str]]
    moments: list[float]

    @property
    def tokens(self) -> int:
        return sum(map(len, self.sentences))


def periods(path: Path, words: int, unit: Unit) -> list[Period]:
    periods_of = []
    for label, group in groupby(documents(path, words), lambda text: _label(text[0], unit)):
        dated = [(s, _moment(date)) for date, document in group for s in document if s]
        periods_of.append(Period(label, [s for s, _ in dated], [moment for _, moment in dated]))
    if len(periods_of) < 3:
        raise InputError(f"{path}: {len(periods_of)} {unit}s; dated JSONL of at least 3 is needed.")
    return periods_of


def _label(date: str, unit: Unit) -> str:
    if unit == "quarter":
        return f"{date[:4]}-Q{(int(date[5:7]) + 2) // 3}" if date else ""
    return date[: LETTERS[unit]]


def _moment(date: str) -> float:
    when = datetime.fromisoformat(date) if date else datetime.fromtimestamp(0, UTC)
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


class Side(Protocol):
    def words(self) -> Words: ...

    def learn(self, period: Period) -> None: ...


class Ours:
    """The server and the node of the platform, as a dated training has them."""

    def __init__(self, model: ModelConfig, replay: float = 0.0, *, ahead: bool = True) -> None:
        server = ServerConfig(
            min_count=MIN_COUNT,
            device="cpu",
            half_life_tokens=HALF_LIFE_TOKENS,
            window=WindowUnit.MONTH,
        )
        usual = TrainRequest(corpus=Path(), dated=WindowUnit.MONTH).node_config
        self._block = usual.block_tokens
        self._ahead = usual.look_ahead_tokens if ahead else 0
        node = usual.model_copy(update={"replay_ratio": replay})
        self._local = Local(model, node, server)

    def words(self) -> Words:
        return self._local.words(trained=True)

    def learn(self, period: Period) -> None:
        self._local.follow(self._blocks(period), self._ahead)

    def _blocks(self, period: Period) -> Iterator[TokenBlock]:
        read = 0
        lengths = np.array([len(sentence) for sentence in period.sentences], dtype=np.float64)
        passed = (np.cumsum(lengths) - lengths / 2) / max(lengths.sum(), 1.0)
        for sentences in ticks(period.sentences, self._block):
            part = slice(read, read + len(sentences))
            yield self._local.block(sentences, period.moments[part], passed[part])
            read += len(sentences)


class Gensim:
    """gensim.models.Word2Vec, its vocabulary updated before each period."""

    def __init__(self, model: ModelConfig, *, epochs: int, falling: bool) -> None:
        from gensim.models import Word2Vec

        low = model.min_learning_rate if falling else model.learning_rate
        self._epochs = epochs
        self._started = False
        self._model = Word2Vec(
            vector_size=model.dim,
            window=model.window,
            negative=model.negative,
            sample=model.sample,
            alpha=model.learning_rate,
            min_alpha=low,
            min_count=MIN_COUNT,
            sg=1,
            workers=1,
            seed=model.seed,
        )

    def words(self) -> Words:
        keyed, counts = self._model.wv, np.zeros(0)
        if not self._started:
            empty = np.zeros((0, self._model.vector_size), dtype=np.float32)
            return Words([], empty, empty, counts)
        return Words(list(keyed.index_to_key), keyed.vectors, self._model.syn1neg, counts)

    def learn(self, period: Period) -> None:
        frequent = Counter(word for sentence in period.sentences for word in sentence)
        if max(frequent.values(), default=0) < MIN_COUNT and not self._started:
            return
        self._model.build_vocab(period.sentences, update=self._started)
        self._started = True
        self._model.train(
            period.sentences, total_examples=len(period.sentences), epochs=self._epochs
        )


@dataclass
class Curve:
    """One side: loss of each scored period, processor seconds."""

    loss: list[float] = field(default_factory=list)
    cpu: float = 0.0


def pairs_of(period: Period, row: dict[str, int], seed: int, window: int) -> Iterator[IntArray]:
    """Centres and contexts, int64 [n] each: pairs of known words in one sentence, by chance."""
    lengths = np.array([len(sentence) for sentence in period.sentences])
    tokens = np.fromiter(
        (row.get(word, -1) for sentence in period.sentences for word in sentence), np.int64
    )
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    random = np.random.default_rng(seed)
    centre = random.integers(0, len(tokens), 4 * PAIRS)
    other = centre + random.integers(1, window + 1, len(centre)) * random.choice([-1, 1], 4 * PAIRS)
    inside = (other >= 0) & (other < len(tokens))
    centre, other = centre[inside], other[inside]
    fit = (sentence[centre] == sentence[other]) & (tokens[centre] >= 0) & (tokens[other] >= 0)
    yield from (tokens[centre[fit]][:PAIRS], tokens[other[fit]][:PAIRS])


def score(
    period: Period, known: dict[str, Words], counts: Counter[str], model: ModelConfig, seed: int
) -> dict[str, float] | None:
    """Mean loss of each side on the same pairs; None while they share too few words."""
    shared = sorted(set.intersection(*(set(words.names) for words in known.values())))
    if len(shared) < LEAST_WORDS:
        return None
    row = {word: i for i, word in enumerate(shared)}
    centres, contexts = pairs_of(period, row, seed, model.window)
    if not len(centres):
        return None
    noise = NoiseTable.build(np.array([counts[word] for word in shared]), model.noise_exponent)
    drawn = noise.draw(len(centres) * model.negative, seed).astype(np.int64)
    pairs = Pairs(centres, contexts, drawn.reshape(-1, model.negative))
    return {name: pairs.loss(*_rows(words, shared)) for name, words in known.items()}


def _rows(words: Words, shared: Iterable[str]) -> tuple[FloatArray, FloatArray]:
    place = {word: i for i, word in enumerate(words.names)}
    at = np.array([place[word] for word in shared])
    return words.vectors[at], words.contexts[at]


def sides(model: ModelConfig, passes: Passes = "both") -> dict[str, Side]:
    fresh = model.model_copy(update=FRESH_NOISE)
    falling = fresh.model_copy(update={"schedule": LearningRateSchedule.WINDOW})
    sides_of: dict[str, Side] = {
        "ours, one pass": Ours(falling),
        "ours, one pass, not looking ahead": Ours(falling, ahead=False),
        "ours, one pass, constant rate": Ours(fresh),
        "ours, one pass, constant rate, other noise": Ours(model),
        "gensim, one pass, falling rate": Gensim(model, epochs=1, falling=True),
        "gensim, one pass, constant rate": Gensim(model, epochs=1, falling=False),
    }
    if passes == "both":
        sides_of |= {
            "ours, replay 3": Ours(falling, 3.0),
            "ours, replay 3, constant rate": Ours(fresh, 3.0),
            "gensim, 4 epochs, falling rate": Gensim(model, epochs=4, falling=True),
            "gensim, 4 epochs, constant rate": Gensim(model, epochs=4, falling=False),
        }
    return sides_of


def run(
    months: Sequence[Period], model: ModelConfig, passes: Passes = "both"
) -> tuple[list[str], dict[str, Curve]]:
    """Score, then learn, period by period; labels of the scored ones and each side's curve."""
    every = sides(model, passes)
    curves = {name: Curve() for name in every}
    counts: Counter[str] = Counter()
    labels = []
    for at, period in enumerate(months):
        known = {name: side.words() for name, side in every.items()}
        losses = score(period, known, counts, model, seed=at + 1) if period.tokens else None
        if losses is not None:
            labels.append(period.label)
            for name, loss in losses.items():
                curves[name].loss.append(loss)
        for name, side in every.items():
            started = time.process_time()
            side.learn(period)
            curves[name].cpu += time.process_time() - started
        counts.update(word for sentence in period.sentences for word in sentence)
    if not labels:
        raise InputError(f"no {LEAST_WORDS:,} words are known before the end: more text is needed.")
    return labels, curves


def bench_incremental(
    corpus: Path,
    words: int = 3_000_000,
    unit: Unit = "month",
    *,
    dim: int = 100,
    sample: float = 0.0,
    passes: Passes = "both",
    results: Path = RESULTS,
) -> dict[str, Any]:
    """Measure, print a table, write a dated JSON and Markdown file; returns what was written."""
    months = periods(corpus, words, unit)
    model = ModelConfig(dim=dim, sample=sample)
    labels, curves = run(months, model, passes)
    report = {
        **facts("incremental", ("gensim", "numpy", "numba", "torch", "scipy")),
        "config": model.model_dump(mode="json"),
        "fresh_noise": FRESH_NOISE,
        "min_count": MIN_COUNT,
        "corpus": {
            "file": corpus.name,
            "tokens": sum(period.tokens for period in months),
            f"{unit}s": len(months),
        },
        "pairs": PAIRS,
        "scored": labels,
        "runs": {name: vars(curve) for name, curve in curves.items()},
    }
    report["summary"] = dict(summary(report["runs"]))
    keep_and_print(report, results=results)
    return report


def summary(runs: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """By run; `better`: windows whose loss is below the better gensim's with as many passes."""
    for name, curve in runs.items():
        loss = np.array(curve["loss"])
        passes = "one pass" if "one pass" in name else "4 epochs"
        rivals = [np.array(runs[f"gensim, {passes}, {rate} rate"]["loss"]) for rate in _RATES]
        best = min(rivals, key=lambda losses: float(losses.mean()))
        better = int((loss < best).sum()) if name.startswith("ours") else None
        late = float(loss[len(loss) // 2 :].mean())
        figures = {"loss": float(loss.mean()), "second half": late, "better": better}
        yield name, {**figures, "processor_s": curve["cpu"]}


_RATES = ("falling", "constant")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--words", type=int, default=3_000_000)
    parser.add_argument("--unit", choices=["year", "quarter", "month"], default="month")
    parser.add_argument("--sample", type=float, default=0.0)
    parser.add_argument("--passes", choices=["one", "both"], default="both")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    return ended(
        lambda: bench_incremental(
            given.corpus,
            given.words,
            given.unit,
            sample=given.sample,
            passes=given.passes,
            results=given.results,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
