"""What a training is asked to do, what it tells meanwhile, and what it did."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from embedding.exchange.config import ExchangeConfig
from embedding.exchange.topology import TopologyConfig
from embedding.kernel.config import Config
from embedding.kernel.records import Calendar, SnapshotRef, WindowUnit
from embedding.models.config import ModelConfig
from embedding.models.traits import COUNT_MODELS
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.policies.traits import POLICIES
from embedding.stream.config import StreamConfig
from embedding.text.config import TextConfig
from embedding.text.tokenizers import as_written
from embedding.worker.config import NodeConfig

FRESH_NOISE = {"noise_own": 12, "move": 6}
"""Of a dated corpus: what is read once has to be told from other words by fresh noise. Columns have
the noise words sent by their ids, so that more of them take more bytes."""
MOST_SOURCES = 32
"""Each has a block of its own in every tick that holds it, and sums of its own in a window."""


TRAINING_SECTIONS = ("model", "text", "stream", "node", "exchange", "sync", "server")
"""Sections of the settings that a training uses; the others are about other commands."""
PASSED_OVER = {
    "server": frozenset(
        (
            # Its server is its own, for as long as it trains.
            *("host", "port", "http_port", "token_file", "operator_token_file"),
            *("tls_cert", "tls_key", "tls_client_ca", "tls_ca", "shards_port", "group"),
            # It reads a file and crawls nothing.
            *("source_idle_s", "min_authors", "min_sources"),
            # Options say it (--state-dir, --out, --window), or how a corpus is read.
            *("state_dir", "snapshots", "window", "cut"),
        )
    ),
    "node": frozenset(("text_processes", "flush_seconds")),
    "exchange": frozenset(
        ("location", "token_file", "operator_token_file", "tls_ca", "tls_cert", "tls_key")
    ),
}
"""Settings of those sections that mean nothing to a training."""


def used_settings(
    given: Mapping[str, Mapping[str, Any]],
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """By section what file and environment say and a training uses; what of its sections it does
    not use (`server.port`).
    """
    used: dict[str, dict[str, Any]] = {}
    passed_over = []
    for section in TRAINING_SECTIONS:
        idle = PASSED_OVER.get(section, frozenset())
        values = given.get(section, {})
        used[section] = {name: value for name, value in values.items() if name not in idle}
        passed_over += [f"{section}.{name}" for name in values if name in idle]
    return used, passed_over


WITHOUT_SECTION = {
    "server": ("checkpoint_every_s", "device", "max_words", "min_count", "shards", "split"),
    "node": ("block_tokens", "rehearsal_passes"),
}
"""Settings that a request also takes without their section, where they are not None."""


class TrainRequest(Config):
    """One training: a corpus, by how many nodes it is read, and the settings of every section."""

    corpus: Path
    """Text (one sentence a line) or dated JSONL, plain or .xz."""
    out: Path | None = None
    """New or empty folder for the snapshots. Without it nothing is kept."""
    state_dir: Path | None = None
    """Folder of checkpoints. After an interruption the same training goes on from there; when it
    has ended well the folder is removed."""
    nodes: int = Field(default=1, ge=1, le=256)
    """Nodes, each a reader and a gradient process."""
    epochs: int = Field(default=1, ge=1)
    """How often the corpus is read."""
    tokens: int | None = Field(default=None, ge=1)
    """Stop after this many tokens; otherwise all are read."""
    dated: WindowUnit | None = None
    """Cut a snapshot for each window of this unit, learning in time order in one pass."""
    sources: int = Field(default=MOST_SOURCES, ge=0, le=1_000)
    """Dated: how many sources (`source` of a line) are told apart, those with the most text; the
    others count as one. 0: all text is of one source, whatever lines say."""
    unit_lines: int = Field(default=1, ge=1, le=1_000_000)
    """Dated: how many consecutive lines without an author count as one text when changes are
    tested. 1: each line. 100 where lines are sentences of longer texts."""
    vocabulary: Literal["counted", "growing"] | None = None
    """counted: count the words first, so that each has its row from the start; growing: a single
    pass, a word gets its row once it was read min_count times. Left out, words are counted where
    that is quick: plain text cut at blanks."""
    model: ModelConfig = ModelConfig()
    text: TextConfig = TextConfig(tokenizer="whitespace", mask=False)
    node: NodeConfig = NodeConfig()
    """Blocks and replay: of it what was set, the rest is as `node_config` says."""
    server: ServerConfig = ServerConfig()
    """The server: of it what was set. Its tables live on the CPU where no device was set."""
    stream: StreamConfig = StreamConfig()
    sync: SyncConfig = SyncConfig()
    exchange: ExchangeConfig = ExchangeConfig()
    topology: TopologyConfig = TopologyConfig()
    timeout: float = Field(default=24 * 3600.0, gt=0)
    """Seconds after which the training is given up."""

    @model_validator(mode="before")
    @classmethod
    def _sectioned(cls, given: dict[str, Any]) -> dict[str, Any]:
        values = in_sections(given)
        values["server"] = {"device": "cpu", **values["server"]}
        return values

    @model_validator(mode="after")
    def _consistent(self) -> TrainRequest:
        POLICIES.traits(self.sync.policy).check(self.model, self.exchange)
        return self

    @property
    def node_config(self) -> NodeConfig:
        """The settings of every node.

        Left to itself: no replay, as the corpus is read `epochs` times, and blocks of 25,000
        tokens, smaller from the third node on: what nodes learn at the same time they learn from
        the same rows, and together that should not be more than 50,000 tokens.
        """
        block = max(2_000, min(25_000, 50_000 // self.nodes))
        return NodeConfig(**{"replay_ratio": 0.0, "block_tokens": block, **set_of(self.node)})

    @property
    def calendar(self) -> Calendar | None:
        """Of the windows that are cut; None: of all there is one snapshot."""
        return None if self.dated is None else Calendar(self.dated, self.server.calendar.zone)

    @property
    def lines_are_dated(self) -> bool:
        """Whether the corpus is JSONL: lines with a date and a text."""
        return str(self.corpus).removesuffix(".xz").endswith(".jsonl")

    @property
    def counts_first(self) -> bool:
        """Whether a counting pass comes before the training.

        Left to itself it does for plain text that is read as a whole; where a morpheme analyser
        or a JSON reader would do its work twice, the vocabulary grows. SPPMI-SVD always does.
        """
        if self.model.model in COUNT_MODELS:
            return True
        if self.vocabulary is not None:
            return self.vocabulary == "counted"
        whole = self.dated is None and self.tokens is None
        return whole and self.quickly_counted

    @property
    def quickly_counted(self) -> bool:
        """Whether Arrow can count the words without the text pipeline."""
        plain = as_written(self.text.tokenizer) and not self.text.mask
        return plain and not self.lines_are_dated


def in_sections(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a request is given, with each of `WITHOUT_SECTION` in its section."""
    values = dict(given)
    for section, names in WITHOUT_SECTION.items():
        settings = values.get(section, {})
        short = {name: values.pop(name) for name in names if name in values}
        values[section] = {
            **(set_of(settings) if isinstance(settings, Config) else settings),
            **{name: value for name, value in short.items() if value is not None},
        }
    return values


