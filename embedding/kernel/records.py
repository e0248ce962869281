"""The records that pass between rooms: Document → TokenBlock → Delta/Counts → SnapshotRef.

Times are Unix seconds (UTC, float64) inside arrays and `datetime` with a zone elsewhere.
Documents and TokenBlocks exist in memory only: nothing here is ever written to a disk or a log.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import embedding.kernel.spared  # noqa: F401 - before Arrow is given anything
from embedding.kernel.calendar import Calendar as Calendar
from embedding.kernel.calendar import Window as Window
from embedding.kernel.calendar import WindowUnit as WindowUnit
from embedding.kernel.errors import InputError
from embedding.kernel.fields import IDS, MOMENT, Column, Entries, String, WholeNumber

IntArray = npt.NDArray[np.int64]
CodeArray = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]
HalfArray = npt.NDArray[np.float16]
TimeArray = npt.NDArray[np.float64]


class Table(StrEnum):
    """The tables of a model: `in` are the word vectors, `out` the context vectors.

    fastText alone has `sub`, the vectors of n-grams; its row ids are bucket numbers.
    """

    IN = "in"
    OUT = "out"
    SUB = "sub"


@dataclass(frozen=True)
class Document:
    """One text as it was found: a news article, a comment, a post.

    `source` is the name in sources.toml; `url` the canonical address; `author` an opaque
    pseudonym (a keyed hash made by the source adapter, with `group_of` the name) or None, never a
    name; `inline` says that its listing held the text, as those of comments and posts do.
    """

    url: str
    source: str
    text: str
    published_at: datetime
    fetched_at: datetime
    title: str = ""
    author: str | None = None
    language: str | None = None
    inline: bool = False

    def __post_init__(self) -> None:
        if self.published_at.tzinfo is None or self.fetched_at.tzinfo is None:
            raise InputError(f"{self.url}: published_at and fetched_at need a time zone.")


PHRASE_TEXT = String(least=1, most=1_000)
"""A phrase, or a part of one."""


@dataclass(frozen=True)
class Phrase:
    """Several words that are read as one since a text process found them to be one expression.

    word     the phrase as it is written without blanks
    parts    the words that it was read as before
    since    earliest event time (Unix seconds) at which it is known to have been written
    joined   event time (Unix seconds) from which on it is read as one word
    earlier  uses known from before, one for each author, which counted for its parts
    """

    word: Annotated[str, PHRASE_TEXT]
    parts: Annotated[tuple[Annotated[str, PHRASE_TEXT], ...], Entries(least=2, most=16)]
    since: float
    joined: float
    earlier: Annotated[int, WholeNumber(most=2**53)]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Phrase:
        """A row of `PHRASE`, as Arrow gives it back."""
        parts = tuple(row["parts"])
        return cls(row["word"], parts, row["since"], row["joined"], row["earlier"])

    def merged(self, other: Phrase) -> Phrase:
        """What two processes know of the same phrase; its parts are those of the first."""
        return Phrase(
            self.word,
            self.parts,
            min(self.since, other.since),
            min(self.joined, other.joined),
            self.earlier + other.earlier,
        )


PHRASE = pa.struct(
    [
        ("word", pa.string()),
        ("parts", pa.list_(pa.string())),
        ("since", pa.float64()),
        ("joined", pa.float64()),
        ("earlier", pa.int64()),
    ]
)
"""A `Phrase` in Arrow."""


@dataclass(frozen=True)
class TokenBlock:
    """Tokenised documents of one source, dictionary-encoded.

    words        distinct words of the block (length W)
    codes        int32 [n_tokens], index into `words`
    sentences    int32 [n_sentences + 1], token offsets of sentences
    documents    int32 [n_documents + 1], sentence offsets of documents
    published    float64 [n_documents], event time (Unix seconds)
    available    float64 [n_documents], wall time at which it could first be fetched
    fetched      float64 [n_documents], wall time at which it was fetched
    keys         frontier keys (n_documents), acknowledged once the block's push is durable
    priority     float32 [n_documents], initial replay priority (1.0 when unknown)
    progress     share of the reading that is done with this block (0 to 1); NaN for a stream
    offset       where its reader goes on, on the last block of a tick; "" on others and of a stream
    voices       int64 [n_documents], by author, below 0 where unknown (`text/config.py`);
                 empty where nobody asks
    contents     int64 [n_documents], by text and time, wherever a document was found
                 (`text/config.py`); empty for plain lines
    inline       int8 [n_documents], 1 for a text that its listing held, as those of comments and
                 posts do; empty where no document is one
    phrases      expressions that are read as one word from this block on
    passed       float64 [n_documents], share of the text of its window (0 to 1) that comes before
                 the middle of each; empty where that is not known
    incarnation  mark of a dead process that learnt these documents: they are read again for how
                 they use words, and neither learnt nor counted
    """

    source: str
    words: tuple[str, ...]
    codes: CodeArray
    sentences: CodeArray
    documents: CodeArray
    published: TimeArray
    available: TimeArray
    fetched: TimeArray
    keys: tuple[str, ...]
    priority: FloatArray
    tokenizer_digest: str = ""
    progress: float = math.nan
    offset: str = ""
    voices: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    contents: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    inline: npt.NDArray[np.int8] = field(default_factory=lambda: np.empty(0, dtype=np.int8))
    passed: TimeArray = field(default_factory=lambda: np.empty(0, dtype=np.float64))
    phrases: tuple[Phrase, ...] = ()
    incarnation: str = ""

    def __post_init__(self) -> None:
        n = len(self.keys)
        if not (
            len(self.documents) == n + 1
            and len(self.published) == len(self.available) == len(self.fetched) == n
            and len(self.priority) == n
            and len(self.voices) in (0, n)
            and len(self.contents) in (0, n)
            and len(self.inline) in (0, n)
            and len(self.passed) in (0, n)
            and len(self.sentences) > 0
            and int(self.documents[-1]) == len(self.sentences) - 1
            and int(self.sentences[-1]) == len(self.codes)
        ):
            raise InputError(
                f"token block of {self.source}: offsets and per-document columns disagree "
                f"({n} documents, {len(self.sentences) - 1} sentences, {len(self.codes)} tokens)."
            )

    @property
    def n_tokens(self) -> int:
        return len(self.codes)

    @property
    def n_documents(self) -> int:
        return len(self.keys)

    def document_tokens(self) -> CodeArray:
        """int32 [n_documents + 1]: token offsets of documents."""
        offsets: CodeArray = self.sentences[self.documents]
        return offsets

    @classmethod
    def build(
        cls,
        source: str,
        documents: Iterable[Sequence[Sequence[str]]],
        *,
        published: Sequence[float],
        keys: Sequence[str],
        available: Sequence[float] | None = None,
        fetched: Sequence[float] | None = None,
        priority: Sequence[float] | None = None,
        tokenizer_digest: str = "",
    ) -> TokenBlock:
        """Encode documents given as sentences of words."""
        index: dict[str, int] = {}
        codes: list[int] = []
        sentence_ends = [0]
        document_ends = [0]
        for sentences in documents:
            for sentence in sentences:
                codes.extend(index.setdefault(word, len(index)) for word in sentence)
                sentence_ends.append(len(codes))
            document_ends.append(len(sentence_ends) - 1)
        return cls(
            source=source,
            words=tuple(index),
            codes=np.asarray(codes, dtype=np.int32),
            sentences=np.asarray(sentence_ends, dtype=np.int32),
            documents=np.asarray(document_ends, dtype=np.int32),
            published=np.asarray(published, dtype=np.float64),
            available=np.asarray(published if available is None else available, dtype=np.float64),
            fetched=np.asarray(published if fetched is None else fetched, dtype=np.float64),
            keys=tuple(keys),
            priority=np.asarray([1.0] * len(keys) if priority is None else priority, np.float32),
            tokenizer_digest=tokenizer_digest,
        )

    def to_buffer(self) -> pa.Buffer:
        """One Arrow IPC buffer (no pickle); `from_buffer` is its inverse."""
        columns = {name: _one(getattr(self, name)) for name in _ARRAYS} | {
            "source": pa.array([self.source]),
            "words": pa.array([list(self.words)], pa.list_(pa.string())),
            "keys": pa.array([list(self.keys)], pa.list_(pa.string())),
            "tokenizer_digest": pa.array([self.tokenizer_digest]),
            "progress": pa.array([self.progress], pa.float64()),
            "offset": pa.array([self.offset]),
            "incarnation": pa.array([self.incarnation]),
            "phrases": pa.array([[asdict(each) for each in self.phrases]], pa.list_(PHRASE)),
        }
        batch = pa.record_batch(columns)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return sink.getvalue()

    @classmethod
    def from_buffer(cls, buffer: pa.Buffer | bytes) -> TokenBlock:
        """Decode `to_buffer`; raises InputError when the bytes are not a token block."""
        try:
            with pa.ipc.open_stream(buffer) as reader:
                batch = reader.read_next_batch()
            get = {name: batch.column(name)[0] for name in batch.schema.names}
            return cls(
                source=get["source"].as_py(),
                words=tuple(get["words"].as_py()),
                keys=tuple(get["keys"].as_py()),
                tokenizer_digest=get["tokenizer_digest"].as_py(),
                progress=get["progress"].as_py(),
                offset=get["offset"].as_py(),
                incarnation=get["incarnation"].as_py(),
                phrases=tuple(Phrase.of(each) for each in get["phrases"].as_py()),
                **{name: get[name].values.to_numpy() for name in _ARRAYS},
            )
        except (pa.ArrowException, KeyError, StopIteration) as error:
            raise InputError(f"not a token block: {error}.") from error


@dataclass(frozen=True)
class EncodedBlock:
    """A token block as the process that made it wrote it; whoever hands it on does not read it.

    buffer    what `TokenBlock.to_buffer` wrote
    n_tokens  of the block
    """

    buffer: bytes
    n_tokens: int

    def to_buffer(self) -> bytes:
        return self.buffer


BlockLike = TokenBlock | EncodedBlock
_ARRAYS: tuple[str, ...] = ("codes", "sentences", "documents", "published", "available", "fetched")
_ARRAYS += ("priority", "voices", "contents", "inline", "passed")


def _one(values: npt.NDArray[np.generic]) -> pa.Array:
    """A one-row Arrow list column that holds `values`."""
    flat = pa.array(values)
    return pa.ListArray.from_arrays(pa.array([0, len(flat)], pa.int32()), flat)


COUNT_COLUMNS = ("counts", "documents", "authors", "voices")
"""Columns of what was counted of a word."""
CountFigures = tuple[IntArray, IntArray, IntArray, IntArray]


class CountColumns:
    """Counts of n words, int64 [n] each.

    counts     occurrences
    documents  that hold the word
    authors    known ones who wrote these documents; 0: none is known
    voices     the authors, and the documents whose author is not known: each of these may be by
               another one. Tests count them, so that nobody is several witnesses
    """

    counts: IntArray
    documents: IntArray
    authors: IntArray | None
    voices: IntArray | None

    @property
    def columns(self) -> CountFigures:
        """All of `COUNT_COLUMNS`; where nothing is said of authors, none is known."""
        authors = np.zeros_like(self.documents) if self.authors is None else self.authors
        voices = self.documents if self.voices is None else self.voices
        return self.counts, self.documents, authors, voices


@dataclass(frozen=True)
class WordCounts(CountColumns):
    """What one window or block read, by word, source and window: a row for each.

    words, sources  str [n]; windows  int64 [n], starts in Unix seconds
    """

    words: Sequence[str]
    sources: Sequence[str]
    windows: IntArray
    counts: IntArray
    documents: IntArray
    authors: IntArray | None = None
    voices: IntArray | None = None


@dataclass(frozen=True)
class SourceProgress:
    """How far one source has been read and learnt by a push.

    documents, tokens   newly learnt by this push
    published           latest event time seen (Unix seconds)
    lags                seconds from available to fetched+learnt, of some of the documents
    window              window start (Unix seconds) the documents belong to
    """

    source: str
    documents: int
    tokens: int
    published: float
    window: Annotated[int, MOMENT]
    lags: tuple[float, ...] = ()


@dataclass(frozen=True)
class ScorePairs:
    """Pairs taken from documents that were not learnt yet, to be scored on the server.

    source     str, all pairs are of one source
    centres    int64 [n] row ids of `in`
    contexts   int64 [n] row ids of `out`
    negatives  int64 [n, k] row ids of `out`
    windows    int64 [n] start (Unix seconds) of the window that the pair's document belongs to
    """

    source: str
    centres: Annotated[IntArray, IDS]
    contexts: Annotated[IntArray, IDS]
    negatives: Annotated[IntArray, Column("i8", ("n", "k"))]
    windows: Annotated[IntArray, Column("i8", ("n",), above=-(2**40), most=2**40 - 1)]

    def fault(self) -> str | None:
        """What no column alone shows to be wrong."""
        return None if len(self.centres) else "there is no pair to score"


@dataclass(frozen=True)
class SnapshotRef:
    """A pointer to a published snapshot; small enough for an XCom.

    revision  1, then one more each time it was amended
    lacks     a sentence for each thing that it lacks of its window (`snapshots/format.py`)
    """

    id: str
    uri: str
    window_start: datetime
    window_end: datetime
    words: int
    parent: str | None = None
    revision: int = 1
    lacks: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The label of its window, which its id begins with."""
        return self.id.rpartition("-")[0]

    def to_dict(self) -> dict[str, Any]:
        times = {name: getattr(self, name).isoformat() for name in ("window_start", "window_end")}
        return {**vars(self), **times, "lacks": list(self.lacks)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SnapshotRef:
        parent = data.get("parent")
        return cls(
            id=str(data["id"]),
            uri=str(data["uri"]),
            window_start=datetime.fromisoformat(str(data["window_start"])),
            window_end=datetime.fromisoformat(str(data["window_end"])),
            words=int(data["words"] or 0),
            parent=None if parent is None else str(parent),
            revision=int(data.get("revision", 1)),
            lacks=tuple(map(str, data.get("lacks", ()))),
        )


@dataclass(frozen=True)
class SnapshotData:
    """Everything that one snapshot holds, in memory, before it is written or after it was read.

    words      str [n]
    ids        int64 [n] row ids
    counts     int64 [n] (decayed) running counts
    last_seen  float64 [n] event time, Unix seconds
    vectors    float32 [n, dim] (`in`; of fastText the mean of a word's own and n-gram rows)
    contexts   float32 [n, dim] (`out`)
    by_source  this window's occurrences and documents by word and source
    tokens     this window's tokens by source
    documents  this window's documents by source
    quality    quality figures by name
    phrases    those of the words that are several words read as one
    earlier    what windows published before counted of words that had no row then
    """

    window: Window
    words: Sequence[str]
    ids: IntArray
    counts: IntArray
    last_seen: TimeArray
    vectors: FloatArray
    contexts: FloatArray
    by_source: WordCounts
    tokens: dict[str, int]
    documents: dict[str, int]
    quality: dict[str, float] = field(default_factory=dict)
    parent: str | None = None
    config: dict[str, object] = field(default_factory=dict)
    config_digest: str = ""
    tokenizer_digest: str = ""
    phrases: Sequence[Phrase] = ()
    earlier: WordCounts | None = None


def batched(words: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Consecutive slices of at most `size` items."""
    for at in range(0, len(words), size):
        yield words[at : at + size]
