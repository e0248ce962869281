"""What a node and the parameter server say to each other, as plain values.

Each field says what it may be; `codec.py` writes, reads and checks by that, `wire.py` frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np

from embedding.exchange.payload import (
    BlockCounts,
    ContextShift,
    ContextSums,
    HandIn,
    PackedDelta,
    RowDelta,
    ShardBlock,
    WordContexts,
)
from embedding.kernel.fields import (
    IDS,
    Column,
    Entries,
    NotSent,
    RealNumber,
    String,
    WholeNumber,
    WordColumn,
)
from embedding.kernel.records import (
    FloatArray,
    HalfArray,
    IntArray,
    Phrase,
    ScorePairs,
    SourceProgress,
    Table,
    TimeArray,
    WordCounts,
)

ROUND = "a round of all nodes"
"""What a pull waits for while a round is on in which nodes do something together."""


@dataclass(frozen=True)
class Pace:
    """When a node pulls and pushes, and what part of its deltas.

    pooled      nodes whose deltas of the same rows are added up (ADR 6): each pushes a share; 0:
                all that take part
    push_every  blocks from one push to the next (n_push, tau)
    pull_every  blocks for which rows that were pulled serve (n_fetch, tau)
    elastic     0: a push is what rows moved by; above 0: β of elastic averaging (Zhang 2015)
    batch_tokens, portion_tokens  what a node gives to a batch of L-BFGS of what it remembers, and
                in what portions; 0: there are no such rounds
    """

    pooled: int = 0
    push_every: Annotated[int, WholeNumber(1)] = 1
    pull_every: Annotated[int, WholeNumber(1)] = 1
    elastic: Annotated[float, RealNumber(0, 1)] = 0.0
    batch_tokens: int = 0
    portion_tokens: int = 0

    @property
    def every_block(self) -> bool:
        """Each block pulls its rows and pushes what they moved by; no copy outlives it."""
        return self.push_every == self.pull_every == 1 and not self.elastic


EVERY_BLOCK = Pace()
"""Every block pulls and pushes."""


PROTOCOL_VERSION = 19
"""Version of the wire protocol. A server refuses nodes of every other version at the greeting, so
server and nodes are brought up to date together."""


def version_refused(version: int) -> str | None:
    """Why a server does not speak a node's version, and what to do; None where it does."""
    if version == PROTOCOL_VERSION:
        return None
    older = "the server" if version > PROTOCOL_VERSION else "the node"
    return (
        f"protocol {version}; this server speaks {PROTOCOL_VERSION}: bring server and nodes up to "
        f"date together; {older} is the older one."
    )


OFFSET = String(1024 * 1024)
"""What a node had read: of a crawler 11 characters for each document under way."""


@dataclass(frozen=True)
class Greeting:
    """The first message of a node's stream.

    clock        the highest clock that the node was given
    incarnation  mark of the process, "" of one that nobody fences
    """

    op: ClassVar = "hello"

    node: str
    version: int
    config_digest: str = ""
    clock: int = 0
    incarnation: str = ""


@dataclass(frozen=True)
class Ask:
    """What a node is asked to hand in of a window.

    window   its start (Unix seconds)
    overdue  also where it would rehearse the window on
    lost     of dead processes by their marks: sources of which they read text that is to be read
             again
    """

    window: int
    overdue: bool
    lost: tuple[tuple[str, str], ...] = ()

    def to_list(self) -> list[Any]:
        """JSON-safe; `asks_of` is the inverse."""
        return [self.window, self.overdue, [list(text) for text in self.lost]]


def asks_of(value: object) -> list[Ask]:
    """What a server asks for, in the order of the windows."""
    rows = value if isinstance(value, list) else []
    return [
        Ask(int(window), overdue is True, tuple((str(life), str(s)) for life, s in lost))
        for window, overdue, lost in rows
    ]


@dataclass(frozen=True)
class SharedTables:
    """Where the tables lie in memory that this host's processes share (policy hogwild).

    path    file to map, float32: `out` [rows, dim], `in` [rows, dim] and, for fastText, `sub`
            [buckets, dim]; a row's place is its id, or the bucket
    on_gpu  they lie on a GPU, and the path is what `devices.lend` gave
    """

    path: str
    rows: int
    buckets: int = 0
    on_gpu: bool = False


