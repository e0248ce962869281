"""The reader process: a corpus file in the place of the crawler, for training without a crawl.

Everything behind the queue is the same code as for the stream: blocks, learner, exchange, server.
A reader cuts blocks of the size of a tick, so that the same file is cut alike in every run.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from embedding.kernel.errors import InputError
from embedding.kernel.leftout import LeftOut
from embedding.kernel.logs import begin_logging
from embedding.kernel.processes import end_with_parent, peak_memory, stop_on_signals
from embedding.kernel.records import CodeArray, Document, TimeArray, TokenBlock
from embedding.models.config import LearningRateSchedule
from embedding.stream.queue import BlockQueue, PeerLost, QueueClosed, QueueFull
from embedding.text.config import TextConfig, voices
from embedding.text.pipeline import TextPipeline
from embedding.text.plain import PlainText, code_documents, code_lines
from embedding.text.pool import TextPool
from embedding.text.tokenizers import as_written
from embedding.worker.corpus.corpus import (
    Offset,
    document_key,
    line_units,
    stretches,
)
from embedding.worker.corpus.datedlines import (
    DatedLines,
    columns_before,
    dated_columns,
    passing,
    remembered_from,
)
from embedding.worker.spec import CorpusShare, NodeSpec

logger = logging.getLogger(__name__)

_PUT_SECONDS = 0.5
FIRST_TOKENS = 1_500
"""The first block of one of several nodes, unless all are smaller."""
FIRST_CHARACTERS = 6.0
"""Characters a token is expected to take before any was read."""
READ_AGAIN = "read again"
"""Mark of the blocks that processes of the node before this one had learnt."""
HEAR_SECONDS = 0.02
_LOGGED = 5
"""Lines left out that the log names."""


def blocks(
    spec: NodeSpec,
    share: CorpusShare,
    start: Offset | None = None,
    wanted: Callable[[], int] | None = None,
    text: PooledText | None = None,
    left_out: LeftOut | None = None,
) -> Iterator[TokenBlock]:
    """Token blocks of a share, in ticks: epochs in turn, at most `tokens` tokens.

    start   the offset behind the last tick that was learnt; None reads from the beginning
    wanted  tokens wanted in the next tick; None takes the node's `block_tokens`
    text    the process that prepares it; None prepares it in this one
    left_out  where lines are named that cannot be read

    A tick is one block, or one of each source where lines name theirs. Its last block alone has an
    offset: what comes before it is learnt with it or not at all.
    What a node before `start` remembered comes first, marked as `READ_AGAIN`.
    Text without dates is one document a block; it is read as of the file's last change.
    """
    offset = start or Offset()
    read = offset.tokens

    def allowed() -> int:
        whole = spec.node.block_tokens if wanted is None else wanted()
        whole = whole if share.tokens is None else max(1, min(whole, share.tokens - read))
        growing = share.count > 1 and spec.node.growth > 0
        return min(whole, max(FIRST_TOKENS, round(read * spec.node.growth))) if growing else whole

    yield from _again(_Cutter(spec, share, offset, allowed, text, LeftOut()), spec, offset)
    cutter = _Cutter(spec, share, offset, allowed, text, left_out)
    for epoch in range(offset.epoch, share.epochs):
        if share.tokens is not None and read >= share.tokens:
            return
        since = offset.line if epoch == offset.epoch else 0
        for tick in cutter.dated(since) if cutter.is_dated else cutter.plain(since):
            read += sum(block.n_tokens for block in tick)
            done = (epoch + tick[-1].progress) / share.epochs
            if share.tokens is not None:
                done = max(done, read / share.tokens)
            behind = str(Offset(epoch, cutter.line, read, cutter.characters))
            for block in tick:
                last = block is tick[-1]
                yield replace(block, progress=min(done, 1.0), offset=behind if last else "")
            if share.tokens is not None and read >= share.tokens:
                return


def _again(cutter: _Cutter, spec: NodeSpec, offset: Offset) -> Iterator[TokenBlock]:
    """What the processes before this one had learnt and would still remember: for its use alone."""
    share = cutter.share
    windows = share.calendar if cutter.is_dated and spec.ring is None else None
    if windows is None or not offset.line or not spec.model.traits.usage:
        return
    # Twice as much as the last texts say: the memory itself forgets what is too much.
    most = 2 * spec.node.past_tokens * cutter.characters
    since = remembered_from(share, windows, offset.line, spec.node.past_windows + 1, most)
    for tick in cutter.dated(since, offset.line):
        for block in tick:
            place = str(offset) if block is tick[-1] else ""
            yield replace(block, incarnation=READ_AGAIN, offset=place)


class _Cutter:
    """Cuts a share into ticks of about the tokens that are wanted, judged by characters.

    share       what is read
    line        the line behind the last tick
    characters  characters a token took in the last tick
    """

    def __init__(
        self,
        spec: NodeSpec,
        share: CorpusShare,
        offset: Offset,
        wanted: Callable[[], int],
        text: PooledText | None,
        left_out: LeftOut | None,
    ) -> None:
        self.line = offset.line
        self.characters = offset.characters or FIRST_CHARACTERS
        self.is_dated = share.path.removesuffix(".xz").endswith(".jsonl")
        self.share = share
        self._wanted = wanted
        self._config = spec.text
        self._falls = spec.model.schedule is LearningRateSchedule.WINDOW
        self._pipeline = TextPipeline(_text_of(spec))
        self._text = text or self._pipeline
        self._undated = Path(share.path).stat().st_mtime
        self._left_out = LeftOut() if left_out is None else left_out

    def plain(self, since: int = 0) -> Iterator[list[TokenBlock]]:
        """Ticks of plain text from line `since`: whole stretches, or parts where that is much.

        Each is one block. From the third node on always parts: their blocks are to be small.
        """
        texts: list[str] = []
        size, first, enough = 0, 0, self._enough()
        for stretch in stretches(self.share, self._fault):
            rest = stretch.since(since)
            while rest.text:
                whole = self.share.count < 3 and enough >= len(stretch.text)
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

    def dated(self, since: int = 0, until: int | None = None) -> Iterator[list[TokenBlock]]:
        """Ticks of dated lines from line `since`, before line `until`; none holds lines of two
        windows."""
        pending: list[DatedLines] = []
        window: int | None = None
        size, enough = 0, self._enough()
        read = self._lines(since) if until is None else columns_before(self.share, until, since)
        for lines in read:
            for own, whole in lines.by_window(self.share.calendar):
                if pending and own != window:
                    yield self._by_source(DatedLines.joined(pending))
                    pending, size, enough = [], 0, self._enough()
                window, part = own, whole
                while len(part):
                    ends = size + np.cumsum(part.lengths)
                    full = int(np.searchsorted(ends, enough)) + 1
                    pending.append(part[:full])
                    size = int(ends[min(full, len(part)) - 1])
                    part = part[full:]
                    if size >= enough:
                        yield self._by_source(DatedLines.joined(pending))
                        pending, size, enough = [], 0, self._enough()
        if pending:
            yield self._by_source(DatedLines.joined(pending))

    def _lines(self, since: int) -> Iterator[DatedLines]:
        """Dated lines; with what had passed of their window where the learning rate follows it."""
        calendar = self.share.calendar
        if calendar is None or not self._falls or not self.share.window_characters:
            return dated_columns(self.share, since, self._fault)
        return passing(self.share, calendar, since, self._fault)

    def _fault(self, number: int, reason: str) -> None:
        reason = reason.rstrip(".")
        if self._left_out.count < _LOGGED:
            path = self.share.path
            logger.warning("%s:%d: %s. The line is left out.", path, number + 1, reason)
        self._left_out.add(document_key(self.share.source, number), reason)

    def _enough(self) -> float:
        return self._wanted() * self.characters

    def _plain(self, texts: list[str], first: int, done: float) -> TokenBlock:
        text = "".join(texts)
        key = document_key(self.share.source, first)
        if _is_prepared(self._config):
            block = self._prepared(text, first)
            self._learn_size(len(text), block.n_tokens)
            return replace(block, progress=done)
        coded = code_lines(text.split("\n"), self._config)
        self._learn_size(len(text), len(coded.codes))
        ends = np.asarray([0, len(coded.sentences) - 1], dtype=np.int32)
        block = self._coded(self.share.source, coded, ends, np.full(1, self._undated), [key])
        return replace(block, progress=done)

    def _prepared(self, text: str, first: int) -> TokenBlock:
        """Lines from line `first` as one document, without those that cannot be prepared."""
        source = self.share.source
        key = document_key(source, first)
        block = self._text.block([self._document(key, source, text, self._undated)], [time.time()])
        if self._text.left_out.pop(key, None) is None:
            return block
        lines = [
            self._document(document_key(source, number), source, line, self._undated)
            for number, line in enumerate(text.split("\n"), first)
        ]
        self._text.block(lines, [time.time()] * len(lines))
        good = [line.text for line in lines if line.url not in self._text.left_out]
        whole = self._document(key, source, "\n".join(good), self._undated)
        return self._text.block([whole], [time.time()])

    def _by_source(self, lines: DatedLines) -> list[TokenBlock]:
        """A tick: a block for each source, in the order in which they come."""
        tick = [self._documents(source, part) for source, part in self._sourced(lines)]
        self.line = int(lines.numbers[-1]) + 1
        tokens = sum(block.n_tokens for block in tick)
        self._learn_size(int(lines.lengths.sum()), tokens)
        return [replace(block, progress=float(lines.done[-1])) for block in tick]

    def _sourced(self, lines: DatedLines) -> list[tuple[str, DatedLines]]:
        if not self.share.sources or not lines.name_sources:
            return [(self.share.source, lines)]
        groups: dict[str, list[int]] = {}
        known, rest = self.share.sources, self.share.rest
        for at, named in enumerate(lines.sources.to_pylist()):
            name = named if named in known else rest if named else self.share.source
            groups.setdefault(name, []).append(at)
        return [(name, lines.take(np.asarray(at, np.int64))) for name, at in groups.items()]

    def _documents(self, source: str, lines: DatedLines) -> TokenBlock:
        keys = [document_key(self.share.source, number) for number in lines.numbers.tolist()]
        if _is_prepared(self._config):
            columns = (lines.texts.to_pylist(), lines.when.tolist(), lines.authors.to_pylist())
            documents = [
                self._document(key, source, text, when, author)
                for key, text, when, author in zip(keys, *columns, strict=True)
            ]
            block = self._text.block(documents, [time.time()] * len(lines))
            return self._with_units(replace(block, passed=lines.passed))
        coded, ends = code_documents(lines.texts, self._config, self._pipeline.words)
        block = self._coded(source, coded, ends, lines.when, keys)
        if pc.any(pc.greater(pc.binary_length(lines.authors), 0)).as_py():
            block = replace(block, voices=voices(source, lines.authors.to_pylist(), keys))
        return self._with_units(replace(block, passed=lines.passed))

    def _with_units(self, block: TokenBlock) -> TokenBlock:
        """With lines that are in one unit together known by the same number."""
        many = self.share.unit_lines
        return block if many == 1 else replace(block, contents=line_units(block.keys, many))

    def _coded(
        self, source: str, coded: PlainText, ends: CodeArray, when: TimeArray, keys: Sequence[str]
    ) -> TokenBlock:
        """Documents whose words are coded; ends: int32 [d + 1], sentence offsets of documents."""
        read = np.full(len(keys), time.time())
        return TokenBlock(
            source=source,
            words=coded.words,
            codes=coded.codes,
            sentences=coded.sentences,
            documents=ends,
            published=when,
            available=read,
            fetched=read,
            keys=tuple(keys),
            priority=np.ones(len(keys), dtype=np.float32),
            tokenizer_digest=self._pipeline.digest,
        )

    def _document(
        self, key: str, source: str, text: str, when: float, author: str | None = None
    ) -> Document:
        return Document(
            url=key,
            source=source,
            text=text,
            published_at=datetime.fromtimestamp(when, UTC),
            fetched_at=datetime.now(UTC),
            author=author or None,
        )

    def _learn_size(self, characters: int, tokens: int) -> None:
        """Characters a token, so that the next block has the size that is wanted."""
        if tokens:
            self.characters = characters / tokens


def _is_prepared(config: TextConfig) -> bool:
    """Whether text goes through the pipeline; else Arrow's kernels cut it at blanks."""
    return config.mask or not as_written(config.tokenizer)


