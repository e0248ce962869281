"""The reader process: a corpus file in the place of the crawler, for training without a crawl.

Everything behind the queue is the same code as for the stream: blocks, learner, exchange, server.
A reader cuts blocks of the size of a tick, so that the same file is cut alike in every run.
"""

from __future__ import annotations

import json
import logging
import lzma
import math
import threading
import time
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import numpy as np

from embedding.errors import InputError
from embedding.records import Document, TokenBlock
from embedding.stopping import stop_on_signals
from embedding.stream.faults import PeerLost, QueueClosed, QueueFull
from embedding.stream.queue import BlockQueue
from embedding.text.pipeline import TextPipeline
from embedding.text.plain import code_lines
from embedding.worker.lifetime import end_with_parent, peak_memory
from embedding.worker.place import Place
from embedding.worker.spec import CorpusShare, NodeSpec
from embedding.worker.wishes import Wishes

logger = logging.getLogger(__name__)

PUT_SECONDS = 0.5
STRETCH_BYTES = 1 << 16
"""A file is dealt out to the nodes in stretches of so many bytes, up to the next line end."""
FIRST_TOKENS = 1_500
"""The first block of one of several nodes, unless all are smaller."""
FIRST_YEAR, LAST_YEAR = 1600, 2300
"""A date before or behind these stands for none."""
FIRST_CHARACTERS = 6.0
"""Characters a token is expected to take before any was read."""


@dataclass(frozen=True)
class Stretch:
    """Some whole lines of a corpus, from line `first` (0, 1, …).

    begun, done  share of the reading that is done before and with them
    """

    first: int
    text: str
    done: float
    begun: float = 0.0

    @property
    def end(self) -> int:
        """Number of the line behind the last one."""
        return self.first + self.text.count("\n") + (not self.text.endswith("\n"))

    def since(self, line: int) -> Stretch:
        """The lines from `line` on."""
        text = self.text
        for _ in range(self.first, min(line, self.end)):
            text = text[text.find("\n") + 1 or len(text) :]
        begun = self.share(len(self.text) - len(text))
        return Stretch(max(self.first, line), text, self.done, begun)

    def pieces(self, enough: float) -> tuple[Stretch, Stretch]:
        """Whole lines of at least `enough` characters, if there are, and the rest."""
        at = self.text.find("\n", int(min(max(enough - 1, 0), len(self.text)))) + 1 or len(
            self.text
        )
        head = Stretch(self.first, self.text[:at], self.share(at), self.begun)
        return head, Stretch(head.end, self.text[at:], self.done, head.done)

    def share(self, at: int) -> float:
        """Share of the reading that is done behind the first `at` characters."""
        whole = len(self.text)
        return self.begun + (self.done - self.begun) * at / whole if at < whole else self.done


@dataclass(frozen=True)
class Line:
    """One dated line of a corpus; `when` is in Unix seconds."""

    number: int
    text: str
    when: float
    done: float


def open_corpus(path: Path) -> IO[bytes]:
    """Open a corpus file as it lies on the disk, plain or .xz.

    Raises InputError naming the file and what is accepted.
    """
    if path.exists() and not path.is_file():
        raise InputError(
            f"{path}: no plain file, and a corpus is read more than once; write it to a text or "
            "JSONL file (plain or .xz)."
        )
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; a text or JSONL corpus (plain or .xz) is expected."
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; a corpus with at least one line is expected.")
    if path.suffix != ".xz":
        with path.open("rb") as probe:
            if b"\0" in probe.read(4096):
                raise InputError(
                    f"{path}: binary data; UTF-8 text, one sentence a line, is expected."
                )
    return path.open("rb")


def stretches(share: CorpusShare) -> Iterator[Stretch]:
    """The stretches of one share, in order; raises InputError for what is not UTF-8 text."""
    path = Path(share.path)
    line = number = 0
    last: Stretch | None = None
    with open_corpus(path) as stored:
        size = path.stat().st_size
        file: IO[bytes] = lzma.open(stored) if path.suffix == ".xz" else stored  # noqa: SIM115
        try:
            while data := file.read(STRETCH_BYTES):
                data += file.readline()
                if number % share.count == share.index:
                    if last is not None:
                        yield last
                    begun = 0.0 if last is None else last.done
                    data = data if line else data.removeprefix(BOM_UTF8)
                    last = Stretch(line, data.decode(), stored.tell() / size, begun)
                number += 1
                line += data.count(b"\n")
        except UnicodeDecodeError as error:
            wrong = line + 1 + data.count(b"\n", 0, error.start)
            raise InputError(
                f"{path}: line {wrong} is not UTF-8 text; convert the file to UTF-8."
            ) from error
        except (lzma.LZMAError, EOFError) as error:
            raise InputError(f"{path}: a damaged .xz file: {error}.") from error
    if last is not None:  # the share may end before the file does
        yield replace(last, done=1.0)


