"""Flow control of the queue as two pure state machines: no clock, no pipe, no thread.

Credit-based flow control (Kung, Blackwell and Chapman 1994, "Credit-Based Flow Control for ATM
Networks"): the sender may have at most `capacity` tokens under way; the receiver returns a block's
tokens as credit when the block is taken, not when it arrives.
"""

from __future__ import annotations

from collections import deque

from embedding.kernel.errors import ConfigError, InputError


def cost(tokens: int) -> int:
    """What a block counts for: its tokens, at least one so that empty blocks are bounded too."""
    return max(1, tokens)


class SenderState:
    """What the sending side knows: tokens under way, and whether another block may go.

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
