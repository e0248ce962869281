"""The gradient process of a node: take blocks, learn, push, acknowledge."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from embedding.exchange.protocol import Welcome
from embedding.exchange.shards.client import connect
from embedding.exchange.shards.columns import ColumnsClient
from embedding.kernel.errors import (
    BehindError,
    ExchangeError,
    RefusedError,
    ReplacedError,
    UnavailableError,
)
from embedding.kernel.records import TokenBlock, WindowUnit
from embedding.kernel.stopping import stop_on_signals
from embedding.models.making import make_trainer
from embedding.snapshots.readability import reference_losses
from embedding.stream.faults import PeerLost, QueueClosed
from embedding.stream.queue import BlockQueue
from embedding.stream.replay import make_replay
from embedding.worker.batch import BatchWork
from embedding.worker.columns import ColumnLearner
from embedding.worker.convergence import Convergence, Order
from embedding.worker.counting import window_of
from embedding.worker.evidence import EvidenceKeeper
from embedding.worker.foresight import Foresight
from embedding.worker.heldout import HeldOut
from embedding.worker.hogwild import HogwildLearner, MappedTables
from embedding.worker.intake import ticks
from embedding.worker.learner import Learner
from embedding.worker.lifetime import end_with_parent, peak_memory
from embedding.worker.listening import Listener
from embedding.worker.outstanding import Outstanding
from embedding.worker.paced import PacedLearner
from embedding.worker.past import PastTexts
from embedding.worker.pipeline import Pipeline, When
from embedding.worker.routing import make_route
from embedding.worker.securing import secure
from embedding.worker.spec import NodeSpec
from embedding.worker.ticks import Close, Learnt
from embedding.worker.usage import UsageReader
from embedding.worker.warming import warm, warm_exchange

logger = logging.getLogger(__name__)

LEAST_TOKENS = 64
"""No block is asked to be smaller."""
_SETTLE_SECONDS = 0.3
_MANY_DOCUMENTS = 4096
"""Documents in no checkpoint, above which one is asked for."""


@dataclass
class Counters:
    """What a gradient process did so far; shown in the server's status."""

    blocks: int = 0
    documents: int = 0
    fresh_tokens: int = 0
    replayed_tokens: int = 0
    trained_tokens: int = 0
    refused: int = 0
    loss: float = 0.0
    progress: float = 0.0
    last_error: str = ""


