"""The bounded queue between the crawler process and the gradient process.

    crawler, gradient = BlockQueue.pair(capacity=200_000)
    process = context.Process(target=crawl, args=(crawler,))
    process.start()
    crawler.release()          # this process's copy; otherwise a dead crawler goes unnoticed
    block = gradient.get(timeout=5.0)
    gradient.acknowledge(block.keys)

Blocks flow from the crawler's end to the gradient's, keys back, reports both ways.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Sequence
from enum import Enum, auto
from multiprocessing.context import BaseContext
from typing import Any

from embedding.kernel.errors import ConfigError, InputError
from embedding.kernel.records import TokenBlock
from embedding.stream import frames
from embedding.stream.faults import PeerLost, QueueClosed, QueueEmpty, QueueFull
from embedding.stream.frames import FrameKind
from embedding.stream.link import Link


def cost(tokens: int) -> int:
    """What a block counts for: its tokens, at least one so that empty blocks are bounded too."""
    return max(1, tokens)


class SenderState:
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

    def credited(self, tokens: int) -> None:
        """The receiver took blocks worth `tokens`."""
        if not 0 <= tokens <= self.depth:
            raise InputError(
                f"queue: {tokens} tokens of credit came back, but {self.depth} are under way."
            )
        self.depth -= tokens


class ReceiverState:
    """What the receiving side knows: blocks that arrived and were not taken, first in first out."""

    def __init__(self) -> None:
        self.depth = 0
        self._waiting: deque[tuple[bytes, int]] = deque()

    def arrived(self, payload: bytes, tokens: int) -> None:
        """A block's bytes arrived."""
        self._waiting.append((payload, cost(tokens)))
        self.depth += cost(tokens)

    def take(self) -> tuple[bytes, int] | None:
        """The oldest block and the credit to return for it; None when nothing waits."""
        if not self._waiting:
            return None
        payload, credit = self._waiting.popleft()
        self.depth -= credit
        return payload, credit


class Phase(Enum):
    """State of the connection as one end sees it."""

    OPEN = auto()
    CLOSED = auto()
    LOST = auto()


class BlockQueue:
    """One end of the queue; made in pairs by `pair`, usable by several threads.

    The crawler's end puts blocks and reads acknowledged keys; the gradient's end gets blocks and
    acknowledges keys. Both see `depth` (tokens put and not yet taken) and `capacity` (tokens).
    A block larger than the capacity passes only while the queue is empty.
    """

    def __init__(self, link: Link, capacity: int, *, sending: bool) -> None:
        self.capacity = capacity
        self.sending = sending
        self._sender = SenderState(capacity)
        self._receiver = ReceiverState()
        self._phase = Phase.OPEN
        self._closed_here = False
        self._keys: list[str] = []
        self._report: dict[str, Any] | None = None
        self._link = link

    @classmethod
    def pair(
        cls, capacity: int, context: BaseContext | None = None
    ) -> tuple[BlockQueue, BlockQueue]:
        """(crawler's end, gradient's end) of a new queue of `capacity` tokens.

        Each end can be handed to a process started with the spawn method (`Process(args=(end,))`),
        after which the starter calls `release` on it.
        """
        SenderState(capacity)
        ours, theirs = (context or multiprocessing.get_context("spawn")).Pipe(duplex=True)
        return cls(Link(ours), capacity, sending=True), cls(Link(theirs), capacity, sending=False)

    @property
    def depth(self) -> int:
        """Tokens that were put and not yet taken, as this end knows it."""
        self._start()
        return self._sender.depth if self.sending else self._receiver.depth

    def put(self, block: TokenBlock, timeout: float | None = None) -> None:
        """Send a block; waits for room (back-pressure), without limit when `timeout` is None.

        Raises QueueFull (not sent), QueueClosed, or PeerLost.
        """
        self._require(sending=True, action="put")
        payload = block.to_buffer()
        tokens = block.n_tokens
        with self._link.changed:
            ready = self._link.changed.wait_for(
                lambda: self._phase is not Phase.OPEN or self._sender.admits(tokens), timeout
            )
            self._refuse_ended("put")
            if not ready:
                raise QueueFull(
                    f"queue: no room for {tokens} tokens within {timeout} s "
                    f"({self.depth} of {self.capacity} tokens wait to be learnt)."
                )
            self._sender.sent(tokens)
            self._link.send(FrameKind.BLOCK, tokens, memoryview(payload))

    def get(self, timeout: float | None = None) -> TokenBlock:
        """Take the oldest block; waits without limit when `timeout` is None.

        Raises QueueEmpty, or, once everything that arrived was taken, QueueClosed or PeerLost.
        """
        self._require(sending=False, action="get")
        with self._link.changed:
            self._link.changed.wait_for(
                lambda: self._phase is not Phase.OPEN or self._receiver.depth > 0, timeout
            )
            taken = self._receiver.take()
            if taken is None:
                self._refuse_ended("get")
                raise QueueEmpty(f"queue: no block arrived within {timeout} s.")
            payload, credit = taken
            if self._phase is Phase.OPEN:
                self._link.send(FrameKind.CREDIT, credit)
        return TokenBlock.from_buffer(payload)

    def acknowledge(self, keys: Sequence[str]) -> None:
        """Gradient's end: tell the crawler that these documents are learnt; never waits."""
        self._require(sending=False, action="acknowledge")
        with self._link.changed:
            self._refuse_ended("acknowledge")
            self._link.send(FrameKind.KEYS, 0, frames.encode_json(list(keys)))

    def acknowledged(self, timeout: float | None = 0.0) -> list[str]:
        """Crawler's end: keys learnt since the last call; waits up to `timeout` for the first.

        Empty when none came in time. Raises PeerLost or QueueClosed once nothing more can come.
        """
        self._require(sending=True, action="acknowledged")
        with self._link.changed:
            self._link.changed.wait_for(
                lambda: self._phase is not Phase.OPEN or bool(self._keys), timeout
            )
            keys, self._keys = self._keys, []
            if not keys:
                self._refuse_ended("acknowledged")
            return keys

    def send_report(self, report: dict[str, Any]) -> None:
        """Send JSON-safe counters to the other end, which keeps the latest; never waits."""
        payload = frames.encode_json(report)
        self._start()
        with self._link.changed:
            self._refuse_ended("send_report")
            self._link.send(FrameKind.REPORT, 0, payload)

    def latest_report(self) -> dict[str, Any] | None:
        """The newest report of the other end, None before the first."""
        self._start()
        with self._link.changed:
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
        with self._link.changed:
            self._closed_here = True
            if self._phase is Phase.OPEN:
                self._link.send(FrameKind.CLOSE)
        self._link.flush(timeout)
        self._link.stop()

    def release(self) -> None:
        """Drop this process's copy of an end that was handed to another process."""
        self._closed_here = True
        self._link.drop()

    def __enter__(self) -> BlockQueue:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        self._link.start(self._handle, self._lost)

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

    def _handle(self, kind: FrameKind, number: int, payload: bytes) -> None:
        """One frame arrived (called by the reader under the condition)."""
        if kind is FrameKind.BLOCK:
            self._receiver.arrived(payload, number)
        elif kind is FrameKind.CREDIT:
            self._sender.credited(number)
        elif kind is FrameKind.KEYS:
            self._keys.extend(frames.decode_keys(payload))
        elif kind is FrameKind.REPORT:
            self._report = frames.decode_report(payload)
        else:
            self._phase = Phase.CLOSED

    def _lost(self) -> None:
        """The pipe ended (called by a thread of the link under the condition)."""
        if self._phase is Phase.OPEN:
            self._phase = Phase.LOST
