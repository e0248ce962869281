"""How a node reaches the parameter server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from embedding.exchange.compression.traits import COMPRESSIONS
from embedding.kernel.config import Config, Location, extended
from embedding.models.config import ModelConfig

_Compression = Annotated[str, AfterValidator(COMPRESSIONS.check)]
"""Name of a registered way of writing deltas."""


@extended("exchange")
class ExchangeConfig(Config):
    """Client side of the exchange between a node and the parameter server."""

    INTERNAL: ClassVar = frozenset(("max_backoff_s", "max_message_bytes"))

    location: Location | None = None
    """Where nodes reach the server: grpc://HOST:PORT, or grpc+tls://HOST:PORT with TLS. None takes
    the address that the server's settings name, which serves nodes on the same machine."""

    token_file: Path | None = None
    """File with the shared secret that the server asks for; None when it asks for none."""

    operator_token_file: Path | None = None
    """File with the secret that a server asks for where its training is changed (`yeoron rollback`,
    `yeoron live policy`); None takes token_file. Nodes do not need it."""

    tls_ca: Path | None = None
    """PEM file of the authority that signed the server's certificate; needed for `grpc+tls://`."""

    tls_cert: Path | None = None
    """PEM certificate that this client shows, for a server that asks for one (tls_client_ca)."""

    tls_key: Path | None = None
    """PEM private key of that certificate."""

    rows: Literal["float16", "float32"] = "float16"
    """How pulled rows travel. The server adds up in float32: a delta is taken against the rounded
    row that the node got, so that rounding does not accumulate."""

    compression: _Compression = "fp16"
    """How pushed deltas travel: none (float32), fp16 (float16), threshold (multiples of a step,
    Strom 2015), onebit (a bit an entry, Seide 2014) or topk (the entries that moved farthest,
    Aji 2017), or a way that another package adds (docs/extending.md). What the last three leave out
    is fed back into later pushes (docs/concepts/wire.md)."""

    connect_timeout_s: float = Field(default=60.0, gt=0)
    """Seconds for which a client keeps trying to reach a server that is away."""

    max_backoff_s: float = Field(default=5.0, gt=0)
    """Longest pause between two tries to connect."""

    max_message_bytes: int = Field(default=256 * 1024 * 1024, ge=64 * 1024)
    """Largest message that is sent; the server has a limit of its own."""

    # Constants: a file that sets one is refused.
    # Memory of a node for what compression keeps back; the rows used longest ago are sent whole
    # when it is full.
    residual_bytes: ClassVar = 256 * 1024 * 1024
    # How long one request may take before the stream is given up and opened again.
    request_timeout_s: ClassVar = 60.0
    pull_timeout_s: ClassVar = 600.0  # How long a pull may wait for the policy to let it read.
    backoff_s: ClassVar = 0.1  # First pause between two tries to connect; doubled each time.
    # Pushes kept until they are in a checkpoint; a push beyond that asks for one and waits.
    max_unconfirmed: ClassVar = 512
    max_unconfirmed_bytes: ClassVar = 1024 * 1024 * 1024  # Memory that those pushes may take.


_SetupName = Annotated[str, Field(min_length=1, max_length=40)]


class Setup(Config):
    """What trainings are compared by, as far as a node knows it and the server does not."""

    model: ModelConfig
    """The model."""
    compression: _SetupName
    """How pushed deltas travel (ExchangeConfig.compression)."""
    topology: _SetupName
    """How rows travel (TopologyConfig.name)."""
    tokenizer: _SetupName
    """How text becomes words (TextConfig.tokenizer)."""
    nodes: int = Field(ge=1, le=1_000_000)
    """Nodes that share the work."""
