"""Figures for the status page and the metrics: rates, lags, staleness."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from embedding.exchange.protocol import Push
from embedding.exchange.wire import Message
from embedding.server.parts import Content, Erasure, Moment, Part, PushArrival, Saved

_MOST_KINDS = 500


class Parts:
    """Bytes by kind of message, direction and part, such as `push in in.packed`.

    Each stream weighs its own messages and adds them to those of all; `add` and `describe` are for
    any thread. `header` is the JSON beside the arrays, `frame` what Arrow puts around them.
    """

    def __init__(self) -> None:
        self._bytes: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._asked = ""

    def describe(self) -> dict[str, int]:
        """As the status has it, the largest first."""
        with self._lock:
            return dict(self._bytes.most_common())

    def received(self, message: Message, batch: pa.RecordBatch, metadata: int, size: int) -> None:
        """A request that was decoded; `metadata`: bytes of its header, `size`: of its batch."""
        self._asked = str(message.header.get("op"))[:20]
        self._weigh(f"{self._asked} in", message, batch, metadata, size)

    def sent(self, message: Message, batch: pa.RecordBatch, metadata: int) -> None:
        self._weigh(f"{self._asked} out", message, batch, metadata, batch.nbytes)

    def add(self, other: Parts) -> None:
        """Take over another's figures, and leave it with none."""
        with self._lock:
            for kind, size in other._bytes.items():
                if kind in self._bytes or len(self._bytes) < _MOST_KINDS:
                    self._bytes[kind] += size
        other._bytes.clear()

    def _weigh(
        self, way: str, message: Message, batch: pa.RecordBatch, metadata: int, size: int
    ) -> None:
        """Words take two slots, and come behind the arrays."""
        names = [*message.arrays, *(name for name in message.texts for _ in range(2))]
        self._bytes[f"{way} header"] += metadata
        for at, name in enumerate(names):
            # Without its offsets; it was decoded, so they are in order.
            data = batch.column(at).buffers()[2]
            part = 0 if data is None else int(data.size)
            self._bytes[f"{way} {name[:30]}"] += part
            size -= part
        self._bytes[f"{way} frame"] += size


class Rate:
    """Events a second over a sliding window of seconds."""

    def __init__(self, over_s: float = 10.0) -> None:
        self.over_s = over_s
        self._events: deque[tuple[float, float]] = deque()
        self._sum = 0.0
        self._began: float | None = None

    def add(self, n: float, now: float) -> None:
        self._began = now if self._began is None else self._began
        self._events.append((now, n))
        self._sum += n
        self._expire(now)

    def value(self, now: float) -> float:
        """Events a second."""
        self._expire(now)
        if self._began is None:
            return 0.0
        return self._sum / max(min(self.over_s, now - self._began), 1.0)

    def _expire(self, now: float) -> None:
        while self._events and self._events[0][0] < now - self.over_s:
            self._sum -= self._events.popleft()[1]


class Reservoir:
    """A uniform sample of bounded size (algorithm R, Vitter 1985)."""

    def __init__(self, size: int = 2048, seed: int = 0) -> None:
        self.size = size
        self._seen = 0
        self._values: list[float] = []
        self._random = random.Random(seed)  # noqa: S311 - a sample, not a secret

    def add(self, values: Iterable[float]) -> None:
        for value in values:
            self._seen += 1
            if len(self._values) < self.size:
                self._values.append(value)
                continue
            at = self._random.randrange(self._seen)
            if at < self.size:
                self._values[at] = value

    def quantile(self, q: float) -> float | None:
        """The q-quantile, None when there is nothing."""
        return float(np.quantile(self._values, q)) if self._values else None


SHOWN_TOTALS = (
    *("tokens", "replayed_tokens", "documents", "pushes", "duplicates", "refused"),
    *("dropped_rows", "dropped_counts"),
)
"""Totals that the status has."""
SAVED_TOTALS = (*SHOWN_TOTALS, "dropped_pushes", "dropped_tokens", "loss_sum", "pairs")
"""Totals that a checkpoint has."""


@dataclass
class SourceMeter:
    """One source's documents, tokens and lags."""

    documents: int = 0
    tokens: int = 0
    late: int = 0
    lags: Reservoir = field(default_factory=Reservoir)
    words: Rate = field(default_factory=Rate)