def dated_lines(share: CorpusShare, since: int = 0, *, report: bool = True) -> Iterator[Line]:
    """The dated lines of one share from line `since`.

    A malformed one is left out; `report` logs the first five of them.
    """
    bad = 0
    for stretch in stretches(share):
        if stretch.end < since:
            continue
        at = 0
        for number, text in enumerate(stretch.text.split("\n"), stretch.first):
            at += len(text) + 1
            if number < since or not text.strip():
                continue
            try:
                yield dated_line(number, text, stretch.share(at))
            except InputError as error:
                bad += 1
                if report and bad <= 5:
                    logger.warning("%s:%d: %s The line is left out.", share.path, number + 1, error)


def dated_line(number: int, text: str, done: float) -> Line:
    """A line of JSONL; raises InputError for what is none with a date and a text."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("not valid JSON; an object with date and text is accepted.") from error
    if not isinstance(record, Mapping):
        raise InputError("not a JSON object; an object with date and text is accepted.")
    body = record.get("content") or record.get("text")
    when = _when(record.get("date"))
    if not isinstance(body, str) or when is None:
        raise InputError('needs "date" (ISO, 1600 to 2300) and "text" or "content".')
    title = record.get("title")
    return Line(number, f"{title}\n{body}" if title else body, when, done)


def _when(value: Any) -> float | None:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def blocks(
    spec: NodeSpec,
    share: CorpusShare,
    start: Place | None = None,
    wanted: Callable[[], int] | None = None,
) -> Iterator[TokenBlock]:
    """Token blocks of a share, each a tick: epochs in turn, at most `tokens` tokens.

    start   the place behind the last block that was learnt; None reads from the beginning
    wanted  tokens that the next block shall hold; None takes the node's `block_tokens`

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
        for block in cutter.dated(since) if cutter.is_dated else cutter.plain(since):
            read += block.n_tokens
            done = (epoch + block.progress) / share.epochs
            if share.tokens is not None:
                done = max(done, read / share.tokens)
            behind = Place(epoch, cutter.line, read, cutter.characters)
            yield replace(block, progress=min(done, 1.0), place=str(behind))
            if share.tokens is not None and read >= share.tokens:
                return


class _Cutter:
    """Cuts a share into blocks of about the tokens that are wanted, judged by characters.

    line        the line behind the last block
    characters  characters a token took in the last block
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
        self._pipeline = TextPipeline(spec.text)
        self._undated = Path(share.path).stat().st_mtime

    def plain(self, since: int = 0) -> Iterator[TokenBlock]:
        """Blocks of plain text from line `since`: whole stretches, or parts where that is much.

        From the third node on always parts: their blocks are to be small.
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
                    yield self._plain(texts, first, part.done)
                    texts, size, enough = [], 0, self._enough()
        if texts:
            yield self._plain(texts, first, 1.0)

    def dated(self, since: int = 0) -> Iterator[TokenBlock]:
        """Blocks of dated lines from line `since`; none holds lines of two windows."""
        batch: list[Line] = []
        size, enough = 0, self._enough()
        for line in dated_lines(self._share, since):
            if batch and self._window(line) != self._window(batch[-1]):
                yield self._documents(batch)
                batch, size, enough = [], 0, self._enough()
            batch.append(line)
            size += len(line.text)
            if size >= enough:
                yield self._documents(batch)
                batch, size, enough = [], 0, self._enough()
        if batch:
            yield self._documents(batch)

    def _enough(self) -> float:
        """Characters that the next block shall have at least."""
        return self._wanted() * self.characters

    def _window(self, line: Line) -> datetime | None:
        unit = self._share.window
        return unit.floor(datetime.fromtimestamp(line.when, UTC)) if unit is not None else None

    def _plain(self, texts: list[str], first: int, done: float) -> TokenBlock:
        text = "".join(texts)
        key = f"{self._share.source}#{first + 1}"
        config = self._config
        if config.tokenizer != "whitespace" or config.mask:
            line, lines = self.line, [Line(first, text, self._undated, done)]
            block = self._documents(lines)
            self.line = line
            return replace(block, keys=(key,))
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

    def _documents(self, lines: list[Line]) -> TokenBlock:
        fetched = datetime.now(UTC)
        documents = [
            Document(
                url=f"{self._share.source}#{line.number + 1}",
                source=self._share.source,
                text=line.text,
                published_at=datetime.fromtimestamp(line.when, UTC),
                fetched_at=fetched,
            )
            for line in lines
        ]
        self.line = lines[-1].number + 1
        block = self._pipeline.block(documents, [fetched.timestamp()] * len(lines))
        self._learn_size(sum(len(line.text) for line in lines), block.n_tokens)
        return replace(block, progress=lines[-1].done)

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
