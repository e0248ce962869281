"""What a gradient process learns next: the blocks of one tick, as they come from its queue."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from embedding.kernel.records import TokenBlock
from embedding.stream.faults import PeerLost, QueueClosed, QueueEmpty
from embedding.stream.queue import BlockQueue
from embedding.worker.spec import NodeSpec

_LOOK_SECONDS = 0.25
"""How long a wait for a block goes on before the wish to stop is looked at."""
_SPARE_SECONDS = 0.02
"""How long a wait for a block goes on before what is remembered may be learnt again."""


def ticks(
    spec: NodeSpec,
    queue: BlockQueue,
    stop: threading.Event,
    enough: Callable[[], int],
    spare: Callable[[], float] = lambda: math.inf,
) -> Iterator[list[TokenBlock] | None]:
    """Blocks for one tick: until `enough` tokens are there or `flush_seconds` have passed.

    An empty list when none came in that time. Ends when the queue does, or when told to stop.
    None: the queue is empty for now, and there is something else to do: `spare` says in how many
    seconds.
    The reader of a corpus has cut ticks already, the same in every run; each ends with the block
    that has a place, and one that is not whole is left.
    """
    corpus = spec.corpus is not None
    limit = math.inf if corpus else spec.node.flush_seconds
    while not stop.is_set():
        wanted = 0 if corpus else enough()
        blocks: list[TokenBlock] = []
        tokens = 0
        deadline = time.monotonic() + limit
        while (tokens < wanted or (corpus and not _whole(blocks))) and not stop.is_set():
            wait = deadline - time.monotonic()
            if wait <= 0:
                break
            other = math.inf if corpus else spare()
            try:
                block = queue.get(min(wait, max(other, _SPARE_SECONDS), _LOOK_SECONDS))
            except QueueEmpty:
                if other <= 0:
                    yield None
                continue
            except (PeerLost, QueueClosed):
                if _whole(blocks) or (blocks and not corpus):
                    yield blocks
                return
            blocks.append(block)
            tokens += block.n_tokens
        yield blocks if _whole(blocks) or not corpus else []


def _whole(blocks: Sequence[TokenBlock]) -> bool:
    """Whether these are a tick of a corpus."""
    return bool(blocks and blocks[-1].offset)