@dataclass(frozen=True)
class Welcome:
    """Answer to a node's greeting.

    clock      the clock at which the node goes on
    sequence   last push of this node that the server has taken (0: none)
    durable    last push of this node that is in a checkpoint
    epoch      number of this incarnation of the server; another one means that it was restarted
    ahead      the policy lets a node pull its next rows before it has pushed the last ones
    active     nodes that take part at the moment
    pace       when the node is to pull and push, and in what share
    min_count  occurrences after which a word gets a row
    usage      whether the server wants to hear what stands around words
    rare_mentions  occurrences until which the server wants to hear what stands around a word
    shared     where the tables lie, when the policy is hogwild
    offset     where the node's reader goes on behind the last push that was taken, "" where unknown
    salt       hex, key of contributor ids (`contributors.py`)
    min_authors, min_sources  how many have to use a word before it gets a row
    shards     addresses of the shards that hold the rows; none: this server holds them itself
    split      what of the tables a shard holds: rows or columns
    liveness_s  seconds of silence after which a node counts as gone; 0: not known
    """

    clock: int = 0
    sequence: int = 0
    durable: int = 0
    epoch: int = 0
    dim: int = 0
    window_unit: str = "day"
    policy: str = ""
    staleness: int = 0
    n_push: int = 1
    n_fetch: int = 1
    session: int = 0
    ahead: bool = False
    active: int = 1
    min_count: int = 1
    rare_mentions: int = 0
    usage: bool = False
    pace: Pace = EVERY_BLOCK
    shared: SharedTables | None = None
    offset: Annotated[str, OFFSET] = ""
    salt: str = ""
    min_authors: int = 1
    min_sources: int = 1
    shards: tuple[str, ...] = ()
    split: str = "rows"
    liveness_s: float = 0.0


@dataclass(frozen=True)
class Ack:
    """Answer to a push: taken once, whatever number of times it was sent.

    sequence   the last push that the server has taken
    durable    the last push that is in a checkpoint
    clock      the clock at which the node goes on
    duplicate  the push had been taken before
    ahead      the policy lets the node pull its next rows before it has pushed these
    active     nodes that take part at the moment
    pace       when the node is to pull and push, and in what share
    share      factor on the node's block size, by which all nodes' blocks take the same time
    """

    sequence: int
    durable: int
    clock: int
    duplicate: bool = False
    ahead: bool = False
    active: int = 1
    pace: Pace = EVERY_BLOCK
    share: Annotated[float, RealNumber(least=0, above=0)] = 1.0


@dataclass(frozen=True)
class PullRequest:
    """The rows that a node asks for.

    ids    by table, int64 [n]: rows of words, or n-gram buckets (fastText alone has them)
    clock  clock of the block that the rows are for
    score  pairs of any number of sources, scored on the rows as they are when the policy lets the
           pull through
    half   the rows are to travel as float16
    """

    op: ClassVar = "pull"

    ids: Annotated[Mapping[Table, IntArray], IDS]
    clock: int
    score: Sequence[ScorePairs] = ()
    half: bool = False


@dataclass(frozen=True)
class PulledRows:
    """Rows as the policy lets them be read.

    clock     clock that the rows stand for; the delta computed on them is pushed with it
    rows      by table float32 or float16 [n, dim], one row for each id asked for, in that order; it
              may be the received message itself and read-only: copy it to train on it
    sequence  the last push of this node that is in these rows
    nll       mean negative log-likelihood of each source's pairs, in the order in which they were
              sent; None where none of their words has a row
    waited_s  how long the policy held the pull back
    at        where the rows lie on shards: incarnation and position of the log that they have to
              hold
    """

    clock: int
    rows: Annotated[Mapping[Table, FloatArray | HalfArray], Column("f4 f2", ("n", "dim"))]
    sequence: int = 0
    nll: tuple[float | None, ...] = ()
    waited_s: Annotated[float, NotSent()] = 0.0
    at: tuple[int, int] | None = None