def _text_of(spec: NodeSpec) -> TextConfig:
    """Who wrote a corpus is not asked: its texts make phrases, whoever they are by."""
    return spec.text.model_copy(update={"unknown_authors": "each"})


class PooledText:
    """One such process for who has no event loop: the reader of a corpus."""

    def __init__(self, config: TextConfig, limit: float) -> None:
        self._runner = asyncio.Runner()
        self._pool = TextPool(config, 1, limit, warm=False)

    def block(self, documents: Sequence[Document], available: Sequence[float]) -> TokenBlock:
        return self._runner.run(self._pool.block(documents, available))

    @property
    def left_out(self) -> LeftOut:
        return self._pool.left_out

    def report(self) -> dict[str, Any]:
        return self._pool.report()

    @property
    def processes(self) -> list[int]:
        return [child.pid for child in self._pool.children]

    def close(self) -> None:
        self._runner.run(self._pool.close())
        self._runner.close()


@contextmanager
def text_process(spec: NodeSpec) -> Iterator[PooledText | None]:
    """The process that prepares the text of a corpus; None where nothing has to be prepared."""
    if not _is_prepared(spec.text):
        yield None
        return
    text = PooledText(_text_of(spec), spec.node.text_timeout)
    try:
        yield text
    finally:
        text.close()


