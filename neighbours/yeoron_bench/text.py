"""Text preparation against plain Kiwi: morphemes a second and identical words, slice by slice.

    yeoron bench text petitions.jsonl.xz reviews.jsonl.xz

Both sides normalise, mask and cut into sentences alike and share one Kiwi. One looks eojeols up
before it asks Kiwi, and reads all documents in their order; the other has Kiwi analyse every
sentence whole, and reads each `every`-th document of the same slice, in turn with the first. The
garbage collector runs between blocks, as in a text process, so that the cache of the one does not
slow the other. Rates
are of processor time; the first slice is a cold start, the last one the steady state.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from embedding.kernel.errors import InputError
from embedding.kernel.processes import peak_memory
from embedding.text.config import TextConfig
from embedding.text.kiwi import KiwiTokenizer
from embedding.text.pipeline import TextPipeline
from embedding.text.pool_worker import Collecting
from yeoron_bench.corpora import lines_of
from yeoron_bench.results import facts, keep_and_print

_PACKAGES = ("kiwipiepy", "kiwipiepy_model")
MECAB = ("python-mecab-ko", "python-mecab-ko-dic")
SLICES = 8
_BLOCK = 16
"""Documents between two runs of the garbage collector, which only ours has to pay for."""


@dataclass
class Slice:
    """One part of a corpus.

    ratio           characters a processor second, ours over plain
    ours, plain     morphemes a processor second (of ours: as many as plain Kiwi finds in the text)
    identical       share of the kept words that both sides give alike, by sentence
    known, analysed eojeols that came without Kiwi; morphemes Kiwi had to find over all of them
    """

    documents: int
    ratio: float
    ours: float
    plain: float
    identical: float
    known: float
    analysed: float
    new_words: int
    memory_mb: float


def texts(path: Path) -> Iterator[str]:
    """Texts of a corpus: dated JSONL (title, content or text) or one a line, plain or .xz."""
    for line in lines_of(path, "text or JSONL"):
        if ".jsonl" not in path.suffixes:
            yield line
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise InputError(f"{path}: {error}; UTF-8 text or JSONL is accepted.") from error
        yield "\n".join(record[k] for k in ("title", "content", "text") if record.get(k))


class Side:
    """A pipeline and the processor time it took."""

    def __init__(self, config: TextConfig) -> None:
        self.pipeline = TextPipeline(config)
        self.seconds, self.characters, self.morphemes = 0.0, 0, 0

    def read(self, text: str) -> list[list[str]]:
        before = self.pipeline.morphemes
        started = time.process_time()
        sentences = self.pipeline.words(text)
        self.seconds += time.process_time() - started
        self.characters += len(text)
        self.morphemes += self.pipeline.morphemes - before
        return sentences

    def spend(self, work: Callable[[], None]) -> None:
        """Do what belongs to the side's time and reads nothing."""
        started = time.process_time()
        work()
        self.seconds += time.process_time() - started

    def begin(self) -> None:
        self.seconds, self.characters, self.morphemes = 0.0, 0, 0

    @property
    def rate(self) -> float:
        """Characters a processor second."""
        return self.characters / max(self.seconds, 1e-9)


def measure(
    documents: Sequence[str], config: TextConfig, every: int, slices: int = SLICES
) -> list[Slice]:
    """Both sides over a corpus, slice by slice."""
    ours = Side(config)
    plain = Side(TextConfig(tokenizer="kiwi", cache_mb=0, new_words=0))
    for side in (ours, plain):  # load before the clock runs
        side.pipeline.words("가")
    collecting = Collecting()
    collecting.begin()
    step = -(-len(documents) // slices)
    measured = []
    for first in range(0, len(documents), step):
        part = documents[first : first + step]
        measured.append(_slice(part, ours, plain, every, collecting))
        print(measured[-1], flush=True)
    return measured


def _slice(
    part: Sequence[str], ours: Side, plain: Side, every: int, collecting: Collecting
) -> Slice:
    same = most = 0
    ours.begin()
    plain.begin()
    for at, text in enumerate(part):
        if at % _BLOCK == 0:
            ours.spend(collecting.between)
        if at % every:
            ours.read(text)
            continue
        first, second = (ours, plain) if at // every % 2 else (plain, ours)
        read = {id(side): side.read(text) for side in (first, second)}
        agree, of = _alike(read[id(ours)], read[id(plain)])
        same, most = same + agree, most + of
    if isinstance(ours.pipeline.tokenizer, KiwiTokenizer):
        ours.pipeline.tokenizer.renew(0.0)
    report = ours.pipeline.report()
    density = plain.morphemes / max(plain.characters, 1)
    return Slice(
        documents=len(part),
        ratio=ours.rate / plain.rate,
        ours=ours.rate * density,
        plain=plain.rate * density,
        identical=same / max(most, 1),
        known=float(str(report.get("known_share", 0.0))),
        analysed=ours.morphemes / max(ours.characters * density, 1),
        new_words=int(str(report.get("new_words", 0))),
        memory_mb=peak_memory() / 2**20,
    )


def _alike(ours: list[list[str]], theirs: list[list[str]]) -> tuple[int, int]:
    """Words that both have, and the larger number of words; by sentence where these agree."""
    pairs = (
        zip(ours, theirs, strict=True)
        if len(ours) == len(theirs)
        else [([w for s in ours for w in s], [w for s in theirs for w in s])]
    )
    same = most = 0
    for left, right in pairs:
        same += (Counter(left) & Counter(right)).total()
        most += max(len(left), len(right))
    return same, most


def bench_text(
    corpora: Sequence[Path],
    *,
    documents: int | None,
    every: int,
    new_words: int,
    tokenizer: str,
    results: Path,
) -> dict[str, Any]:
    """Measure, print a table, write a dated JSON and Markdown file; returns what was written."""
    runs = {}
    config = TextConfig(tokenizer=tokenizer, new_words=new_words)
    for path in corpora:
        read = list(islice(texts(path), documents))
        name = f"{path.name}, {tokenizer}"
        print(f"{name}, {len(read):,} documents")
        runs[name] = [asdict(part) for part in measure(read, config, every)]
    report = {
        **facts("text", _PACKAGES + (MECAB if tokenizer == "mecab" else ())),
        "every": every,
        "config": config.model_dump(mode="json"),
        "runs": runs,
    }
    keep_and_print(report, results=results)
    return report
