"""What a node must know to start: a JSON-safe description that travels through Dask."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, model_validator

from embedding.crawl.config import CrawlConfig
from embedding.exchange.config import ExchangeConfig, Setup
from embedding.exchange.topology import MeetingSpec, RelaySpec, TopologyConfig
from embedding.kernel.config import Config, ZoneName
from embedding.kernel.records import Calendar, WindowUnit
from embedding.kernel.zones import zone_of
from embedding.models.config import ModelConfig
from embedding.models.traits import RANKED_MODEL
from embedding.sources.config import SourceConfig
from embedding.stream.config import StreamConfig
from embedding.text.config import TextConfig
from embedding.worker.config import NodeConfig


class CorpusShare(Config):
    """The part of a corpus file that one node reads: every `count`-th stretch of lines."""

    path: str
    """Text (one sentence a line) or dated JSONL, plain or .xz."""
    source: str = "corpus"
    """Name under which its words are counted, unless a line names a source."""
    sources: tuple[str, ...] = ()
    """Sources that dated lines may name; what others wrote is counted as `rest`. None: all text is
    of one source, whatever lines say."""
    rest: str = "other"
    """Name under which the words of all other sources are counted."""
    index: int = Field(default=0, ge=0)
    """Which share this is, from 0."""
    count: int = Field(default=1, ge=1)
    """Shares in all."""
    peers: int | None = Field(default=None, ge=1)
    """Nodes of the same server that read shares, with this one; None: all do."""
    epochs: int = Field(default=1, ge=1)
    """How often the share is read."""
    tokens: int | None = Field(default=None, ge=1)
    """Tokens after which reading stops; None reads all."""
    window: WindowUnit | None = None
    """No block holds lines of two windows of this unit; None does not care."""
    timezone: ZoneName = "UTC"
    """Zone of windows, of dates without a time, and of times without a zone."""
    unit_lines: int = Field(default=1, ge=1)
    """Consecutive dated lines without an author that are one unit of the test of change."""
    window_characters: tuple[tuple[int, int], ...] = ()
    """Characters of each of its windows, by start (Unix seconds): by how much of a window has been
    read the learning rate falls. None: it does not fall within windows."""

    @property
    def calendar(self) -> Calendar | None:
        """Of its windows; None where no block minds them."""
        return None if self.window is None else Calendar(self.window, zone_of(self.timezone))


def check_replay(model: ModelConfig, stream: StreamConfig, node: NodeConfig) -> None:
    """ValueError when sentences would be ranked or weighed that the model does not weigh."""
    ranks = bool(node.replay_ratio) and stream.replay != "uniform"
    if ranks and not RANKED_MODEL.met(model.model):
        raise ValueError(
            f"stream.replay {stream.replay} with model.model {model.model}: "
            f"{RANKED_MODEL.reason}, or stream.replay uniform"
        )
    if node.source_weights and not RANKED_MODEL.met(model.model):
        raise ValueError(
            f"node.source_weights with model.model {model.model}: {RANKED_MODEL.reason}"
        )


class NodeSpec(Config):
    """One node of a pool."""

    name: str
    """Name of the node, the same in every incarnation: the server numbers its pushes by it."""

    incarnation: str = ""
    """Mark of one incarnation of the node: each start of its two processes has another."""

    peers: tuple[str, ...] = ()
    """Names of all nodes of the pool, this one too."""

    server: str
    """Address of the parameter server, `grpc://host:port`."""

    sources: tuple[SourceConfig, ...] = ()
    """The pool's sources, where nobody has published others in the frontier; which of them this
    node reads the leases say."""

    corpus: CorpusShare | None = None
    """A corpus to read instead of crawling; the node ends when it is learnt."""

    crawl: CrawlConfig = CrawlConfig()
    """Fetching, with the pool's frontier."""
    text: TextConfig = TextConfig()
    """Text preparation."""
    stream: StreamConfig = StreamConfig()
    """Queue and replay."""
    model: ModelConfig = ModelConfig()
    """The model; server and node must agree on its digest."""
    node: NodeConfig = NodeConfig()
    """Blocks and replay ratio."""
    min_count: int = Field(default=5, ge=1)
    """Occurrences after which the server gives a word a row."""
    exchange: ExchangeConfig = ExchangeConfig()
    """The wire."""
    evidence: Path | None = None
    """Folder for addresses of documents by word (`snapshots/evidence.py`); None notes none."""
    topology: TopologyConfig = TopologyConfig()
    """How rows travel."""
    ring: MeetingSpec | None = None
    """Where this node meets those that all-reduce; None when none does."""
    relay: RelaySpec | None = None
    """Where the pushes of this node and others are added up; None: it pushes to the server."""

    @model_validator(mode="after")
    def _consistent(self) -> NodeSpec:
        check_replay(self.model, self.stream, self.node)
        return self

    @property
    def setup(self) -> Setup:
        """What this node trains with, for the server's snapshots."""
        return Setup(
            model=self.model,
            compression=self.exchange.compression,
            topology=self.topology.name,
            tokenizer=self.text.tokenizer,
            nodes=max(len(self.peers), 1) if self.corpus is None else self.corpus.count,
        )
