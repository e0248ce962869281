"""The gradient process of a node: take blocks, learn, push, acknowledge."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import psutil

from embedding.errors import RefusedError, UnavailableError
from embedding.exchange.client import ParameterClient
from embedding.models.base import make_trainer
from embedding.records import TokenBlock, WindowUnit
from embedding.stream.faults import PeerLost, QueueClosed, QueueEmpty
from embedding.stream.queue import BlockQueue
from embedding.stream.replay import make_replay
from embedding.worker.learner import Learner
from embedding.worker.lifetime import end_with_parent, stop_on_signals
from embedding.worker.spec import NodeSpec

logger = logging.getLogger(__name__)


@dataclass
class Counters:
    """What a gradient process did so far; shown in the server's status."""

    blocks: int = 0
    documents: int = 0
    fresh_tokens: int = 0
    trained_tokens: int = 0
    refused: int = 0
    learn_seconds: float = 0.0
    loss: float = 0.0
    last_error: str = ""


class GradientProcess:
    """Joins queue, learner and client; a second thread reports."""

    def __init__(self, spec: NodeSpec, queue: BlockQueue, stop: threading.Event) -> None:
        self.spec = spec
        self.queue = queue
        self.stop = stop
        self.counters = Counters()
        self.client = ParameterClient(
            spec.server,
            node=spec.name,
            config=spec.exchange,
            config_digest=spec.model.digest(),
        )
        welcome = self.client.hello()
        self._epoch = welcome.epoch
        self._idle = False
        replay = make_replay(spec.stream, spec.model.seed) if spec.node.replay_ratio else None
        self.learner = Learner(
            self.client,
            make_trainer(spec.model),
            replay,
            node=spec.name,
            model=spec.model,
            config=spec.node,
            unit=WindowUnit(welcome.window_unit),
        )
        self.learner.clock = welcome.clock
        self.learner.sequence = welcome.sequence

    def run(self) -> None:
        """Until told to stop, or until the crawler has ended and everything it sent is learnt."""
        reporter = threading.Thread(target=self._report_forever, daemon=True)
        reporter.start()
        try:
            for blocks in self._gather():
                self._learn(blocks)
        finally:
            self.stop.set()
            reporter.join(timeout=5)
            self.client.close()

    def _gather(self) -> Iterator[list[TokenBlock]]:
        """Blocks for one tick: until `block_tokens` are there or `flush_seconds` have passed."""
        while not self.stop.is_set():
            blocks: list[TokenBlock] = []
            tokens = 0
            deadline = time.monotonic() + self.spec.node.flush_seconds
            while tokens < self.spec.node.block_tokens and not self.stop.is_set():
                wait = deadline - time.monotonic()
                if wait <= 0:
                    break
                try:
                    block = self.queue.get(wait)
                except QueueEmpty:
                    break
                except (PeerLost, QueueClosed):
                    if blocks:
                        yield blocks
                    return
                blocks.append(block)
                tokens += block.n_tokens
            if blocks:
                yield blocks
            else:
                self._rest()

    def _learn(self, blocks: list[TokenBlock]) -> None:
        started = time.monotonic()
        self._idle = False
        try:
            learnt = self.learner.learn(blocks)
        except RefusedError as error:
            # The documents stay unacknowledged: the frontier gives them out again later.
            self._refused(error)
            return
        except UnavailableError as error:
            self.counters.last_error = str(error)
            raise
        self._follow_restart()
        # A crawler that is gone finds its documents unacknowledged and fetches them again; a
        # reader that has come to its end waits for no answer.
        with contextlib.suppress(PeerLost, QueueClosed):
            self.queue.acknowledge(learnt.keys)
        counters = self.counters
        counters.blocks += 1
        counters.documents += len(learnt.keys)
        counters.fresh_tokens += learnt.fresh_tokens
        counters.trained_tokens += learnt.trained_tokens
        counters.learn_seconds += time.monotonic() - started
        counters.loss = learnt.loss_sum / learnt.pairs if learnt.pairs else counters.loss

    def _refused(self, error: RefusedError) -> None:
        logger.warning("%s: the server refused a block: %s", self.spec.name, error)
        self.counters.refused += 1
        self.counters.last_error = str(error)
        welcome = self.client.hello()
        self.learner.restart(welcome.clock, welcome.sequence)

    def _follow_restart(self) -> None:
        """A restarted server may have lost the words it admitted last."""
        welcome = self.client.welcome
        if welcome is not None and welcome.epoch != self._epoch:
            self._epoch = welcome.epoch
            self.learner.lexicon.refresh(self.client, whole=True)

    def _rest(self) -> None:
        """Nothing to learn: no barrier should wait for this node."""
        if not self._idle:
            self.client.idle()
            self._idle = True

    def _report_forever(self) -> None:
        process = psutil.Process()
        while not self.stop.wait(self.spec.node.report_seconds):
            crawl = self.queue.latest_report() or {}
            try:
                self.client.report(
                    {
                        **crawl,
                        **asdict(self.counters),
                        "queue": self.queue.depth,
                        "queue_capacity": self.queue.capacity,
                        "rss_mb": round(process.memory_info().rss / 2**20, 1),
                    }
                )
            except (UnavailableError, RefusedError) as error:
                self.counters.last_error = str(error)


def learn_forever(spec_json: str, queue: BlockQueue) -> None:
    """Target of the gradient process."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    end_with_parent()
    stop = stop_on_signals()
    spec = NodeSpec.model_validate_json(spec_json)
    try:
        GradientProcess(spec, queue, stop).run()
    finally:
        queue.close()