def set_of(config: Config) -> dict[str, Any]:
    """The fields of a configuration that somebody set, with their values."""
    return {name: getattr(config, name) for name in config.model_fields_set}


@dataclass(frozen=True)
class TrainProgress:
    """How far a training is: share (0 to 1, None when unknown), words/s, loss of late.

    replayed  tokens learnt again so far
    """

    share: float | None
    tokens: int
    words_per_second: float
    loss: float | None
    replayed: int = 0


Progress = Callable[[TrainProgress], None]


@dataclass(frozen=True)
class TrainResult:
    """What a training did; docs/concepts/training.md explains each figure.

    tokens_trained    tokens learnt that have a row (before subsampling), all epochs
    seconds           from the call to the last snapshot
    train_seconds     from the first pull of rows to the last push
    replayed_tokens   tokens learnt again from replay memories; counted nowhere else
    resumed_tokens    of these, tokens that interrupted calls before this one had learnt
    loss              mean over all pairs, in nats; NaN when there was none
    vocabulary        words with a row
    left_out          reasons by file and line of texts that could not be prepared, the latest of
                      each node; given_up: how many there were
    late_documents    documents of a window that was cut before they were learnt
    peak_memory       most resident bytes by process
    bytes_pushed, bytes_pulled   between nodes and server
    bytes_per_entry   bytes of rows and ids for each number that the nodes moved; None: none moved
    bytes_by_part     between nodes and primary, by kind of message, direction and part
    sync              how nodes were kept in step: policy, changes, drops, staleness, rounds
    transports        rows and bytes by transport (server, all-reduce, within a host), density
    snapshots         one, or one a window for a dated corpus
    unreadable        why the last of them cannot be read yet, and what is missing; None: it can
    """

    tokens_trained: int
    seconds: float
    train_seconds: float
    words_per_second: float
    loss: float
    vocabulary: int
    documents: int
    late_documents: int
    bytes_pushed: int
    bytes_pulled: int
    peak_memory: dict[str, int]
    nodes: dict[str, dict[str, Any]]
    transports: dict[str, Any] = field(default_factory=dict)
    snapshots: list[SnapshotRef] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    given_up: int = 0
    unreadable: str | None = None
    resumed_tokens: int = 0
    replayed_tokens: int = 0
    bytes_per_entry: float | None = None
    bytes_by_part: dict[str, int] = field(default_factory=dict)
    sync: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form, with the bytes sent per token that this call learnt."""
        tokens = max(self.tokens_trained - self.resumed_tokens, 1)
        values = {
            **vars(self),
            "loss": self.loss if math.isfinite(self.loss) else None,
            "bytes_sent_per_token": (self.bytes_pushed + self.bytes_pulled) / tokens,
            "bytes_pushed_per_token": self.bytes_pushed / tokens,
            "bytes_pulled_per_token": self.bytes_pulled / tokens,
            "snapshots": [ref.to_dict() for ref in self.snapshots],
        }
        del values["bytes_pushed"], values["bytes_pulled"]
        return values
