"""What can go wrong on the way from crawler to gradients.

StreamError
├── QueueFull     no room within the timeout: the other side reads too slowly
├── QueueEmpty    nothing arrived within the timeout
├── QueueClosed   the queue was closed in good order and everything in it was taken
└── PeerLost      the other process ended without closing the queue
"""

from __future__ import annotations

from embedding.kernel.errors import YeoronError


class StreamError(YeoronError):
    """Base of what the stream room raises while running."""


class QueueFull(StreamError):  # noqa: N818 - named as in the standard library's queue
    """The block did not fit into the queue within the timeout; it was not sent."""


class QueueEmpty(StreamError):  # noqa: N818 - named as in the standard library's queue
    """No block arrived within the timeout."""


class QueueClosed(StreamError):  # noqa: N818 - a state more than an error
    """The queue was closed in good order: nothing more can be put, or will come."""


class PeerLost(StreamError):  # noqa: N818 - a state more than an error
    """The process at the other end ended without closing the queue."""
