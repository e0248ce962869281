"""The three steps of a tick, overlapped: the next block is prepared while one is trained.

    prepare  t+1 ────────┐ prepare t+2 ──────┐
    train    t ───────┐  │ train t+1 ──────┐ │
    push              └─ push t            └─ push t+1

The kernel holds no lock and no GIL, so preparing (coding, pulling) costs it nothing but its share
of the memory's bandwidth. A block that was prepared before the last push lacks that push's own
delta: training adds it (read-my-writes).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Literal

from embedding.kernel.errors import RefusedError
from embedding.kernel.records import TokenBlock
from embedding.stream.queue import BlockQueue, PeerLost, QueueClosed, QueueEmpty
from embedding.worker.learning.convergence import Order
from embedding.worker.learning.learner import Learner
from embedding.worker.learning.ticks import Close, Tick
from embedding.worker.spec import NodeSpec

_Blocks = Sequence[TokenBlock] | Order | Close
"""Fresh blocks of a tick, what to learn again, or a window that is over."""
Next = Tick | RefusedError | None


When = Literal["now", "ahead", "late"]


class Pipeline:
    """Runs a learner over blocks until there are none.

    blocks    what one tick learns, tick by tick; it may wait
    learnt    called after each push, or what the server said when it refused a block; by the thread
              that trains, with no step under way
    when      asked before each tick when to pull the rows of the next block: `now`, after this
              one was pushed, with nothing prepared before; `ahead` of that push; or `late`, after
              the push, but with everything else prepared
    in_order  each push waits for the preparation of the next block, so that the same blocks give
              the same bytes; without it a push leaves as soon as its block is trained
    """

    def __init__(
        self,
        learner: Learner,
        blocks: Iterator[_Blocks],
        learnt: Callable[[Tick | RefusedError], None],
        *,
        when: Callable[[], When],
        in_order: bool,
    ) -> None:
        self._learner = learner
        self._blocks = blocks
        self._learnt = learnt
        self._when = when
        self._in_order = in_order

    def run(self) -> None:
        with ThreadPoolExecutor(1, thread_name_prefix="prepare") as pool:
            prepared = self._prepare("now")
            while prepared is not None:
                if isinstance(prepared, RefusedError):
                    self._learnt(prepared)
                    prepared = self._prepare("now")
                    continue
                when = self._when()
                # A window is read by the words as they stand: the next one's would come between.
                if when == "now" or prepared.close is not None:
                    self._finish(prepared, None)
                    prepared = self._prepare("now")
                    continue
                following = pool.submit(self._prepare, when)
                self._finish(prepared, following)
                prepared = following.result()

    def _prepare(self, when: When) -> Next:
        """The next block, or why the server refused it; None when there is none."""
        for blocks in self._blocks:
            try:
                if isinstance(blocks, Order):
                    return self._learner.prepare((), when=when, order=blocks)
                if isinstance(blocks, Close):
                    return self._learner.prepare((), when=when, close=blocks)
                return self._learner.prepare(blocks, when=when)
            except RefusedError as error:
                # Not told here: whoever hears of it sets the node back, and a push is under way.
                return error
        return None

    def _finish(self, tick: Tick, following: Future[Next] | None) -> None:
        try:
            self._learner.training.train(tick)
            if following is not None and self._in_order:
                following.exception()
            self._learner.training.push(tick)
            self._learnt(tick)
        except RefusedError as error:
            self._learnt(error)


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
