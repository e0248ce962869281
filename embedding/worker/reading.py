"""The reader process: a corpus file in the place of the crawler, for training without a crawl.

Everything behind the queue is the same code as for the stream: blocks, learner, exchange, server.
A reader cuts blocks of the size of a tick, so that the same file is cut alike in every run.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from embedding.errors import InputError
from embedding.models.config import Schedule
from embedding.records import Document, TokenBlock
from embedding.stopping import stop_on_signals
from embedding.stream.faults import PeerLost, QueueClosed, QueueFull
from embedding.stream.queue import BlockQueue
from embedding.text.pipeline import TextPipeline
from embedding.text.plain import code_lines
from embedding.worker.corpus import Line, dated_lines, named_source, passing, stretches
from embedding.worker.lifetime import end_with_parent, peak_memory
from embedding.worker.place import Place
from embedding.worker.spec import CorpusShare, NodeSpec
from embedding.worker.wishes import Wishes

logger = logging.getLogger(__name__)

PUT_SECONDS = 0.5
FIRST_TOKENS = 1_500
"""The first block of one of several nodes, unless all are smaller."""
FIRST_CHARACTERS = 6.0
"""Characters a token is expected to take before any was read."""


def blocks(
    spec: NodeSpec,
    share: CorpusShare,
    start: Place | None = None,
    wanted: Callable[[], int] | None = None,
) -> Iterator[TokenBlock]:
    """Token blocks of a share, in ticks: epochs in turn, at most `tokens` tokens.

    start   the place behind the last tick that was learnt; None reads from the beginning
    wanted  tokens that the next tick shall hold; None takes the node's `block_tokens`

    A tick is one block, or one of each source where lines name theirs. Its last block alone has a
    place: what comes before it is learnt with it or not at all.
    Text without dates is one document a block; it is read as of the file's last change.
    """
    place = start or Place()
    read = place.tokens

    def allowed() -> int:
        whole = spec.node.block_tokens if wanted is None else wanted()
        whole = whole if share.tokens is None else max(1, min(whole, share.tokens - read))
        growing = share.count > 1 and spec.node.growth > 0
        return min(whole, max(FIRST_TOKENS, round(read * spec.node.growth))) if growing else whole

    cutter = _Cutter(spec, share, place, allowed)
    for epoch in range(place.epoch, share.epochs):
        if share.tokens is not None and read >= share.tokens:
            return
        since = place.line if epoch == place.epoch else 0
        for tick in cutter.dated(since) if cutter.is_dated else cutter.plain(since):
            read += sum(block.n_tokens for block in tick)
            done = (epoch + tick[-1].progress) / share.epochs
            if share.tokens is not None:
                done = max(done, read / share.tokens)
            behind = str(Place(epoch, cutter.line, read, cutter.characters))
            for block in tick:
                last = block is tick[-1]
                yield replace(block, progress=min(done, 1.0), place=behind if last else "")
            if share.tokens is not None and read >= share.tokens:
                return


class _Cutter:
    """Cuts a share into ticks of about the tokens that are wanted, judged by characters.

    line        the line behind the last tick
    characters  characters a token took in the last tick
    """

    def __init__(
        self, spec: NodeSpec, share: CorpusShare, place: Place, wanted: Callable[[], int]
    ) -> None:
        self.line = place.line
        self.characters = place.characters or FIRST_CHARACTERS
        self.is_dated = share.path.removesuffix(".xz").endswith(".jsonl")
        self._share = share
        self._wanted = wanted
        self._config = spec.text
        self._falls = spec.model.schedule is Schedule.WINDOW
        self._pipeline = TextPipeline(spec.text)
        self._undated = Path(share.path).stat().st_mtime

    def plain(self, since: int = 0) -> Iterator[list[TokenBlock]]:
        """Ticks of plain text from line `since`: whole stretches, or parts where that is much.

        Each is one block. From the third node on always parts: their blocks are to be small.
        """
        texts: list[str] = []
        size, first, enough = 0, 0, self._enough()
        for stretch in stretches(self._share):
            rest = stretch.since(since)
            while rest.text:
                whole = self._share.count < 3 and enough >= len(stretch.text)
                part, rest = rest.pieces(math.inf if whole else enough - size)
                first = first if texts else part.first
                texts.append(part.text)
                size += len(part.text)
                self.line = part.end
                if size >= enough:
                    yield [self._plain(texts, first, part.done)]
                    texts, size, enough = [], 0, self._enough()
        if texts:
            yield [self._plain(texts, first, 1.0)]

    def dated(self, since: int = 0) -> Iterator[list[TokenBlock]]:
        """Ticks of dated lines from line `since`; none holds lines of two windows."""
        batch: list[Line] = []
        size, enough = 0, self._enough()
        for line in self._lines(since):
            if batch and self._window(line) != self._window(batch[-1]):
                yield self._by_source(batch)
                batch, size, enough = [], 0, self._enough()
            batch.append(line)
            size += len(line.text)
            if size >= enough:
                yield self._by_source(batch)
                batch, size, enough = [], 0, self._enough()
        if batch:
            yield self._by_source(batch)

    def _lines(self, since: int) -> Iterator[Line]:
        """Dated lines; with what had passed of their window where the learning rate follows it."""
        unit = self._share.window
        if unit is None or not self._falls:
            return dated_lines(self._share, since)
        return passing(self._share, unit, since)

    def _enough(self) -> float:
        """Characters that the next block shall have at least."""
        return self._wanted() * self.characters

    def _window(self, line: Line) -> int | None:
        unit = self._share.window
        return None if unit is None else unit.start(line.when)

    def _plain(self, texts: list[str], first: int, done: float) -> TokenBlock:
        text = "".join(texts)
        key = f"{self._share.source}#{first + 1}"
        config = self._config
        if config.tokenizer != "whitespace" or config.mask:
            lines = [Line(first, text, self._undated, done)]
            block = self._documents(self._share.source, lines)
            self._learn_size(len(text), block.n_tokens)
            return replace(block, keys=(key,), progress=done)
        coded = code_lines(text.split("\n"), config)
        self._learn_size(len(text), len(coded.codes))
        when = np.full(1, self._undated)
        now = np.full(1, time.time())
        return TokenBlock(
            source=self._share.source,
            words=coded.words,
            codes=coded.codes,
            sentences=coded.sentences,
            documents=np.asarray([0, len(coded.sentences) - 1], dtype=np.int32),
            published=when,
            available=now,
            fetched=now,
            keys=(key,),
            priority=np.ones(1, dtype=np.float32),
            tokenizer_digest=self._pipeline.digest,
            progress=done,
        )

    def _by_source(self, lines: list[Line]) -> list[TokenBlock]:
        """A tick: a block for each source, in the order in which they come."""
        groups: dict[str, list[Line]] = {}
        for line in lines:
            groups.setdefault(self._source(line), []).append(line)
        found = [self._documents(source, group) for source, group in groups.items()]
        self.line = lines[-1].number + 1
        tokens = sum(block.n_tokens for block in found)
        self._learn_size(sum(len(line.text) for line in lines), tokens)
        return [replace(block, progress=lines[-1].done) for block in found]

    def _source(self, line: Line) -> str:
        """The name under which a line's words are counted."""
        share = self._share
        name = named_source(line) if share.sources else ""
        return name if name in share.sources else share.rest if name else share.source

    def _documents(self, source: str, lines: list[Line]) -> TokenBlock:
        fetched = datetime.now(UTC)
        documents = [
            Document(
                url=f"{self._share.source}#{line.number + 1}",
                source=source,
                text=line.text,
                published_at=datetime.fromtimestamp(line.when, UTC),
                fetched_at=fetched,
            )
            for line in lines
        ]
        block = self._pipeline.block(documents, [fetched.timestamp()] * len(lines))
        passed = np.asarray([line.passed for line in lines if not math.isnan(line.passed)])
        return replace(block, passed=passed.astype(np.float64))

    def _learn_size(self, characters: int, tokens: int) -> None:
        """Characters a token, so that the next block has the size that is wanted."""
        if tokens:
            self.characters = characters / tokens


def read_forever(spec_json: str, queue: BlockQueue) -> None:
    """Target of the reader process: put every block, then close the queue."""
    logging.basicConfig(
        level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    end_with_parent()
    stop = stop_on_signals()
    spec = NodeSpec.model_validate_json(spec_json)
    if spec.corpus is None:
        raise InputError(f"{spec.name}: a node that reads a corpus needs one.")
    try:
        wishes = Wishes(queue, spec.node.block_tokens, stop)
        for block in blocks(spec, spec.corpus, wishes.start(), wishes.tokens):
            queue.send_report({"reader_peak_memory_bytes": peak_memory()})
            if not _put(queue, block, stop):
                return
    except (PeerLost, QueueClosed):
        logger.info("%s: the gradient process is gone; the reader ends", spec.name)
    finally:
        queue.close(timeout=60.0)


def _put(queue: BlockQueue, block: TokenBlock, stop: threading.Event) -> bool:
    """Put a block, however long the queue is full; False when told to stop."""
    while not stop.is_set():
        try:
            queue.put(block, PUT_SECONDS)
            return True
        except QueueFull:
            continue
    return False
