"""Documents that were pushed to the server and that the frontier has not marked as done.

Every push carries their digests as its offset, which the server keeps with the push's number. The
process that goes on after this one, here or on another node, asks the server for it: what is in it
need not be read again, though the frontier has it as fetched only. A document leaves the list when
the crawler says that the frontier has marked it as done.
"""

from __future__ import annotations

import base64
import binascii
import threading
from collections import deque
from collections.abc import Sequence

import numpy as np

from embedding.crawl.addresses import key_digest
from embedding.kernel.errors import InputError


def encode_offset(digests: Sequence[int]) -> str:
    """Digests as base64 of little-endian int64."""
    return base64.b64encode(np.asarray(digests, dtype="<i8").tobytes()).decode()


def decode_offset(offset: str) -> frozenset[int]:
    """Inverse of `encode_offset`; InputError for anything else."""
    try:
        raw = base64.b64decode(offset, validate=True)
        return frozenset(np.frombuffer(raw, dtype="<i8").tolist())
    except (binascii.Error, ValueError) as error:
        raise InputError(f"{offset[:40]!r} is not the offset of a crawler.") from error


class Unacknowledged:
    """Of one gradient process. Safe for several threads.

    offset  what the server had from the processes before this one
    """

    def __init__(self, offset: str = "") -> None:
        self._lock = threading.Lock()
        self._inherited = sorted(decode_offset(offset))
        self._digests: deque[int] = deque()
        self._pushes: deque[tuple[int, int]] = deque()
        self._pushed = 0
        self._durable = 0
        self._acknowledged = 0

    def __len__(self) -> int:
        return len(self._digests)

    def offset(self, keys: Sequence[str]) -> str:
        """What goes with a push of the documents `keys`."""
        with self._lock:
            fresh = [key_digest(key) for key in keys]
            return encode_offset([*self._inherited, *self._digests, *fresh])

    def pushed(self, sequence: int, keys: Sequence[str]) -> None:
        """The server has taken that push."""
        with self._lock:
            self._digests.extend(key_digest(key) for key in keys)
            self._pushed += len(keys)
            self._pushes.append((sequence, self._pushed))

    @property
    def waits(self) -> bool:
        """Whether some push with documents is not known to be in a checkpoint."""
        return self._durable < self._pushed

    def confirmed(self, sequence: int) -> int:
        """A checkpoint holds the pushes up to `sequence`; how many documents are in one so far."""
        with self._lock:
            while self._pushes and self._pushes[0][0] <= sequence:
                self._durable = self._pushes.popleft()[1]
            return self._durable

    def acknowledge(self, documents: int) -> None:
        """The frontier has the first `documents` of all that were pushed as done."""
        with self._lock:
            for _ in range(min(documents, self._durable) - self._acknowledged):
                self._digests.popleft()
            self._acknowledged = max(self._acknowledged, min(documents, self._durable))

    def forget_inherited(self) -> None:
        """Nobody needs to know any longer what the processes before this one had pushed."""
        with self._lock:
            self._inherited = []