@dataclass(frozen=True)
class VocabularyDelta:
    """Words admitted after version `since`.

    version  pass it as `since` the next time; a version the server does not know gives all words
    words    str [n]; ids int64 [n]; counts int64 [n] (decayed) running counts
    evicted  int64 [k] ids that were dropped after `since`; they are never given again
    alive    int64 [v] ids of all words that have a row, increasing
    alive_counts  float64 [v] their (decayed) running counts
    """

    version: int
    words: Annotated[Sequence[str], WordColumn("n", listed=True)]
    ids: Annotated[IntArray, IDS]
    counts: Annotated[IntArray, IDS]
    evicted: Annotated[IntArray, Column("i8", ("k",))] = field(
        default_factory=lambda: np.empty(0, dtype=np.int64)
    )
    alive: Annotated[IntArray, Column("i8", ("v",))] = field(
        default_factory=lambda: np.empty(0, dtype=np.int64)
    )
    alive_counts: Annotated[TimeArray, Column("f8", ("v",), whole=True)] = field(
        default_factory=lambda: np.empty(0, dtype=np.float64)
    )


def no_counts() -> WordCounts:
    """A WordCounts without a row."""
    empty = np.empty(0, dtype=np.int64)
    return WordCounts(words=(), sources=(), windows=empty, counts=empty, documents=empty)


def nothing_read() -> BlockCounts:
    """A BlockCounts without a row."""
    empty = np.empty(0, dtype=np.int64)
    return BlockCounts(groups=(), ids=empty, words=(), counts=empty, documents=empty)


@dataclass(frozen=True)
class Push:
    """What a node learnt from one block.

    sequence  1, 2, 3, … by node, without a gap
    clock     clock of the rows that the deltas were computed on
    deltas    at most one RowDelta for each table
    packed    what a compressor made of deltas, at most one for each table and shard; added up with
              `deltas`
    keeps     the node adds these deltas to the rows that it keeps itself
    entries   numbers that the deltas had before they were compressed; 0: as many as they have
    offset    where the node's reader goes on behind it; the server keeps it with the sequence
    busy_s    seconds that it took, without those that the policy held it back; 0: not measured
    rare      what stood around words that were read only a few times
    minibatches  the block itself, where shards hold columns and learn it: they read and write it
    usage     how words were used in a window that closed and in those before it; a part of it
    hand_ins  windows of which these are the last parts
    incarnation  mark of the process, which hands in how it used words; "": it never does
    shifts    which contexts of words became more or less frequent in a window that closed
    phrases   expressions that are read as one word since these blocks
    tokens    fresh tokens that have a row; replayed: those that were learnt again, counted nowhere
    """

    op: ClassVar = "push"

    node: str
    sequence: Annotated[int, WholeNumber(1)]
    clock: int
    deltas: Annotated[tuple[RowDelta, ...], Entries(len(Table))] = ()
    counts: BlockCounts = field(default_factory=nothing_read)
    progress: tuple[SourceProgress, ...] = ()
    tokens: int = 0
    loss_sum: Annotated[float, RealNumber(-1e300, 1e300)] = 0.0
    pairs: int = 0
    tokenizer_digest: str = ""
    offset: Annotated[str, OFFSET] = ""
    packed: Annotated[tuple[PackedDelta, ...], Entries(len(Table))] = ()
    entries: int = 0
    keeps: bool = False
    busy_s: Annotated[float, RealNumber(0)] = 0.0
    rare: WordContexts | None = None
    minibatches: Annotated[ShardBlock | None, NotSent()] = None
    usage: Annotated[tuple[ContextSums, ...], Entries(50_000)] = ()
    shifts: Annotated[tuple[ContextShift, ...], Entries(1_000)] = ()
    hand_ins: Annotated[tuple[HandIn, ...], Entries(1_000)] = ()
    incarnation: str = ""
    replayed: int = 0
    phrases: tuple[Phrase, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of the rows and ids, as they are sent."""
        plain = sum(delta.ids.nbytes + delta.values.nbytes for delta in self.deltas)
        beside = (self.rare, self.minibatches, *self.usage, *self.shifts)
        plain += sum(part.nbytes for part in beside if part is not None)
        return plain + sum(delta.data.nbytes for delta in self.packed)