def read_forever(spec_json: str, queue: BlockQueue) -> None:
    """Target of the reader process: put every block, then close the queue."""
    spec = NodeSpec.model_validate_json(spec_json)
    begin_logging("reader", node=spec.name, level=logging.WARNING)
    end_with_parent()
    stop = stop_on_signals()
    if spec.corpus is None:
        raise InputError(f"{spec.name}: a node that reads a corpus needs one.")

    def wanted() -> int:
        tokens = (queue.latest_report() or {}).get("block_tokens")
        return tokens if isinstance(tokens, int) and tokens > 0 else spec.node.block_tokens

    try:
        with text_process(spec) as text:
            left_out = LeftOut() if text is None else text.left_out
            start = _start(queue, stop)
            for block in blocks(spec, spec.corpus, start, wanted, text, left_out):
                queue.send_report(_figures(text, left_out))
                if not _put(queue, block, stop):
                    return
            queue.send_report(_figures(text, left_out))
    except (PeerLost, QueueClosed):
        logger.info("%s: the gradient process is gone; the reader ends", spec.name)
    finally:
        queue.close(timeout=60.0)


def _start(queue: BlockQueue, stop: threading.Event) -> Offset:
    """Where to begin, once the gradient process has asked the server; PeerLost when it is gone."""
    while (report := queue.latest_report()) is None:
        if not queue.alive or stop.wait(HEAR_SECONDS):
            raise PeerLost("queue: the gradient process ended before it said where to begin.")
    return Offset.of(str(report.get("offset", "")))


def _figures(text: PooledText | None, left_out: LeftOut) -> dict[str, object]:
    if text is None:
        return {"reader_peak_memory_bytes": peak_memory(), "text": left_out.report()}
    peak = peak_memory() + sum(map(peak_memory, text.processes))
    return {"reader_peak_memory_bytes": peak, "text": text.report()}


def _put(queue: BlockQueue, block: TokenBlock, stop: threading.Event) -> bool:
    """Put a block, however long the queue is full; False when told to stop."""
    while not stop.is_set():
        try:
            queue.put(block, _PUT_SECONDS)
            return True
        except QueueFull:
            continue
    return False
