"""The gradient process of a node: take blocks, learn, push, acknowledge."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import psutil

from embedding.exchange.client import ParameterClient
from embedding.exchange.payload import Inherited
from embedding.exchange.protocol import Ask
from embedding.kernel.errors import (
    BehindError,
    ExchangeError,
    RefusedError,
    ReplacedError,
    UnavailableError,
)
from embedding.kernel.logs import begin_logging
from embedding.kernel.processes import end_with_parent, give_back, peak_memory, stop_on_signals
from embedding.kernel.records import TokenBlock
from embedding.kernel.tracing import NO_TRACES, Traces, open_traces
from embedding.stream.queue import BlockQueue, PeerLost, QueueClosed
from embedding.worker.corpus.counting import window_of
from embedding.worker.crawling.unacknowledged import Unacknowledged
from embedding.worker.learning.convergence import Order
from embedding.worker.learning.ticks import Close, Tick
from embedding.worker.process.making import (
    connect,
    listener_of,
    make_learner,
    make_transport,
    relay_of,
)
from embedding.worker.process.pipeline import Pipeline, When, ticks
from embedding.worker.process.rehearsing import Closings, rehearsals_of
from embedding.worker.process.warming import warm, warm_exchange
from embedding.worker.spec import NodeSpec

logger = logging.getLogger(__name__)

DURABLE_POLL_SECONDS = 0.3
_MANY_DOCUMENTS = 4096
"""Documents in no checkpoint, above which one is asked for."""
_LOOK_SECONDS = 0.2
ASK_SECONDS = 5.0
"""How often the checkpoint at the end of a corpus is asked for."""
PATIENCE_SECONDS = 300.0
"""How long a server that answers, but writes no checkpoint, is waited for then."""
LEAST_TOKENS = 64
"""No block is asked to be smaller."""
_REST_S = 60.0
"""Seconds without text after which freed memory goes back."""


class Acknowledgements:
    """What is said to who sends text: what the server has, and where to begin. To a crawler, or to
    the reader of a corpus, which goes by offsets alone.

    A sender that is gone gets no answer: a crawler finds its documents unacknowledged and fetches
    them again, a reader begins at the offset that the server has.

    offset       what the server had from the processes before this one
    unacknowledged  documents that the frontier has not marked as done; None for a corpus
    """

    def __init__(
        self,
        queue: BlockQueue,
        client: ParameterClient,
        offset: str,
        unacknowledged: Unacknowledged | None,
    ) -> None:
        self._queue = queue
        self._client = client
        self._offset = offset
        self._unacknowledged = unacknowledged
        self._wanted: dict[str, Any] = {}
        self._last: dict[str, Any] | None = None

    def begin(self, sequence: int, stop: threading.Event) -> None:
        """Tell a crawler what processes before this one had pushed, once none of it can be lost.

        Until then the crawler reads nothing: a server that goes back to a checkpoint without a
        push that nobody can send again tells an older offset, and its documents are read again.

        sequence  the last push of those processes
        """
        if self._unacknowledged is None:
            return
        while self._client.confirmed < sequence:
            self._client.idle()
            self._client.checkpoint(wait=False)
            if self._client.durable() >= sequence or stop.wait(DURABLE_POLL_SECONDS):
                break
        self._report({"durable": 0})

    def read_on(self, block_tokens: int) -> None:
        """Tell a reader where to begin, behind the last block that the server has, and how large
        blocks are."""
        self._report({"block_tokens": block_tokens})

    def want(self, lost: Sequence[tuple[str, str]], since: float | None) -> None:
        """Ask a crawler for text of dead processes, as `Rereading.follow` takes it."""
        wanted = {"lost": [list(text) for text in lost], "since": since}
        if self._unacknowledged is not None and wanted != self._wanted:
            self._wanted = wanted
            if self._last is not None:
                self._report(self._last)

    def learnt(self, keys: tuple[str, ...]) -> None:
        if self._unacknowledged is not None:
            with contextlib.suppress(PeerLost, QueueClosed):
                self._queue.acknowledge(keys)

    def confirm(self, *, ask: bool = False) -> None:
        """Tell the crawler how many documents are in a checkpoint, so that they are done.

        ask  ask the server first how many there are
        """
        unacknowledged = self._unacknowledged
        if unacknowledged is None:
            return
        report = self._queue.latest_report() or {}
        unacknowledged.acknowledge(int(report.get("finished", 0)))
        if report.get("owing") is False:
            unacknowledged.forget_inherited()
        if not unacknowledged.waits:
            return
        if ask:
            self._client.durable()
        if len(unacknowledged) > _MANY_DOCUMENTS:
            self._client.checkpoint(wait=False)
        self._report({"durable": unacknowledged.confirmed(self._client.confirmed)})

    def _report(self, more: dict[str, Any]) -> None:
        self._last = more
        with contextlib.suppress(PeerLost, QueueClosed):
            self._queue.send_report({"offset": self._offset, **self._wanted, **more})


def secure(client: ParameterClient, stop: threading.Event) -> None:
    """Wait until all pushes of this node, also of its earlier processes, are in a checkpoint.

    A node that has learnt its corpus ends then: until then it keeps the others and would send them
    again after a crash of the server, later nobody can. Where the server keeps none they are there
    as soon as they are applied. Others need not wait for this node meanwhile. Returns at once when
    `stop` is set.
    """
    _, last = client.log.held
    if stop.is_set() or client.durable() >= last:
        return
    client.idle()
    began = time.monotonic()
    asked = -ASK_SECONDS
    while not stop.wait(_LOOK_SECONDS) and client.durable() < last:
        waited = time.monotonic() - began
        if waited > PATIENCE_SECONDS:
            logger.warning("%s: its last pushes came into no checkpoint", client.node)
            return
        if waited - asked >= ASK_SECONDS:
            asked = waited
            client.checkpoint(wait=False)


class DocumentTraces:
    """Some documents, from when they were taken until they are learnt."""

    def __init__(self, traces: Traces) -> None:
        self._traces = traces
        self._taken: dict[str, tuple[float, int]] = {}

    def taken(self, keys: Iterable[str], window: int) -> None:
        """Documents of a window came."""
        for key in self._traces.sampled(keys):
            self._taken[key] = (time.time(), window)

    def learnt(self, keys: Iterable[str]) -> None:
        for key in self._taken.keys() & set(keys):
            taken, window = self._taken.pop(key)
            self._traces.document("learn", (key,), taken, time.time(), window=window)


@dataclass
class Counters:
    """What a gradient process did so far; shown in the server's status.

    warm       its kernels are compiled
    rehearsed  how far the last window of a corpus came
    """

    blocks: int = 0
    documents: int = 0
    fresh_tokens: int = 0
    replayed_tokens: int = 0
    trained_tokens: int = 0
    refused: int = 0
    loss: float = 0.0
    progress: float = 0.0
    last_error: str = ""
    warm: bool = False
    rehearsed: dict[str, Any] = field(default_factory=dict)


class GradientProcess:
    """Joins queue, learner and client; a second thread reports."""

    def __init__(
        self,
        spec: NodeSpec,
        queue: BlockQueue,
        stop: threading.Event,
        traces: Traces = NO_TRACES,
    ) -> None:
        self.spec = spec
        self._traces = DocumentTraces(traces)
        self.queue = queue
        self.stop = stop
        self.counters = Counters()
        self.client = connect(
            spec.server,
            node=spec.name,
            config=spec.exchange,
            config_digest=spec.model.digest(),
            stop=stop,
            incarnation=spec.incarnation,
            relay=relay_of(spec),
        )
        welcome = self.client.welcome or self.client.hello()
        self._epoch = welcome.epoch
        self._on_gpu = welcome.shared is not None and welcome.shared.on_gpu
        self.transport = make_transport(spec, self.client, welcome, stop)
        self._ahead = welcome.ahead and spec.ring is None
        self._idle = False
        self._again = 0
        self._share = 1.0
        self.rehearsals = rehearsals_of(spec, welcome)
        self.learner = make_learner(
            spec,
            self.client,
            self.transport,
            welcome,
            stop,
            rehearses=bool(self.rehearsals.state.passes),
        )
        self.closings = Closings()
        usage, lexicon = self.learner.usage, self.learner.lexicon
        if usage is not None:
            self.closings = Closings(
                seen=usage.past.seen,
                inherits=self._inherits,
                ready=lambda ask, inherited: usage.ready(ask.window, lexicon, inherited),
            )
        self.acknowledgements = Acknowledgements(
            queue, self.client, welcome.offset, self.learner.turn.unacknowledged
        )
        if spec.corpus is not None:
            self.acknowledgements.read_on(self.block_tokens)

    def run(self) -> None:
        """Until told to stop, or until the crawler has ended and everything it sent is learnt."""
        self._report()  # a snapshot says what its nodes trained with: told before the first push
        reporter = threading.Thread(target=self._report_forever, daemon=True)
        reporter.start()
        self.acknowledgements.begin(self.learner.turn.sequence, self.stop)
        if not self._on_gpu:
            warm(self.spec.model)
        warm_exchange(self.spec.exchange, self.spec.model.width)
        self.counters.warm = True
        pipeline = Pipeline(
            self.learner,
            self._gather(),
            self._learnt,
            when=self._when,
            in_order=self.spec.corpus is not None,
        )
        over = False
        try:
            pipeline.run()
            self._flush()
            self._flush_residuals()
            if not self.stop.is_set():
                self.transport.finish()
            if self.spec.corpus is not None:
                # A corpus may be learnt before the first report was due.
                self._report()
                secure(self.client, self.stop)
            over = not self.queue.lost
        except ExchangeError as error:
            # Told to stop, nodes that all-reduce leave each other as they come.
            away = self.spec.ring is not None or isinstance(error, UnavailableError)
            if not (away and self.stop.is_set()):
                raise
            logger.info("%s: told to stop: %s", self.spec.name, error)
            over = not self.queue.lost
        finally:
            self._write_evidence()
            self.stop.set()
            reporter.join(timeout=5)
            if not over:
                # A goodbye says that this node reads no more. It is started again and reads on:
                # windows that were cut meanwhile would lack what it has yet to read.
                self.client.drop()
            self.transport.close()

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
        lexicon = self.learner.lexicon
        if lexicon.look_ahead is not None:
            given = lexicon.look_ahead.ticks(given, lexicon.has)
        for blocks in map(self._fresh, given):
            if blocks:
                self._idle = False
                window = window_of(blocks, self.learner.setup.calendar)
                if corpus and window != self.rehearsals.state.window:
                    yield from self._ended()
                self._read(window, sum(block.n_tokens for block in blocks))
                self._traces.taken((key for block in blocks for key in block.keys), window)
                yield blocks
            elif (close := self.closings.due(self.rehearsals.unconverged)) is not None:
                self._idle = False
                yield self.closings.give(close)
            elif (
                not corpus
                and not self._until_rehearsal()
                and (order := self.rehearsals.take_turn()) is not None
            ):
                self._idle = False
                yield order
            elif blocks is not None:
                self._rest()
        if corpus:
            if (past := self.learner.past.rehearsal) is not None:
                self.rehearsals.end(past.tokens)
            yield from self._ended()

    def _fresh(self, blocks: Sequence[TokenBlock] | None) -> Sequence[TokenBlock] | None:
        """Those to learn; what is read again for how it uses words is remembered."""
        again = [block for block in blocks or () if block.incarnation]
        if not again:
            return blocks
        if self.spec.corpus is not None:
            # Its own text, as the server knows: its node reads it whichever process does.
            self.learner.remember_again([replace(block, incarnation="") for block in again])
            self._read(window_of(again, self.learner.setup.calendar), 0)
            return None
        self.learner.remember_again(again)
        self._again += sum(block.n_documents for block in again)
        return [block for block in blocks or () if not block.incarnation]

    def _ended(self) -> Iterator[Order | Close]:
        """A window of a corpus is over: learn it to the end, then read it once more."""
        while not self.stop.is_set() and (order := self.rehearsals.order()) is not None:
            yield replace(order, ended=self.rehearsals.state.window)
        # What the window came to goes into its snapshot.
        self.counters.rehearsed = self.rehearsals.figures()
        self._report()
        if self.learner.usage is not None and self.rehearsals.state.window is not None:
            yield Close(self.rehearsals.state.window)

    def _inherits(self, ask: Ask) -> list[Inherited] | None:
        """Text of dead processes in the sources that this node reads now; None while some of it is
        yet to be read again."""
        report, usage = self.queue.latest_report() or {}, self.learner.usage
        again, sources = report.get("again"), report.get("sources") or {}
        if again is None or usage is None:
            return []
        lost = [text for text in ask.lost if text[1] in sources]
        begun = {tuple(text) for text in again["begun"]}
        if again["left"] or self._again < again["put"] or not begun.issuperset(lost):
            return None
        calendar = self.learner.setup.calendar
        gone = Counter(
            (mark, source) for mark, source, at in again["gone"] if calendar.start(at) == ask.window
        )
        return [Inherited(*text, usage.past.seen(ask.window, *text), gone[text]) for text in lost]

    def _remembered_since(self, asks: Sequence[Ask]) -> float | None:
        """Event time (Unix seconds) from which on text is remembered; None: nobody knows yet."""
        window = self.rehearsals.state.window
        known = [ask.window for ask in asks] + ([] if window is None else [window])
        if not known:
            return None
        start = min(known)
        for _ in range(self.spec.node.past_windows):
            start = self.learner.setup.calendar.start(start - 1)
        return float(start)

    def _read(self, window: int, tokens: int) -> None:
        self.rehearsals.read(window, tokens)
        if self.learner.past.rehearsal is not None:
            self.learner.past.rehearsal.begin(window)

    def _until_rehearsal(self) -> float:
        """Seconds until a node of a stream may rehearse; infinite where there is nothing to."""
        if self.closings.due(self.rehearsals.unconverged) is not None:
            return 0.0
        return math.inf if self.learner.turn.pace.batch_tokens else self.rehearsals.wait_s()

    def _when(self) -> When:
        """When to pull the rows of the next block."""
        if self.learner.training.keeps_rows:
            return "late"
        # With others it would read what they wrote a block later: that costs more quality than the
        # waiting costs time.
        alone = self.learner.turn.active <= 1 or self.learner.training.sees_itself
        return "ahead" if self._ahead and alone else "late"

    def _learnt(self, learnt: Tick | RefusedError) -> None:
        """A tick is over."""
        if isinstance(learnt, RefusedError):
            self._refused(learnt)
            return
        if learnt.ack is not None:
            self._ahead = learnt.ack.ahead
            # Larger or smaller blocks from now on; nodes of a ring go in step without it.
            if learnt.ack.share != self._share and self.spec.ring is None:
                self._share = learnt.ack.share
                if self.spec.corpus is not None:
                    self.acknowledgements.read_on(self.block_tokens)
        self._follow_restart()
        self._acknowledge(learnt.keys)
        self.acknowledgements.confirm()
        counters = self.counters
        if learnt.close is not None:
            self._flush()  # a snapshot waits for it
            self._report()
            return
        if learnt.order is not None:
            counters.replayed_tokens += learnt.trained_tokens
            self.rehearsals.learnt(learnt.order, learnt.held_loss)
            return
        self.rehearsals.learnt_fresh()
        counters.blocks += 1
        counters.fresh_tokens += learnt.fresh_tokens
        counters.trained_tokens += learnt.trained_tokens
        counters.loss = learnt.loss.mean if learnt.loss.pairs else counters.loss
        counters.progress = learnt.progress

    def _acknowledge(self, keys: tuple[str, ...]) -> None:
        """The server has these documents."""
        self.acknowledgements.learnt(keys)
        self._traces.learnt(keys)
        self.counters.documents += len(keys)

    def _flush(self) -> None:
        """Push what a policy lets a node keep for some blocks: nothing more comes for now."""
        try:
            if keys := self.learner.training.flush():
                self._acknowledge(keys)
        except RefusedError as error:
            self._refused(error)

    def _refused(self, error: RefusedError) -> None:
        """The documents stay unacknowledged: the frontier gives them out again later."""
        if self.spec.corpus is not None or isinstance(error, (BehindError, ReplacedError)):
            raise error
        logger.warning("%s: the server refused a block: %s", self.spec.name, error)
        self.rehearsals.give_up()
        self.counters.refused += 1
        self.counters.last_error = str(error)
        welcome = self.client.hello()
        self.learner.training.restart(welcome.clock, welcome.sequence)
        self.closings.go_back(error)

    @property
    def block_tokens(self) -> int:
        """Fresh tokens of the next block: as configured, by the latest share of the server."""
        return max(LEAST_TOKENS, round(self.spec.node.block_tokens * self._share))

    def _write_evidence(self) -> None:
        if self.learner.lexicon.evidence is not None:
            self.learner.lexicon.evidence.write()

    def _follow_restart(self) -> None:
        """A restarted server may have lost the words it admitted last."""
        welcome = self.client.welcome
        if welcome is not None and welcome.epoch != self._epoch:
            self._epoch = welcome.epoch
            self.learner.lexicon.listen(listener_of(self.spec, welcome))
            self.learner.words.forget()

    def _rest(self) -> None:
        """Nothing to learn: no barrier should wait for this node."""
        self._flush()
        self.acknowledgements.confirm(ask=True)
        if not self._idle and not self.learner.training.pending:
            self._flush_residuals()
            self.transport.idle()
            self._write_evidence()
            self._idle = True

    def _flush_residuals(self) -> None:
        """Push what compression has kept back, so that nothing learnt stays with the node."""
        ack = self.client.flush_residuals(self.learner.turn.clock, self.learner.turn.sequence + 1)
        if ack is not None:
            self.learner.turn.flushed(ack)

    def _report_forever(self) -> None:
        rested_s = 0.0
        while not self.stop.wait(self.spec.node.report_seconds):
            self._report()
            before, rested_s = rested_s, self.spec.node.report_seconds + rested_s
            rested_s = rested_s if self._idle else 0.0
            if before < _REST_S <= rested_s:
                give_back()

    def _report(self) -> None:
        """Send the server this node's figures, and its crawler's latest."""
        crawl = self.queue.latest_report() or {}
        try:
            asked = self.client.report(
                {
                    **crawl,
                    **asdict(self.counters),
                    "setup": self.spec.setup.model_dump(mode="json"),
                    "rehearsal": self.rehearsals.figures(),
                    "topology": self.transport.figures(),
                    **self.client.rows.figures(),
                    "source_weights": self.learner.past.mixing.weights,
                    "queue": self.queue.depth,
                    "queue_capacity": self.queue.capacity,
                    "rss_mb": round(psutil.Process().memory_info().rss / 2**20, 1),
                    "peak_memory_bytes": peak_memory(),
                }
            )
            if self.spec.corpus is None:
                if self.learner.usage is not None:
                    self.closings.asked(asked)
                lost = sorted({text for ask in asked for text in ask.lost})
                self.acknowledgements.want(lost, self._remembered_since(asked))
        except (UnavailableError, RefusedError) as error:
            self.counters.last_error = str(error)


def learn_forever(spec_json: str, queue: BlockQueue) -> None:
    """Target of the gradient process."""
    spec = NodeSpec.model_validate_json(spec_json)
    begin_logging("gradient", node=spec.name)
    end_with_parent()
    stop = stop_on_signals()
    traces = open_traces("gradient", spec.name)
    try:
        process = GradientProcess(spec, queue, stop, traces)
    except UnavailableError as error:
        if not stop.is_set():
            raise
        logger.info("%s: told to stop: %s", spec.name, error)
    else:
        process.run()
    finally:
        queue.close()
        traces.close()
