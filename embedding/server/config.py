"""Configuration of the parameter server and of how nodes are kept in step."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from embedding.kernel.config import Config, ZoneName, extended
from embedding.kernel.errors import ConfigError
from embedding.kernel.ports import is_loopback
from embedding.kernel.records import Calendar, WindowUnit
from embedding.kernel.zones import zone_of


@extended("sync")
class SyncConfig(Config):
    """How far nodes may run ahead of each other."""

    policy: str = "ssp"
    """When nodes see what others learnt: {policies}, or a policy that another package adds
    (docs/concepts/synchronisation.md)."""

    staleness: int = Field(default=4, ge=0)
    """ssp: how many clocks the fastest node may be ahead of the slowest."""

    combine: Literal["sum", "mean"] = "sum"
    """Where nodes wait for each clock: whether its deltas are added up (each node pushes the share
    that ADR 6 gives it) or averaged."""

    n_push: int = Field(default=1, ge=1, le=1024)
    """asp: a node pushes every n_push blocks (Dean 2012)."""

    n_fetch: int = Field(default=1, ge=1, le=1024)
    """asp: a node pulls every n_fetch blocks (Dean 2012)."""

    balance: bool = True
    """Where nodes wait for each other: the block size of each follows its speed."""

    liveness_timeout_s: float = Field(default=60.0, gt=0)
    """A node that has been silent for this many seconds counts as gone: nobody waits for it."""


@extended("server")
class ServerConfig(Config):
    """One parameter server."""

    INTERNAL: ClassVar = frozenset(
        (
            "in_step",
            "config_digest",
            "corpus_digest",
            "initial_rows",
            "usage_words",
            "max_message_bytes",
        )
    )

    REMOVED: ClassVar[Mapping[str, str]] = {
        "mirror_bytes": "leave it out: the memory for rows of one node is 256 MiB",
        "max_waiting_words": "leave it out: the users of 500,000 words are remembered",
        "pair_sample": "leave it out: 5,000 scored pairs are kept",
        "allowed_lateness_s": "leave it out: a window closes with the watermark",
        "shards_dir": "leave it out: shards keep their checkpoints in state_dir",
    }

    host: str = "127.0.0.1"
    """Address to listen on; other than loopback only with token_file, tls_cert and tls_key."""

    port: int = Field(default=0, ge=0, le=65535)
    """Port of the exchange (Arrow Flight); 0 takes a free one."""

    http_port: int = Field(default=0, ge=0, le=65535)
    """Port of /health, /metrics and /status; 0 takes a free one."""

    token_file: Path | None = None
    """File with the secret that nodes must show. `yeoron serve` on loopback makes one where none is
    given, in the home."""

    operator_token_file: Path | None = None
    """File with the secret of those who may also change the training (`rollback`, `configure`);
    None: the other secret is enough."""

    tls_cert: Path | None = None
    """PEM certificate chain of the exchange."""

    tls_key: Path | None = None
    """PEM private key of the certificate."""

    tls_client_ca: Path | None = None
    """PEM certificate of the authority whose certificates clients must show; None asks for none."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the tables live; auto takes a GPU when there is one. With cuda and the policy hogwild
    nodes train there."""

    threads: int = Field(default=1, ge=1)
    """Threads that a product of matrices may take in a server's own process."""

    state_dir: Path | None = None
    """Folder of checkpoints; None keeps none, and then a push counts as durable at once."""

    checkpoint_every_s: float = Field(default=30.0, gt=0)
    """Seconds between checkpoints while pushes arrive."""

    snapshots: str | None = None
    """Address of the snapshot store (a folder or an fsspec URI); None refuses to cut."""

    window: WindowUnit = WindowUnit.DAY
    """Unit in which event time is cut: hour, day, week or month."""

    timezone: ZoneName = "UTC"
    """Time zone (IANA) in which windows and days begin, and times are shown. What has windows
    keeps its zone."""

    cut: Literal["manual", "watermark"] = "manual"
    """watermark: a window is cut as soon as every live source has passed its end."""

    convergence_seconds: float = Field(default=60.0, ge=0, le=86_400)
    """A complete window waits at most this long for its nodes to rehearse it to the end. Then
    it is cut all the same, and its snapshot says so. 0: it never waits. A corpus is rehearsed
    before its next window is read."""

    source_idle_s: float = Field(default=300.0, gt=0)
    """A source that has brought nothing for this long, and has nothing pending, no longer holds
    the watermark back."""

    in_step: bool = False
    """One reader reads all sources in order of time, as with a corpus file. How far it has come
    holds for every source, so no window waits for a silent one."""

    min_count: int = Field(default=5, ge=1)
    """How often a word must have been read (a decayed count) before it gets a row."""

    min_authors: int = Field(default=3, ge=1, le=100)
    """A crawled word gets a row only when this many authors used it, besides min_count: words
    of fewer authors are mostly names of people. All texts of a source whose author is unknown
    count as one author (`text.unknown_authors`). Words of a corpus file need no authors. 1: no
    such rule."""

    min_sources: int = Field(default=2, ge=1, le=100)
    """A crawled word gets a row only when this many sources used it, or all of them where fewer
    are read. 1: no such rule."""

    max_words: int = Field(default=1_000_000, ge=1)
    """Most words that have a row; beyond that the rarest and oldest lose theirs."""

    max_candidates: int = Field(default=4_000_000, ge=1)
    """Most words counted that have no row yet; beyond it the rarest are forgotten."""

    half_life_tokens: float | None = Field(default=50_000_000.0, gt=0)
    """Tokens after which a count has lost half its weight; None never forgets."""

    rare_mentions: int = Field(default=200, ge=0, le=10_000)
    """Until a word has been read this often (decayed count), snapshots and live tables show a
    mixture of its row and of a vector inferred from all its contexts at once
    (docs/concepts/training.md; skip-gram only); what is trained does not change. 0
    shows rows as gradient steps left them."""

    rare_words: int = Field(default=100_000, ge=1)
    """Most words for which contexts are added up, the latest read; each takes some 120 bytes, and
    12 for each of at most 1,024 contexts."""

    usage: bool = True
    """Whether nodes say how words were used when a window closes, for those who compare windows and
    sources (docs/concepts/changes.md; not with fasttext). Without it snapshots say where words
    stand, but not how sure a change is."""

    usage_words: int = Field(default=100_000, ge=1)
    """Most words whose use is kept so, summed over sources: for the window, the one before it, and
    all older ones as many. Each takes a float16 row for each of 16 groups of documents that has
    it: most words are in few."""

    optimizer: Literal["sum", "adagrad"] = "sum"
    """sum adds deltas (Downpour); adagrad shrinks those of rows that have already moved far."""

    tls_ca: Path | None = None
    """PEM file of the authority that signed tls_cert, by which this process knows those that serve
    the same model; None takes tls_cert itself."""

    initial_rows: int = Field(default=16_384, ge=1)
    """Rows that the tables have at first; they are doubled when full."""

    max_message_bytes: int = Field(default=256 * 1024 * 1024, ge=64 * 1024)
    """Largest message that is taken; a larger one is refused."""

    gold: Path | None = None
    """Word similarity file measured at each snapshot; None measures none."""

    config_digest: str = ""
    """Digest that nodes must have; empty takes that of the first node that has one."""

    corpus_digest: str = ""
    """SHA-256 of the corpus file that is read, kept in manifests; empty: a stream."""

    # Constants: a file that sets one is refused.
    keep_checkpoints: ClassVar = 2  # How many complete checkpoints are kept.
    # adagrad: how far a row moves (root mean square) before its deltas shrink.
    adagrad_rate: ClassVar = 1.0
    # Most frequent words whose co-occurrences are sampled for the PIP loss; 0 measures none.
    pip_words: ClassVar = 500
    http_host: ClassVar = "127.0.0.1"  # Loopback address of /health, /metrics and /status.

    @property
    def calendar(self) -> Calendar:
        return Calendar(self.window, zone_of(self.timezone))

    def check_timezone(self, held: str, where: str) -> None:
        """ConfigError where the windows of `where` begin in another time zone than these."""
        if held != self.timezone:
            raise ConfigError(
                f"server.timezone {self.timezone}: the windows of {where} begin at midnight of "
                f"{held}, and windows of two time zones overlap; set server.timezone to {held}, "
                "or begin in a new folder (paths.home) and read the text again."
            )

    @model_validator(mode="after")
    def _listens_safely(self) -> ServerConfig:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key are given together or not at all")
        if self.operator_token_file is not None and self.token_file is None:
            raise ValueError("operator_token_file is accepted with token_file only")
        if self.tls_client_ca is not None and self.tls_cert is None:
            raise ValueError("tls_client_ca is accepted with tls_cert and tls_key only")
        if not is_loopback(self.host) and (self.token_file is None or self.tls_cert is None):
            raise ValueError(
                f"host {self.host} is not loopback: anybody could write to the model; it is "
                "accepted with token_file, tls_cert and tls_key"
            )
        return self
