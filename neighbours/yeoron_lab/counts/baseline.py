"""The count baseline of a corpus: SPPMI-SVD, counted by this process, with no node and no server.

It is counted in one pass behind the pass that counts the words, and factorised once: what the
trained models are compared with (Levy and Goldberg 2014; Levy, Goldberg and Dagan 2015).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from embedding.kernel.errors import InputError
from embedding.kernel.processes import peak_memory
from embedding.kernel.records import (
    Calendar,
    FloatArray,
    IntArray,
    SnapshotData,
    SnapshotRef,
    TimeArray,
    TokenBlock,
    Window,
    WindowUnit,
    WordCounts,
)
from embedding.models.base import LocalBlock
from embedding.models.sampling import keep_probabilities
from embedding.models.traits import COUNT_MODELS, ModelTraits
from embedding.snapshots.nearness import frequent
from embedding.snapshots.readability import spread
from embedding.snapshots.store import SnapshotStore
from embedding.training.request import Progress, TrainProgress, TrainRequest, TrainResult
from embedding.training.vocabulary import CountedWords, CountingThread
from embedding.worker.corpus.reading import blocks, text_process
from embedding.worker.learning.ticks import hash_seed
from embedding.worker.spec import CorpusShare, NodeSpec
from yeoron_lab.counts.sppmi import CountModel
from yeoron_lab.requests import check_baseline

NAME = "baseline"


def count_baseline(
    request: TrainRequest, store: Path, progress: Progress, count: CountingThread
) -> TrainResult:
    """Count and factorise; one snapshot, of no word where none is frequent enough.

    Raises InputError where no two words stand together.
    """
    words = count.wait()
    began = time.monotonic()
    counted = _CorpusCounts(request, words)
    for block in _blocks(request):
        counted.add(block)
        seconds = max(time.monotonic() - began, 1e-9)
        progress(TrainProgress(block.progress, counted.tokens, counted.tokens / seconds, None))
    vectors = contexts = np.empty((0, request.model.dim), np.float32)
    if len(words.counts):
        try:
            vectors, contexts = counted.model.fit(len(words.counts))
        except InputError as error:
            raise InputError(f"{request.corpus}: {error}") from error
    seconds = max(time.monotonic() - began, 1e-9)
    return TrainResult(
        tokens_trained=counted.tokens,
        seconds=0.0,
        train_seconds=seconds,
        words_per_second=counted.tokens / seconds,
        loss=float("nan"),
        vocabulary=len(words.counts),
        documents=counted.documents,
        late_documents=0,
        bytes_pushed=0,
        bytes_pulled=0,
        peak_memory={"train": peak_memory()},
        nodes={},
        snapshots=[_publish(request, store, counted, vectors, contexts)],
    )


def _blocks(request: TrainRequest) -> Iterator[TokenBlock]:
    share = CorpusShare(
        path=str(request.corpus), tokens=request.tokens, timezone=request.server.timezone
    )
    spec = NodeSpec(name=NAME, server="", corpus=share, text=request.text, node=request.node_config)
    with text_process(spec) as text:
        yield from blocks(spec, share, text=text)


@dataclass
class _CorpusCounts:
    """What was counted so far.

    read       int64 [n], occurrences by word
    inside     int64 [n], documents by word
    last_seen  float64 [n], Unix seconds
    tokens     tokens that have a row, before subsampling
    times      event time of the first and of the last document
    """

    request: TrainRequest
    words: CountedWords
    tokens: int = 0
    documents: int = 0
    digest: str = ""
    times: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        n = len(self.words.counts)
        self.model = CountModel(self.request.model)
        self.read: IntArray = np.zeros(n, np.int64)
        self.inside: IntArray = np.zeros(n, np.int64)
        self.last_seen: TimeArray = np.zeros(n)
        self._blocks = 0
        self._rows = {word: row for row, word in enumerate(self.words.words.to_pylist())}
        config = self.request.model
        self._keep = keep_probabilities(self.words.counts, self.words.tokens, config.sample)

    def add(self, block: TokenBlock) -> None:
        """Count a block."""
        get = self._rows.get
        rows = np.fromiter((get(word, -1) for word in block.words), np.int32, len(block.words))
        tokens = rows[block.codes]
        self._blocks += 1
        local = LocalBlock(tokens, block.sentences, self._keep, np.empty(0, np.int32))
        self.model.count(local, hash_seed(self.request.model.seed, NAME, self._blocks))
        self.read += np.bincount(tokens[tokens >= 0], minlength=len(self.read))
        self.tokens += int((tokens >= 0).sum())
        self.digest = block.tokenizer_digest
        ends = block.sentences[block.documents]
        for at, when in enumerate(block.published.tolist()):
            seen = np.unique(tokens[ends[at] : ends[at + 1]])
            seen = seen[seen >= 0]
            self.inside[seen] += 1
            self.last_seen[seen] = np.maximum(self.last_seen[seen], when)
        self.documents += len(block.keys)
        times = [*self.times, *block.published.tolist()]
        self.times = [min(times), max(times)] if times else []


def _publish(
    request: TrainRequest,
    store: Path,
    counted: _CorpusCounts,
    vectors: FloatArray,
    contexts: FloatArray,
) -> SnapshotRef:
    """One snapshot of the windows that the corpus reaches over."""
    unit = WindowUnit.MONTH if request.lines_are_dated else WindowUnit.DAY
    calendar = Calendar(unit, request.server.calendar.zone)
    first, *_, last = map(calendar.window, (counted.times or [time.time()]) * 2)
    window = Window(first.start, last.end)
    words = counted.words.words.to_pylist()
    n, source = len(words), CorpusShare(path="").source
    data = SnapshotData(
        window=window,
        words=words,
        ids=np.arange(n, dtype=np.int64),
        counts=counted.words.counts,
        last_seen=counted.last_seen,
        vectors=vectors,
        contexts=contexts,
        by_source=WordCounts(
            words=words,
            sources=[source] * n,
            windows=np.full(n, int(window.start.timestamp()), np.int64),
            counts=counted.read,
            documents=counted.inside,
        ),
        tokens={source: counted.tokens},
        documents={source: counted.documents},
        config={
            "dim": request.model.dim,
            "server": {"timezone": request.server.timezone},
            "model": request.model.model_dump(mode="json"),
            "tokenizer": request.text.tokenizer,
        },
        config_digest=request.model.digest(),
        tokenizer_digest=counted.digest,
        quality={
            "words_read": float(counted.words.counts.sum()),
            **spread(vectors[frequent(counted.words.counts)]),
        },
    )
    return SnapshotStore(store).publish(data)


@COUNT_MODELS.register("sppmi", ModelTraits())
class CountedOnce:
    """See CountedModel."""

    check_request = staticmethod(check_baseline)
    count = staticmethod(count_baseline)
