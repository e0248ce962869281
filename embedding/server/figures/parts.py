"""Where each byte goes: messages weighed part by part, as they were received and sent."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

_MOST_KINDS = 500
_WIDE = ("str", "zstr")


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

    def received(
        self, header: Mapping[str, Any], batch: pa.RecordBatch, metadata: int, size: int
    ) -> None:
        """A request that was decoded; `metadata`: bytes of its header, `size`: of its batch."""
        self._asked = str(header.get("op"))[:20]
        self._weigh(f"{self._asked} in", header, batch, metadata, size)

    def sent(self, header: bytes, batch: pa.RecordBatch) -> None:
        """The answer to the request received last."""
        self._weigh(f"{self._asked} out", json.loads(header), batch, len(header), batch.nbytes)

    def add(self, other: Parts) -> None:
        """Take over another's figures, and leave it with none."""
        with self._lock:
            for kind, size in other._bytes.items():
                if kind in self._bytes or len(self._bytes) < _MOST_KINDS:
                    self._bytes[kind] += size
        other._bytes.clear()

    def _weigh(
        self, way: str, header: Mapping[str, Any], batch: pa.RecordBatch, metadata: int, size: int
    ) -> None:
        sizes = [_content(column) for column in batch.columns]
        self._bytes[f"{way} frame"] += size - sum(sizes)
        self._bytes[f"{way} header"] += metadata
        at = 0
        for name, dtype, _ in header.get("parts", []):
            wide = 2 if dtype in _WIDE else 1
            self._bytes[f"{way} {name[:30]}"] += sum(sizes[at : at + wide])
            at += wide


def _content(column: pa.Array) -> int:
    """Bytes of a slot without its offsets; it was decoded, so they are in order."""
    data = column.buffers()[2]
    return 0 if data is None else int(data.size)
