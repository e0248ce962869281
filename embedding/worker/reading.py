"""The reader process: a corpus file in the place of the crawler, for training without a crawl.

Everything behind the queue is the same code as for the stream: blocks, learner, exchange, server.
"""

from __future__ import annotations

import json
import logging
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from embedding.errors import InputError
from embedding.records import Document, TokenBlock
from embedding.stream.faults import PeerLost, QueueClosed, QueueFull
from embedding.stream.queue import BlockQueue
from embedding.text.pipeline import TextPipeline
from embedding.worker.lifetime import end_with_parent, stop_on_signals
from embedding.worker.spec import CorpusShare, NodeSpec

logger = logging.getLogger(__name__)

PUT_SECONDS = 0.5
LINES_PER_BATCH = 64


@dataclass(frozen=True)
class Line:
    """One dated line of a corpus; `when` is in Unix seconds."""

    number: int
    text: str
    when: float
    source: str


def open_corpus(path: Path) -> IO[str]:
    """Open a text file, plain or .xz; raises InputError naming the file and what is accepted."""
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; a text or JSONL corpus (plain or .xz) is expected."
        )
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty; a corpus with at least one line is expected.")
    if path.suffix == ".xz":
        return lzma.open(path, "rt", encoding="utf-8")
    with path.open("rb") as probe:
        if b"\0" in probe.read(4096):
            raise InputError(f"{path}: binary data; UTF-8 text, one sentence a line, is expected.")
    return path.open(encoding="utf-8")


def read_lines(share: CorpusShare) -> Iterator[Line]:
    """The lines of one share, in order; a malformed line is left out and reported by number."""
    path = Path(share.path)
    dated = share.path.removesuffix(".xz").endswith(".jsonl")
    undated = path.stat().st_mtime if path.exists() else 0.0
    bad = 0
    with open_corpus(path) as file:
        try:
            for number, text in enumerate(file):
                if number % share.count != share.index:
                    continue
                try:
                    yield _line(number, text, dated, undated, share.source)
                except InputError as error:
                    bad += 1
                    if bad <= 5:
                        logger.warning("%s:%d: %s The line is left out.", path, number + 1, error)
        except (UnicodeDecodeError, lzma.LZMAError, EOFError) as error:
            raise InputError(f"{path}: not readable as UTF-8 text: {error}.") from error


def _line(number: int, text: str, dated: bool, undated: float, source: str) -> Line:
    if not dated:
        return Line(number, text, undated, source)
    try:
        record = json.loads(text)
    except ValueError as error:
        raise InputError("not valid JSON; an object with date and text is accepted.") from error
    if not isinstance(record, Mapping):
        raise InputError("not a JSON object; an object with date and text is accepted.")
    body = record.get("content") or record.get("text")
    when = _when(record.get("date"))
    if not isinstance(body, str) or when is None:
        raise InputError('needs "date" (ISO) and "text" or "content".')
    title = record.get("title")
    return Line(number, f"{title}\n{body}" if title else body, when, source)


def _when(value: Any) -> float | None:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def blocks(spec: NodeSpec, share: CorpusShare) -> Iterator[TokenBlock]:
    """Token blocks of a share: epochs in turn, at most `tokens` tokens."""
    pipeline = TextPipeline(spec.text)
    left = share.tokens
    for _ in range(share.epochs):
        batch: list[Line] = []
        for line in read_lines(share):
            batch.append(line)
            if len(batch) < LINES_PER_BATCH:
                continue
            block = _block(batch, pipeline)
            batch = []
            yield block
            left = None if left is None else left - block.n_tokens
            if left is not None and left <= 0:
                return
        if batch:
            yield _block(batch, pipeline)


def _block(lines: list[Line], pipeline: TextPipeline) -> TokenBlock:
    documents = [
        Document(
            url=f"{line.source}#{line.number + 1}",
            source=line.source,
            text=line.text,
            published_at=datetime.fromtimestamp(line.when, UTC),
            fetched_at=datetime.now(UTC),
        )
        for line in lines
    ]
    now = [document.fetched_at.timestamp() for document in documents]
    return pipeline.block(documents, now)


def read_forever(spec_json: str, queue: BlockQueue) -> None:
    """Target of the reader process: put every block, then close the queue."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    end_with_parent()
    stop = stop_on_signals()
    spec = NodeSpec.model_validate_json(spec_json)
    if spec.corpus is None:
        raise InputError(f"{spec.name}: a node that reads a corpus needs one.")
    try:
        for block in blocks(spec, spec.corpus):
            while not stop.is_set():
                try:
                    queue.put(block, PUT_SECONDS)
                    break
                except QueueFull:
                    continue
            if stop.is_set():
                return
    except (PeerLost, QueueClosed):
        logger.info("%s: the gradient process is gone; the reader ends", spec.name)
    finally:
        queue.close(timeout=60.0)
