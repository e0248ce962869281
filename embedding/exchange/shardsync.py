"""How a client keeps shards in step with their server, where rows lie on shards."""

from __future__ import annotations

from typing import Protocol

from embedding.exchange.protocol import Welcome


class ShardSync(Protocol):
    """What a client does so that no shard lacks a push that the server knows.

    Under the session's lock where the stream is used.
    """

    def bring(self, welcome: Welcome) -> None:
        """Make whole what lies elsewhere, before the server hears of the pushes again."""
        ...

    def tend(self) -> None:
        """Look whether anything that was pushed is lost elsewhere, and send it again."""
        ...

    def safe(self, durable: int) -> int:
        """The last push that is in a checkpoint everywhere; `durable`, what the server says."""
        ...

    def wait_durable(self) -> None:
        """The client is about to close: wait a moment until what it pushed is safe."""
        ...

    def close(self) -> None:
        """Close what is open; the session is closed."""
        ...


class NoShards:
    """Rows lie with the server, which sees to itself."""

    def bring(self, welcome: Welcome) -> None:
        """Nothing lies elsewhere."""

    def tend(self) -> None:
        """There is nothing to look at."""

    def safe(self, durable: int) -> int:
        """As the server says."""
        return durable

    def wait_durable(self) -> None:
        """What was acknowledged is sent again by whoever comes next, or is safe."""

    def close(self) -> None:
        """Nothing is open but the session."""