class GradientProcess:
    """Joins queue, learner and client; a second thread reports."""

    def __init__(self, spec: NodeSpec, queue: BlockQueue, stop: threading.Event) -> None:
        self.spec = spec
        self.queue = queue
        self.stop = stop
        self.counters = Counters()
        self.client = connect(
            spec.server,
            node=spec.name,
            config=spec.exchange,
            config_digest=spec.model.digest(),
            stop=stop,
            life=spec.life,
        )
        welcome = self.client.welcome or self.client.hello()
        self._epoch = welcome.epoch
        self.route = make_route(spec, self.client, welcome, stop)
        self._ahead = welcome.ahead and spec.ring is None
        self._idle = False
        self._warm = False
        self._share = 1.0
        self.convergence = _convergence(spec, welcome)
        self._converging = threading.Lock()
        self._rehearsed: dict[str, Any] = {}
        remembers = spec.node.replay_ratio or self.convergence.passes
        replay = make_replay(spec.stream, spec.model.seed) if remembers else None
        self._asked: deque[float] = deque()
        self._to_close: int | None = None
        self._closed: int | None = None
        self._over = self._rest_until = 0.0
        self.learner = _kind_of(welcome)(
            self.route,
            make_trainer(spec.model, torch=spec.node.trainer == "torch"),
            replay,
            node=spec.name,
            model=spec.model,
            config=spec.node,
            unit=WindowUnit(welcome.window_unit),
        )
        shares = spec.corpus is not None
        work = BatchWork(self.client, spec.model, spec.stream, spec.name, shares, stop)
        self.learner.batch = work
        if isinstance(self.learner, HogwildLearner) and welcome.shared is not None:
            self.learner.tables = MappedTables.attach(welcome.shared, welcome.dim)
        if isinstance(self.learner, ColumnLearner) and isinstance(self.client, ColumnsClient):
            self.learner.columns = self.client
        self.learner.begin(
            welcome.clock,
            welcome.sequence,
            welcome.min_count,
            welcome.young_mentions,
            welcome.place,
        )
        if self.convergence.passes and spec.node.held_out:
            model = spec.model
            held = HeldOut(spec.node.held_out, model.window, model.negative, model.seed)
            self.learner.held_out = held
        # Rows that nodes sum up among themselves cannot be asked for by one of them alone.
        past = PastTexts.of(spec.node, self.learner.unit) if spec.ring is None else None
        self.learner.usage = UsageReader.of(spec.model, welcome.usage, past)
        if spec.evidence is not None:
            self.learner.lexicon.evidence = EvidenceKeeper(spec.evidence, spec.name)
        self._listen(welcome)
        self._look_ahead(welcome)
        self.learner.pace = welcome.pace
        self.learner.active = 1 if spec.ring is None else spec.ring.size
        self._place = welcome.place
        if spec.corpus is not None:
            self._tell_reader()
        else:
            self.learner.outstanding = Outstanding(welcome.place)

    def run(self) -> None:
        """Until told to stop, or until the crawler has ended and everything it sent is learnt."""
        self._report()  # a snapshot says what its nodes trained with: told before the first push
        reporter = threading.Thread(target=self._report_forever, daemon=True)
        reporter.start()
        if self.learner.outstanding is not None:
            self._tell_crawler()
        if self.spec.node.trainer == "numba" or self.spec.corpus is None:
            warm(self.spec.model)
        warm_exchange(self.spec.exchange, self.spec.model.width)
        self._warm = True
        pipeline = Pipeline(
            self.learner,
            self._gather(),
            self._learnt,
            when=self._when,
            in_order=self.spec.corpus is not None,
        )
        try:
            pipeline.run()
            self._flush()
            self._settle()
            if not self.stop.is_set():
                self.route.finish()
            if self.spec.corpus is not None:
                # A corpus may be learnt before the first report was due.
                self._report()
                secure(self.client, self.stop)
        except ExchangeError as error:
            # Told to stop, nodes that all-reduce leave each other as they come.
            away = self.spec.ring is not None or isinstance(error, UnavailableError)
            if not (away and self.stop.is_set()):
                raise
            logger.info("%s: told to stop: %s", self.spec.name, error)
        finally:
            self._write_evidence()
            self.stop.set()
            reporter.join(timeout=5)
            self.route.close()
            self.client.close()

    def _gather(self) -> Iterator[Sequence[TokenBlock] | Order | Close]:
        """What each tick learns: fresh blocks first; between them, what is worth learning again.

        A corpus is rehearsed at the end of each window, so that the same text gives the same
        bytes; a stream whenever no fresh text waits. Then the window is read once more, for
        comparing it: on a stream when the server says that it is complete. Rests while there is
        nothing of all this.
        """
        corpus = self.spec.corpus is not None
        given = ticks(
            self.spec, self.queue, self.stop, lambda: self.block_tokens, self._until_rehearsal
        )
        foresight = self.learner.lexicon.foresight
        for blocks in given if foresight is None else foresight.ticks(given):
            if blocks:
                self._idle = False
                window = window_of(blocks, self.learner.unit)
                if corpus and window != self.convergence.window:
                    yield from self._ended()
                self._read(window, sum(block.n_tokens for block in blocks))
                yield blocks
            elif (close := self._closing()) is not None:
                self._idle = False
                yield close
            elif (order := self._ordered()) is not None:
                self._idle = False
                yield order
            elif blocks is not None:
                self._rest()
        if corpus:
            yield from self._ended()

    def _ended(self) -> Iterator[Order | Close]:
        """A window of a corpus is over: learn it to the end, then read it once more."""
        yield from self._rehearsals()
        if self.learner.usage is not None and self.convergence.window is not None:
            yield Close(self.convergence.window)

    def _closing(self) -> Close | None:
        """The window of a stream to read once more: complete, as the server says, and settled."""
        usage, window = self.learner.usage, self._to_close
        if usage is None or window is None or (usage.closed is not None and usage.closed >= window):
            return None
        with self._converging:
            unsettled = self.convergence.unsettled
        return None if unsettled is not None and unsettled <= window else Close(window)

    def _read(self, window: int, tokens: int) -> None:
        with self._converging:
            self.convergence.read(window, tokens)
        if self.learner.rehearsal is not None:
            self.learner.rehearsal.begin(window)

    def _rehearsals(self) -> Iterator[Order]:
        """Until the window of a corpus has settled."""
        while not self.stop.is_set():
            with self._converging:
                order = self.convergence.order()
            if order is None:
                # What the window came to goes into its snapshot.
                self._rehearsed = self._rehearsal_figures()
                self._report()
                return
            yield order

    def _until_rehearsal(self) -> float:
        """Seconds until a node of a stream may rehearse; infinite where there is nothing to."""
        if self._closing() is not None:
            return 0.0
        share = self.spec.node.rehearsal_share
        if not share or self.learner.pace.batch_tokens or self.convergence.settled:
            return math.inf
        return max(0.0, self._rest_until - time.monotonic())

    def _ordered(self) -> Order | None:
        if self.spec.corpus is not None or self._until_rehearsal():
            return None
        with self._converging:
            order = self.convergence.order()
        if order is not None:
            self._asked.append(time.monotonic())
        return order

    def _took_turn(self) -> None:
        """A rehearsal of a stream is over: rest for as long as its share of a core leaves over."""
        now, share = time.monotonic(), self.spec.node.rehearsal_share
        if self._asked:
            took = now - max(self._asked.popleft(), self._over)
            self._over = now
            self._rest_until = max(self._rest_until, now) + took * (1.0 / share - 1.0)

    def _when(self) -> When:
        """When to pull the rows of the next block."""
        overlap = self.spec.node.overlap
        if overlap == "never":
            return "now"
        if isinstance(self.learner, PacedLearner) and self.learner.keeps_rows:
            return "late"
        alone = self.learner.active <= 1 or isinstance(self.learner, HogwildLearner)
        return "ahead" if self._ahead and (alone or overlap == "always") else "late"

    def _learnt(self, learnt: Learnt | RefusedError) -> None:
        """A tick is over."""
        if isinstance(learnt, RefusedError):
            self._refused(learnt)
            return
        if learnt.ack is not None:
            self._ahead = learnt.ack.ahead
            self._resize(learnt.ack.share)
        self._follow_restart()
        self._acknowledge(learnt.keys)
        self._confirm()
        counters = self.counters
        if learnt.close is not None:
            self._closed = learnt.close.window
            self._report()
            return
        if learnt.order is not None:
            self._took_turn()
            counters.replayed_tokens += learnt.trained_tokens
            with self._converging:
                self.convergence.measured(learnt.held_loss, learnt.order.tokens)
            return
        self._over = time.monotonic()
        counters.blocks += 1
        counters.fresh_tokens += learnt.fresh_tokens
        counters.trained_tokens += learnt.trained_tokens
        counters.loss = learnt.loss_sum / learnt.pairs if learnt.pairs else counters.loss
        counters.progress = learnt.progress

    def _acknowledge(self, keys: tuple[str, ...]) -> None:
        """The server has these documents."""
        # A crawler that is gone finds its documents unacknowledged and fetches them again; the
        # reader of a corpus goes by places alone.
        if self.spec.corpus is None:
            with contextlib.suppress(PeerLost, QueueClosed):
                self.queue.acknowledge(keys)
        self.counters.documents += len(keys)

    def _tell_crawler(self) -> None:
        """What processes before this one had pushed, once none of it can be lost any more.

        Until then the crawler reads nothing: a server that goes back to a checkpoint without a
        push that nobody can send again tells an older place, and its documents are read again.
        """
        while self.client.confirmed < self.learner.sequence:
            self.client.idle()
            self.client.checkpoint(wait=False)
            if self.client.durable() >= self.learner.sequence or self.stop.wait(_SETTLE_SECONDS):
                break
        with contextlib.suppress(PeerLost, QueueClosed):
            self.queue.send_report({"place": self._place, "durable": 0})

    def _confirm(self, *, ask: bool = False) -> None:
        """Tell the crawler how many documents are in a checkpoint, so that they are done."""
        outstanding = self.learner.outstanding
        if outstanding is None:
            return
        told = self.queue.latest_report() or {}
        outstanding.settled(int(told.get("settled", 0)))
        if told.get("owing") is False:
            outstanding.forget_inherited()
        if not outstanding.waits:
            return
        if ask:
            self.client.durable()
        if len(outstanding) > _MANY_DOCUMENTS:
            self.client.checkpoint(wait=False)
        documents = outstanding.confirmed(self.client.confirmed)
        with contextlib.suppress(PeerLost, QueueClosed):
            self.queue.send_report({"place": self._place, "durable": documents})

    def _flush(self) -> None:
        """Push what a policy lets a node keep for some blocks: nothing more comes for now."""
        if not isinstance(self.learner, PacedLearner):
            return
        try:
            self._acknowledge(self.learner.flush())
        except RefusedError as error:
            self._refused(error)

    def _refused(self, error: RefusedError) -> None:
        """The documents stay unacknowledged: the frontier gives them out again later."""
        if self.spec.corpus is not None or isinstance(error, (BehindError, ReplacedError)):
            raise error
        logger.warning("%s: the server refused a block: %s", self.spec.name, error)
        self._asked.clear()
        self.counters.refused += 1
        self.counters.last_error = str(error)
        welcome = self.client.hello()
        self.learner.restart(welcome.clock, welcome.sequence)
        if self.learner.usage is not None:
            self.learner.usage.closed = self._closed

    def _tell_reader(self) -> None:
        """Where to begin, behind the last block that the server has, and how large blocks are."""
        with contextlib.suppress(PeerLost, QueueClosed):
            self.queue.send_report({"place": self._place, "block_tokens": self.block_tokens})

    @property
    def block_tokens(self) -> int:
        """Fresh tokens of the next block: as configured, by the share that the server told last."""
        return max(LEAST_TOKENS, round(self.spec.node.block_tokens * self._share))

    def _resize(self, share: float) -> None:
        """Larger or smaller blocks from now on; nodes of a ring go in step without it."""
        if share == self._share or self.spec.ring is not None:
            return
        self._share = share
        if self.spec.corpus is not None:
            self._tell_reader()

    def _write_evidence(self) -> None:
        if self.learner.lexicon.evidence is not None:
            self.learner.lexicon.evidence.write()

    def _follow_restart(self) -> None:
        """A restarted server may have lost the words it admitted last."""
        welcome = self.client.welcome
        if welcome is not None and welcome.epoch != self._epoch:
            self._epoch = welcome.epoch
            self._listen(welcome)
            self.learner.forget_words()

    def _listen(self, welcome: Welcome) -> None:
        """Tell the server who used a word, but not of a corpus, whose words everybody may see."""
        crawls = self.spec.corpus is None
        self.learner.lexicon.listener = Listener.of(welcome) if crawls else None

    def _look_ahead(self, welcome: Welcome) -> None:
        """Read a corpus ahead of what is learnt, where later mentions can give a word its row."""
        tokens, lexicon = self.spec.node.look_ahead_tokens, self.learner.lexicon
        if self.spec.corpus is not None and 1 < welcome.min_count <= tokens:
            lexicon.foresight = Foresight(tokens, self.learner.unit, lexicon.has, self.stop)

    def _rest(self) -> None:
        """Nothing to learn: no barrier should wait for this node."""
        self._flush()
        self._confirm(ask=True)
        kept = isinstance(self.learner, PacedLearner) and self.learner.pending
        if not self._idle and not kept:
            self._settle()
            self.client.idle()
            self._write_evidence()
            self._idle = True

    def _settle(self) -> None:
        """Push what compression has kept back, so that nothing learnt stays with the node."""
        ack = self.client.settle(self.learner.clock, self.learner.sequence + 1)
        if ack is not None:
            self.learner.clock, self.learner.sequence = ack.clock, ack.sequence

    def _rehearsal_figures(self) -> dict[str, Any]:
        """How far the window under way has come."""
        state = self.convergence
        untrained, unigram = reference_losses(self.spec.model.negative)
        with self._converging:
            return {
                "window": state.window,
                "rehearses": bool(state.passes),
                "unsettled": state.unsettled,
                "settled": state.settled,
                "progress": round(state.progress, 3),
                "tokens": state.rehearsed,
                "held_out_loss": state.loss,
                "held_out_loss_first": state.first_loss,
                "held_out_untrained": untrained,
                "held_out_unigram": unigram,
            }

    def _closed_window(self) -> int | None:
        """The latest window whose second reading the server has; -1: none yet.

        None: this node never reads a window again. The server cuts no window before it is told.
        """
        if self.learner.usage is None:
            return None
        return -1 if self._closed is None else self._closed

    def _report_forever(self) -> None:
        while not self.stop.wait(self.spec.node.report_seconds):
            self._report()

    def _report(self) -> None:
        """Tell the server this node's figures, and what its crawler told last."""
        crawl = self.queue.latest_report() or {}
        try:
            asked = self.client.report(
                {
                    **crawl,
                    **asdict(self.counters),
                    "setup": self.spec.setup.model_dump(mode="json"),
                    "rehearsal": self._rehearsal_figures(),
                    "rehearsed": self._rehearsed,
                    "topology": self.route.figures(),
                    **self.client.rows.figures(),
                    "source_weights": self.learner.mixing.weights,
                    "warm": self._warm,
                    "closed": self._closed_window(),
                    "queue": self.queue.depth,
                    "queue_capacity": self.queue.capacity,
                    "rss_mb": round(psutil.Process().memory_info().rss / 2**20, 1),
                    "peak_memory_bytes": peak_memory(),
                }
            )
            self._to_close = asked if self.spec.corpus is None else None
        except (UnavailableError, RefusedError) as error:
            self.counters.last_error = str(error)