@dataclass
class Meters(Part):
    """Everything counted since the server started; `SAVED_TOTALS` since its first start."""

    pushes: int = 0
    duplicates: int = 0
    refused: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    dropped_pushes: int = 0
    replayed_tokens: int = 0
    dropped_tokens: int = 0
    dropped_rows: int = 0
    dropped_counts: int = 0
    tokens: int = 0
    documents: int = 0
    loss_sum: float = 0.0
    pairs: int = 0
    rows_in: int = 0
    rows_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    rows_spared: int = 0
    delta_entries: int = 0
    delta_bytes: int = 0
    parts: Parts = field(default_factory=Parts)
    staleness: Counter[int] = field(default_factory=Counter)
    words: Rate = field(default_factory=Rate)
    node_words: dict[str, Rate] = field(default_factory=dict)
    sources: dict[str, SourceMeter] = field(default_factory=dict)
    lags: Reservoir = field(default_factory=Reservoir)
    checkpoint_pause_s: float = 0.0
    checkpoints: int = 0
    checkpoint_failures: int = 0
    checkpoint_at: float | None = None
    cut_pause_s: float = 0.0
    rates: dict[str, Rate] = field(
        default_factory=lambda: {name: Rate() for name in ("rows_in", "rows_out")}
    )
    started: float = field(default_factory=time.monotonic)
    _sampled: dict[str, int] = field(default_factory=dict)
    _read_at: dict[str, int] = field(default_factory=dict)

    def save(self) -> Saved:
        facts = {
            "totals": {name: getattr(self, name) for name in SAVED_TOTALS},
            "sources": {name: [m.documents, m.tokens, m.late] for name, m in self.sources.items()},
        }
        return Saved(facts)

    def load(self, content: Content) -> None:
        for name in SAVED_TOTALS:
            setattr(self, name, content.facts["totals"].get(name, 0))
        for name, (documents, tokens, late) in content.facts["sources"].items():
            meter = self.source(name)
            meter.documents, meter.tokens, meter.late = documents, tokens, late

    def forget(self, erasure: Erasure) -> None:
        self.sources.pop(erasure.source or "", None)

    def describe(self, at: Moment) -> dict[str, Any]:
        now = at.now
        return {
            "uptime_s": now - self.started,
            **{name: getattr(self, name) for name in SHOWN_TOTALS},
            "loss": self.loss_sum / self.pairs if self.pairs else None,
            "words_per_second": self.words.value(now),
            "bytes": {
                "in": self.bytes_in,
                "out": self.bytes_out,
                "by_part": self.parts.describe(),
            },
            "lag": {"p50_s": self.lags.quantile(0.5), "p95_s": self.lags.quantile(0.95)},
            "pause_ms": {
                "checkpoint": self.checkpoint_pause_s * 1000,
                "cut": self.cut_pause_s * 1000,
            },
            "rows_per_second": {
                "in": self.rates["rows_in"].value(now),
                "out": self.rates["rows_out"].value(now),
            },
            "checkpoint_age_s": None if self.checkpoint_at is None else now - self.checkpoint_at,
            "sync": {
                "dropped_pushes": self.dropped_pushes,
                "dropped_tokens": self.dropped_tokens,
            },
        }

    def source(self, name: str) -> SourceMeter:
        return self.sources.setdefault(name, SourceMeter())

    def read(self, node: str, rows: int) -> None:
        """A node pulled so many rows."""
        self.rows_out += rows
        self._read_at[node] = self.pushes

    def moved(self, push: Push, size: int) -> None:
        """A push's rows were taken; they came in `size` bytes."""
        self.staleness[self.pushes - self._read_at.get(push.node, self.pushes)] += 1
        self.delta_entries += push.entries or sum(delta.values.size for delta in push.deltas)
        self.delta_bytes += size

    def bytes_per_entry(self, elsewhere: int = 0) -> float | None:
        """Bytes of rows and ids for each number that nodes moved; None before the first.

        elsewhere  bytes of rows that went to other processes than the server
        """
        return (self.delta_bytes + elsewhere) / self.delta_entries if self.delta_entries else None

    def learnt(self, arrival: PushArrival, now: float, closed: Container[int]) -> None:
        push = arrival.push
        self.pushes += 1
        self.replayed_tokens += push.replayed
        self.tokens += push.tokens
        self.loss_sum += push.loss_sum
        self.pairs += push.pairs
        self.words.add(push.tokens, now)
        self.node_words.setdefault(push.node, Rate()).add(push.tokens, now)

    def tick(self, now: float) -> None:
        """Work out rates from the totals."""
        for name, rate in self.rates.items():
            total = getattr(self, name)
            rate.add(total - self._sampled.get(name, 0), now)
            self._sampled[name] = total

    def refuse(self, kind: str) -> None:
        """A message was refused; `kind` as `RefusedError` has it."""
        self.refused += 1
        self.refusals[kind] += 1

    def checkpointed(self, pause_s: float, now: float) -> None:
        """A checkpoint is complete; it held training up for `pause_s` at most."""
        self.checkpoint_pause_s, self.checkpoint_at = pause_s, now
        self.checkpoints += 1
