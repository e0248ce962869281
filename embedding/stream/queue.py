"""The bounded queue between the crawler process and the gradient process.

    crawler, gradient = BlockQueue.pair(capacity=200_000)
    process = context.Process(target=crawl, args=(crawler,))
    process.start()
    crawler.release()          # this process's copy; otherwise a dead crawler goes unnoticed
    block = gradient.get(timeout=5.0)
    gradient.acknowledge(block.keys)

Blocks flow from the crawler's end to the gradient's, keys back, reports both ways. What crosses the
pipe is a frame: one byte of `FrameKind`, eight of a number, and bytes: Arrow IPC of blocks, JSON of
keys and reports, never a pickle.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import socket
import struct
import threading
from collections import deque
from collections.abc import Sequence
from enum import Enum, IntEnum, auto
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any

from embedding.kernel.errors import ConfigError, InputError, PlatformError, YeoronError
from embedding.kernel.records import BlockLike, TokenBlock


class StreamError(YeoronError):
    """Base of what can go wrong on the way from crawler to gradients."""


class QueueFull(StreamError):  # noqa: N818 - named as in the standard library's queue
    """The other side reads too slowly: no room for a block in time; it was not sent."""


class QueueEmpty(StreamError):  # noqa: N818 - named as in the standard library's queue
    """No block arrived within the timeout."""


class QueueClosed(StreamError):  # noqa: N818 - a state more than an error
    """The queue was closed in good order: nothing more can be put, or will come."""


class PeerLost(StreamError):  # noqa: N818 - a state more than an error
    """The process at the other end ended without closing the queue."""


_HEAD = struct.Struct("<Bq")


class FrameKind(IntEnum):
    """What a frame carries; the number is tokens for BLOCK and CREDIT, else 0."""

    BLOCK = 1
    CREDIT = 2
    KEYS = 3
    REPORT = 4
    CLOSE = 5


def cost(tokens: int) -> int:
    """What a block counts for: its tokens, at least one so that empty blocks are bounded too."""
    return max(1, tokens)


class Credit:
    """What the sending side knows: tokens under way, and whether another block may go.

    Credit-based flow control (Kung, Blackwell and Chapman 1994, "Credit-Based Flow Control for ATM
    Networks"): the sender may have at most `capacity` tokens under way; the receiver returns a
    block's tokens as credit when the block is taken, not when it arrives.

    Invariant: `depth` ≤ `capacity`, except that one block larger than the capacity may be alone
    under way (otherwise it could never be sent).
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ConfigError(
                f"queue capacity must be at least 1 token, got {capacity}; nothing could pass."
            )
        self.capacity = capacity
        self.depth = 0

    def admits(self, tokens: int) -> bool:
        return self.depth == 0 or self.depth + cost(tokens) <= self.capacity

    def sent(self, tokens: int) -> None:
        self.depth += cost(tokens)

    def returned(self, tokens: int) -> None:
        """The receiver took blocks worth `tokens`."""
        if not 0 <= tokens <= self.depth:
            raise InputError(
                f"queue: {tokens} tokens of credit came back, but {self.depth} are under way."
            )
        self.depth -= tokens


class Phase(Enum):
    """State of the connection as one end sees it; CLOSED: by the other end."""

    OPEN = auto()
    CLOSED = auto()
    LOST = auto()


class BlockQueue:
    """One end of the queue; made in pairs by `pair`, usable by several threads.

    The crawler's end puts blocks and reads acknowledged keys; the gradient's end gets blocks and
    acknowledges keys. Both see `depth` (tokens put and not yet taken) and `capacity` (tokens).
    A block larger than the capacity passes only while the queue is empty.

    Callers never touch the pipe: they append frames to a list that one thread sends, and wait on a
    condition that another, which reads, wakes. So every timeout holds even when the other process
    is stopped. The threads start at first use, because an end must travel to its process before it
    is used.
    """

    def __init__(self, connection: Connection, capacity: int, *, sending: bool) -> None:
        self.capacity = capacity
        self.sending = sending
        self._connection = connection
        self._changed = threading.Condition()
        self._phase = Phase.OPEN
        self._closed_here = False
        self._credit = Credit(capacity)
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._keys: list[str] = []
        self._report: dict[str, Any] | None = None
        self._outgoing: deque[bytes] = deque()
        self._writing = False
        self._stopped = False
        self._broken = False
        self._threads: tuple[threading.Thread, ...] = ()

    @classmethod
    def pair(
        cls, capacity: int, context: BaseContext | None = None
    ) -> tuple[BlockQueue, BlockQueue]:
        """(crawler's end, gradient's end) of a new queue of `capacity` tokens.

        Each end can be handed to a process started with the spawn method (`Process(args=(end,))`),
        after which the starter calls `release` on it.
        """
        ours, theirs = (context or multiprocessing.get_context("spawn")).Pipe(duplex=True)
        return cls(ours, capacity, sending=True), cls(theirs, capacity, sending=False)

    @property
    def depth(self) -> int:
        """Tokens that were put and not yet taken, as this end knows it."""
        self._start()
        if self.sending:
            return self._credit.depth
        with self._changed:
            return sum(cost(tokens) for tokens, _ in self._waiting)

    def put(self, block: BlockLike, timeout: float | None = None) -> None:
        """Send a block; waits for room (back-pressure), without limit when `timeout` is None.

        Raises QueueFull (not sent), QueueClosed, or PeerLost.
        """
        self._require(sending=True, action="put")
        payload = block.to_buffer()
        tokens = block.n_tokens
        with self._changed:
            ready = self._changed.wait_for(
                lambda: self._phase is not Phase.OPEN or self._credit.admits(tokens), timeout
            )
            self._refuse_ended("put")
            if not ready:
                raise QueueFull(
                    f"queue: no room for {tokens} tokens within {timeout} s "
                    f"({self.depth} of {self.capacity} tokens wait to be learnt)."
                )
            self._credit.sent(tokens)
            self._send(FrameKind.BLOCK, tokens, memoryview(payload))

    def get(self, timeout: float | None = None) -> TokenBlock:
        """Take the oldest block; waits without limit when `timeout` is None.

        Raises QueueEmpty, or, once everything that arrived was taken, QueueClosed or PeerLost.
        """
        self._require(sending=False, action="get")
        with self._changed:
            self._changed.wait_for(
                lambda: self._phase is not Phase.OPEN or bool(self._waiting), timeout
            )
            if not self._waiting:
                self._refuse_ended("get")
                raise QueueEmpty(f"queue: no block arrived within {timeout} s.")
            tokens, payload = self._waiting.popleft()
            if self._phase is Phase.OPEN:
                self._send(FrameKind.CREDIT, cost(tokens))
        return TokenBlock.from_buffer(payload)

    def acknowledge(self, keys: Sequence[str]) -> None:
        """Gradient's end: tell the crawler that these documents are learnt; never waits."""
        self._require(sending=False, action="acknowledge")
        with self._changed:
            self._refuse_ended("acknowledge")
            self._send(FrameKind.KEYS, 0, json.dumps(list(keys)).encode())

    def acknowledged(self, timeout: float | None = 0.0) -> list[str]:
        """Crawler's end: keys learnt since the last call; waits up to `timeout` for the first.

        Empty when none came in time. Raises PeerLost or QueueClosed once nothing more can come.
        """
        self._require(sending=True, action="acknowledged")
        with self._changed:
            self._changed.wait_for(
                lambda: self._phase is not Phase.OPEN or bool(self._keys), timeout
            )
            keys, self._keys = self._keys, []
            if not keys:
                self._refuse_ended("acknowledged")
            return keys

    def send_report(self, report: dict[str, Any]) -> None:
        """Send JSON-safe counters to the other end, which keeps the latest; never waits."""
        try:
            payload = json.dumps(report).encode()
        except (TypeError, ValueError) as error:
            raise InputError(f"queue: a report must be JSON-safe: {error}.") from error
        self._start()
        with self._changed:
            self._refuse_ended("send_report")
            self._send(FrameKind.REPORT, 0, payload)

    def latest_report(self) -> dict[str, Any] | None:
        """The newest report of the other end, None before the first."""
        self._start()
        with self._changed:
            return self._report

    @property
    def alive(self) -> bool:
        """Whether the other end can still be reached."""
        self._start()
        return self._phase is Phase.OPEN and not self._closed_here

    @property
    def lost(self) -> bool:
        """Whether the other process ended without closing the queue."""
        return self._phase is Phase.LOST

    def close(self, timeout: float = 5.0) -> None:
        """Say goodbye and let go; blocks already put stay takeable. Waits up to `timeout`."""
        if self._closed_here:
            return
        self._start()
        with self._changed:
            self._closed_here = True
            if self._phase is Phase.OPEN:
                self._send(FrameKind.CLOSE)
            self._changed.wait_for(lambda: not (self._outgoing or self._writing), timeout)
            self._stopped = True
            self._changed.notify_all()
        _shut(self._connection)
        for thread in self._threads:
            thread.join(timeout=5.0)
        self._connection.close()

    def release(self) -> None:
        """Drop this process's copy of an end that was handed to another process."""
        if self._threads:
            raise PlatformError("queue: this end is in use here and cannot be released; close it.")
        self._closed_here = self._stopped = True
        self._connection.close()

    def __enter__(self) -> BlockQueue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> tuple[Connection, int, bool]:
        if self._threads or self._stopped:
            raise PlatformError(
                "queue: this end is in use or closed here and cannot move to another process; "
                "hand it to Process(args=…) before the first put or get."
            )
        return self._connection, self.capacity, self.sending

    def __setstate__(self, state: tuple[Connection, int, bool]) -> None:
        connection, capacity, sending = state
        self.__init__(connection, capacity, sending=sending)  # type: ignore[misc]

    def _start(self) -> None:
        with self._changed:
            if self._threads or self._stopped:
                return
            self._threads = (
                threading.Thread(target=self._read, daemon=True),
                threading.Thread(target=self._write, daemon=True),
            )
            for thread in self._threads:
                thread.start()

    def _require(self, *, sending: bool, action: str) -> None:
        if self.sending is not sending:
            whose = "crawler's" if sending else "gradient's"
            raise ConfigError(f"queue: {action} belongs to the {whose} end, called on the other.")
        self._start()

    def _refuse_ended(self, action: str) -> None:
        """Raise when nothing can pass any more; the caller holds the condition."""
        if self._closed_here:
            raise QueueClosed(f"queue: {action} on an end that was closed here.")
        if self._phase is Phase.CLOSED:
            raise QueueClosed(f"queue: {action} after the other process closed the queue.")
        if self._phase is Phase.LOST:
            raise PeerLost(
                f"queue: {action} failed because the other process ended without closing the queue."
            )

    def _send(self, kind: FrameKind, number: int = 0, payload: bytes | memoryview = b"") -> None:
        """Hand a frame to the writer; never blocks. The caller holds the condition."""
        if not (self._broken or self._stopped):
            self._outgoing.append(b"".join((_HEAD.pack(kind, number), payload)))
            self._changed.notify_all()

    def _read(self) -> None:
        """Take frames until the pipe ends or the other end sends something that is no frame."""
        try:
            while True:
                frame = self._connection.recv_bytes()
                kind, number = _HEAD.unpack_from(frame)
                with self._changed:
                    self._take(FrameKind(kind), number, frame[_HEAD.size :])
                    self._changed.notify_all()
        except (EOFError, OSError, ValueError, struct.error, InputError):
            with self._changed:
                self._abandon()
                if self._phase is Phase.OPEN:
                    self._phase = Phase.LOST

    def _take(self, kind: FrameKind, number: int, payload: bytes) -> None:
        """One frame arrived; the caller holds the condition."""
        if kind is FrameKind.BLOCK:
            self._waiting.append((number, payload))
        elif kind is FrameKind.CREDIT:
            self._credit.returned(number)
        elif kind is FrameKind.KEYS:
            self._keys.extend(json.loads(payload))
        elif kind is FrameKind.REPORT:
            self._report = json.loads(payload)
        else:
            self._phase = Phase.CLOSED

    def _write(self) -> None:
        """Send what was handed over, in order."""
        while True:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._outgoing or self._stopped or self._broken)
                if self._stopped or self._broken:
                    return
                frame = self._outgoing.popleft()
                self._writing = True
            try:
                self._connection.send_bytes(frame)
            except (OSError, ValueError):
                # The reader says when the other side is gone, after all that it sent was read.
                with self._changed:
                    self._abandon()
                return

    def _abandon(self) -> None:
        """Nothing more can be sent; the caller holds the condition."""
        self._broken, self._writing = True, False
        self._outgoing.clear()
        self._changed.notify_all()


def _shut(connection: Connection) -> None:
    """Wake both threads: a shutdown ends a read that only closing would leave hanging."""
    try:
        handle = socket.socket(fileno=os.dup(connection.fileno()))
    except OSError:
        return
    with handle, contextlib.suppress(OSError):
        handle.shutdown(socket.SHUT_RDWR)