def _convergence(spec: NodeSpec, welcome: Welcome) -> Convergence:
    """What is rehearsed, where sentences are learnt and nodes are not in lockstep by their sums."""
    corpus = spec.corpus
    learns = spec.model.traits.weighs_sentences and spec.model.traits.draws_noise
    apart = spec.ring is None and not spec.aggregator and welcome.split != "columns"
    windows = corpus is None or corpus.window is not None
    passes = spec.node.rehearsal_passes if learns and apart and windows else 0.0
    tick = 4 * spec.node.block_tokens if corpus is not None else 16_384
    return Convergence(passes, tick, reference_losses(spec.model.negative)[1])


def _kind_of(welcome: Welcome) -> type[Learner]:
    """The learner that the server's topology and policy need."""
    if welcome.split == "columns":
        return ColumnLearner
    return PacedLearner if welcome.shared is None else HogwildLearner


def learn_forever(spec_json: str, queue: BlockQueue) -> None:
    """Target of the gradient process."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    end_with_parent()
    stop = stop_on_signals()
    spec = NodeSpec.model_validate_json(spec_json)
    try:
        if (process := _begun(spec, queue, stop)) is not None:
            process.run()
    finally:
        queue.close()


def _begun(spec: NodeSpec, queue: BlockQueue, stop: threading.Event) -> GradientProcess | None:
    """None when told to stop while the server is away."""
    try:
        return GradientProcess(spec, queue, stop)
    except UnavailableError as error:
        if not stop.is_set():
            raise
        logger.info("%s: told to stop: %s", spec.name, error)
        return None
