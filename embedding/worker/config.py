"""Settings of a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from embedding.kernel.config import Config, extended

Weight = Annotated[float, Field(gt=0, le=100)]


@extended("node")
class NodeConfig(Config):
    """How a node fills its blocks and how much of the past it repeats."""

    INTERNAL: ClassVar = frozenset(("report_seconds", "batch_documents", "batch_seconds"))

    REMOVED: ClassVar[Mapping[str, str]] = {
        "trainer": "leave it out, and write --device cuda --sync hogwild to train on a GPU",
        "overlap": "leave it out: it is auto",
    }

    block_tokens: int = Field(default=16_384, ge=64, le=5_000_000)
    """Fresh tokens a block holds at most; one block is one tick of the node's clock."""

    look_ahead_tokens: int = Field(default=200_000, ge=0)
    """Tokens of a corpus that are read before a block is learnt, so that a word that comes
    `min_count` times in them has its row from its first mention on. Only those of the block's own
    window, and only where the vocabulary grows. 0 looks at the block alone, as a stream does."""

    flush_seconds: float = Field(default=1.0, gt=0, le=3600)
    """A block is learnt after this many seconds even when it is not full."""

    batch_documents: int = Field(default=32, ge=1, le=10_000)
    """Documents of one source that are tokenised together."""

    batch_seconds: float = Field(default=0.4, gt=0, le=60)
    """A batch is tokenised after this many seconds even when it is not full, and sooner when a text
    process has nothing to do."""

    text_processes: int = Field(default=1, ge=1, le=64)
    """Processes that mask and tokenise. Each holds a morpheme analyser of its own: some 450 MB."""

    replay_ratio: float = Field(default=3.0, ge=0, le=100)
    """Replayed tokens learnt for each fresh one."""

    rehearsal_passes: float = Field(default=30.0, ge=0, le=1_000)
    """Most times that a window's text is learnt again from the replay memory, as long as held-out
    text is predicted better. That many in the first window. Later windows get fewer: by their part
    of all that was read, a third at least. The last window of a corpus gets half as many, over all
    that is remembered and at most 15 million words. 0: none."""

    rehearsal_share: float = Field(default=0.5, ge=0, le=1)
    """Stream: part of a core's time that a node may spend on rehearsing. Fresh text goes first.
    0 rehearses nothing."""

    held_out: float = Field(default=0.02, ge=0, le=0.5)
    """Part of the sentences that is never trained on. Their loss says when a window has been
    rehearsed enough. 0: a window is rehearsed as often as its budget says."""

    past_tokens: int = Field(default=2_000_000, ge=0)
    """Most tokens of the last windows that are remembered (16 bytes each), to be read again when a
    window closes: what moved is judged by both in one space (docs/concepts/changes.md).
    0 remembers none."""

    past_windows: int = Field(default=6, ge=1, le=1_000)
    """Windows that are remembered so, beside the one that is being read."""

    source_weights: dict[str, Weight] = Field(default_factory=dict)
    """Factor of the learning rate for the text of a source, 1 for one that is not named
    (`yeoron trends bias` proposes them)."""

    report_seconds: float = Field(default=1.0, gt=0, le=60)
    """Seconds between two reports of a node's counters to the server."""

    restarts: int = Field(default=20, ge=0, le=1_000_000)
    """How often a node starts a dead crawler or gradient process again before it gives up, without
    ten healthy minutes between. A failure that repeats with the same reason ends it after three."""

    # Constants: a file that sets one is refused.
    # For several nodes that read a corpus: the next block of a node is at most this part of what
    # the node has read so far, and at least 1,500 tokens. So all see early what was learnt first. 0
    # begins with whole blocks.
    growth: ClassVar = 0.1
    # Seconds of processor time that preparing a text may take, for each million characters begun. A
    # text that takes a tenth of it among others is tried again alone; one that takes it all is left
    # out and named.
    text_timeout: ClassVar = 300.0
    # The same, where it is more, while the model is young: until 250,000 tokens were learnt from,
    # by all nodes together, and from then on in inverse proportion to them. Nothing where
    # replay_ratio is 0.
    initial_replay_ratio: ClassVar = 6.0
    # Word pairs of each document that are scored before the document is learnt from; fewer where a
    # tick holds many documents: 2,048 pairs of a tick are scored at most.
    score_pairs: ClassVar = 24
    # Blocks between two looks at the server's vocabulary and counts.
    vocabulary_blocks: ClassVar = 4
    # How quickly a row comes to rest under updates, for adding up what several nodes moved it by
    # (see `worker/learning/combining.py`); 0 adds all up.
    curvature: ClassVar = 0.03
