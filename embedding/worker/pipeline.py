"""The three steps of a tick, overlapped: the next block is prepared while one is trained.

    prepare  t+1 ────────┐ prepare t+2 ──────┐
    train    t ───────┐  │ train t+1 ──────┐ │
    push              └─ push t            └─ push t+1

The kernel holds no lock and no GIL, so preparing (coding, pulling) costs it nothing but its share
of the memory's bandwidth. A block that was prepared before the last push lacks that push's own
delta: `Learner.train` adds it (read-my-writes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from embedding.errors import RefusedError
from embedding.records import TokenBlock
from embedding.worker.learner import Learner, Learnt, Prepared

Blocks = Sequence[TokenBlock]


class Pipeline:
    """Runs a learner over blocks until there are none.

    blocks    what one tick learns, tick by tick; it may wait
    learnt    told after each push; None when the server refused the block
    overlap   asked before each tick: may the next block be prepared before this one is pushed?
              (bsp forbids it: a reader must see every delta of the clock before, its own too)
    in_order  each push waits for the preparation of the next block, so that the same blocks give
              the same bytes; without it a push leaves as soon as its block is trained
    """

    def __init__(
        self,
        learner: Learner,
        blocks: Iterator[Blocks],
        learnt: Callable[[Learnt | RefusedError], None],
        *,
        overlap: Callable[[], bool],
        in_order: bool,
    ) -> None:
        self._learner = learner
        self._blocks = blocks
        self._learnt = learnt
        self._overlap = overlap
        self._in_order = in_order

    def run(self) -> None:
        """Until the blocks end."""
        with ThreadPoolExecutor(1, thread_name_prefix="prepare") as pool:
            prepared = self._prepare(ahead=False)
            while prepared is not None:
                if not self._overlap():
                    self._finish(prepared, None)
                    prepared = self._prepare(ahead=False)
                    continue
                following = pool.submit(self._prepare, ahead=True)
                self._finish(prepared, following)
                prepared = following.result()

    def _prepare(self, *, ahead: bool) -> Prepared | None:
        """The next block that the server takes; None when there is none."""
        for blocks in self._blocks:
            try:
                return self._learner.prepare(blocks, ahead=ahead)
            except RefusedError as error:
                self._learnt(error)
        return None

    def _finish(self, prepared: Prepared, following: Future[Prepared | None] | None) -> None:
        try:
            trained = self._learner.train(prepared)
            if following is not None and self._in_order:
                following.exception()
            self._learnt(self._learner.push(trained))
        except RefusedError as error:
            self._learnt(error)
