"""The coordinator: who offered what, which portions are out, and one step after the other.

Events in, answers out, under the server's lock; no clock and no thread. `RoundCalls` carries out
what a node says. The policy
(`policies/sandblaster.py`) says when a round is due and lets nobody read until it is over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from embedding.exchange.codec import bounded, check, from_message, to_message
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import ROUND
from embedding.exchange.wire import Message
from embedding.kernel.config import part_of
from embedding.kernel.errors import ConfigError, RefusedError
from embedding.kernel.records import FloatArray
from embedding.kernel.registry import NoTraits
from embedding.models.traits import ROUNDS_MODEL
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.parts import SERVER_PARTS, Moment, Part
from embedding.server.policies.traits import POLICIES
from embedding.server.rowstore import RowStore
from embedding.server.words.vocabulary import Vocabulary
from yeoron_lab.lbfgs.batch import Offer, Ready, Result, Task, Work
from yeoron_lab.lbfgs.portions import Name, Portions
from yeoron_lab.settings import RoundSettings, ShardSettings

if TYPE_CHECKING:
    from embedding.server.flight.shell import Call, NodeSession
    from yeoron_lab.lbfgs.minimiser import Lbfgs
    from yeoron_lab.lbfgs.space import Space

logger = logging.getLogger(__name__)

HISTORY = 10
"""m: pairs of step and change of gradient that are kept; 2·m copies of the rows of a batch."""
MAX_PORTIONS = 100_000
"""Portions that one node may offer for a round."""


HOLD_S = 0.25
"""How long a node that asks for work is kept waiting for some."""
_OVER = Message({"status": "ok", "do": "read"})
_LATER = Message({"status": "ok", "do": "wait"})


@dataclass
class RoundFigures:
    """What all rounds did.

    tokens         that losses were computed of, each as often as it was
    first, last    F before and after the last round, nats a pair
    why            why the last round ended
    nbytes         what the last round took in memory, at most
    """

    rounds: int = 0
    iterations: int = 0
    evaluations: int = 0
    portions: int = 0
    copies: int = 0
    copies_won: int = 0
    lost_portions: int = 0
    tokens: int = 0
    first: float | None = None
    last: float | None = None
    why: str = ""
    rows: int = 0
    nbytes: int = 0
    by_node: dict[str, int] = field(default_factory=dict)


@dataclass
class _Gathering:
    """Offers of a round that has not begun, and each ready node's learning rate."""

    offers: dict[Name, Offer] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    nbytes: int = 0


@dataclass
class _Running:
    """A round that has begun."""

    offers: dict[Name, Offer]
    rate: float
    nodes: set[str]
    portions: Portions
    space: Space
    lbfgs: Lbfgs


@SERVER_PARTS.register("rounds", NoTraits())
class Rounds(Part):
    """All rounds of one server; at most one is on. Not thread-safe: the server's lock guards it.

    number  of the round that is on, or the next one
    ended   rounds that are over: the policy hears when this grows
    """

    def __init__(
        self, config: ServerConfig, rows: RowStore, vocabulary: Vocabulary, sync: SyncConfig
    ) -> None:
        self.number = 1
        self.ended = 0
        self.done = RoundFigures()
        self._config, self._rows, self._vocabulary = config, rows, vocabulary
        self._max_bytes = config.max_message_bytes
        self._gathering = _Gathering()
        self._running: _Running | None = None
        self.check_policy(sync, sync)

    def check_policy(self, sync: SyncConfig, before: SyncConfig) -> None:
        """ConfigError when a policy needs rounds and this server cannot."""
        if POLICIES.traits(sync.policy).needs_rounds:
            _check(self._config, self._rows, sync.policy)

    def reconfigure(self, sync: SyncConfig) -> None:
        """Another policy begins, or the same with other settings: what was gained stays."""
        if self._running is not None:
            self._finish(self._running, "another policy began")
        self._gathering = _Gathering()

    def calls(self, stream: NodeSession) -> dict[str, Call]:
        """What a node says in a round."""
        return {"batch": RoundCalls(self, stream).take_part}

    def describe(self, at: Moment) -> dict[str, Any]:
        return {"sync": {"rounds": asdict(self.done)}}

    def offer(self, node: str, offer: Offer) -> None:
        """A node offers a portion for the next round; the same again changes nothing."""
        self._vocabulary.slots(offer.words, "batch")
        self._vocabulary.slots(offer.extras, "batch")
        gathering, name = self._gathering, Name(node, offer.number)
        if node in gathering.rates:
            self._retract(node)
        known = gathering.offers.get(name)
        gathering.nbytes += offer.nbytes - (0 if known is None else known.nbytes)
        if gathering.nbytes > self._max_bytes or offer.number >= MAX_PORTIONS:
            raise RefusedError(
                f"batch: the portions offered take {gathering.nbytes} bytes; {self._max_bytes} "
                f"and {MAX_PORTIONS} portions a node are accepted: set a smaller "
                "lbfgs_batch_tokens.",
                kind="size",
            )
        gathering.offers[name] = offer

    def ready(self, node: str, rate: float) -> None:
        """A node has offered all that it gives."""
        self._gathering.rates[node] = rate

    def work(
        self, node: str, result: Result | None, active: Collection[str], sync: SyncConfig
    ) -> Task | bool:
        """A node asks for work: a portion; True: there is none yet; False: the round is over.

        active  nodes that take part; a round begins when each of them is ready
        """
        if self._running is None:
            if node not in self._gathering.rates:
                return False
            if not set(active) <= set(self._gathering.rates):
                return True
            self._begin(part_of(sync, RoundSettings))
        running = self._running
        if running is None:
            return False
        self._lose(running, active, part_of(sync, RoundSettings))
        if result is not None and self._running is running:
            self._take(running, node, result)
        running = self._running
        if running is not None and running.portions.complete:
            self._step(running)
        if running is None or self._running is None:
            return False
        running.nodes.add(node)
        name = running.portions.ask(node)
        return True if name is None else self._task(running, node, name)

    def awaits(self, node: str) -> bool:
        """Whether a round is on, or will be that this node is ready for."""
        return self._running is not None or node in self._gathering.rates

    def _retract(self, node: str) -> None:
        """A node that was ready offers again: it lost its way."""
        del self._gathering.rates[node]
        offers = self._gathering.offers
        for name in [name for name in offers if name.node == node]:
            self._gathering.nbytes -= offers.pop(name).nbytes

    def _begin(self, settings: RoundSettings) -> None:
        gathering, self._gathering = self._gathering, _Gathering()
        rates = gathering.rates.values()
        rate = sum(rates) / len(rates)
        offers = {n: o for n, o in sorted(gathering.offers.items()) if n.node in gathering.rates}
        if not any(offer.pairs for offer in offers.values()):
            self._end("no node remembers a pair")
            return
        self._running = self._start(
            offers, rate, set(gathering.rates), settings, settings.lbfgs_iterations
        )

    def _start(
        self,
        offers: dict[Name, Offer],
        rate: float,
        nodes: set[str],
        settings: RoundSettings,
        iterations: int,
    ) -> _Running:
        from yeoron_lab.lbfgs.minimiser import Lbfgs  # torch, which most servers never need
        from yeoron_lab.lbfgs.space import Space

        space = Space(self._rows.tables, self._vocabulary, offers, settings.lbfgs_reach * rate)
        portions = Portions(settings.lbfgs_copies)
        for name, offer in offers.items():
            portions.add(name, shared=offer.material is not None)
        portions.begin()
        lbfgs = Lbfgs(space.start, space.scale, history=HISTORY, iterations=iterations)
        self.done.rows = len(space.start)
        self.done.nbytes = (2 * HISTORY + 7) * space.nbytes
        return _Running(offers, rate, nodes, portions, space, lbfgs)

    def _lose(self, running: _Running, active: Collection[str], settings: RoundSettings) -> None:
        """Nodes that have gone: others do their work, or the batch goes on without it."""
        gone = running.nodes - set(active)
        if not gone:
            return
        running.nodes -= gone
        lost = running.portions.gone(gone)
        if not lost:
            return
        logger.warning("batch: %d portions went with %s", len(lost), ", ".join(sorted(gone)))
        self.done.lost_portions += len(lost)
        left = {name: offer for name, offer in running.offers.items() if name not in lost}
        self._count(running)
        self._carry(running.space.moved(running.lbfgs.best))
        if not left:
            self._end("every node that had a portion went away")
            return
        # Another batch is another function: what was learnt of the old one's curvature is void.
        more = max(1, settings.lbfgs_iterations - running.lbfgs.done)
        again = self._start(left, running.rate, running.nodes, settings, more)
        again.portions.evaluation += running.portions.evaluation
        self._running = again

    def _take(self, running: _Running, node: str, result: Result) -> None:
        """An answer: counted when it is the first for its portion in this evaluation."""
        name = Name(result.node, result.number)
        if result.round != self.number or name not in running.offers:
            return
        shapes = running.space.shape(name)
        if (result.vectors.shape, result.contexts.shape) != shapes:
            raise RefusedError(
                f"batch: a gradient of {result.vectors.shape} and {result.contexts.shape}; "
                f"{shapes[0]} and {shapes[1]} are accepted.",
                kind="shape",
            )
        if not running.portions.done(node, name, result.evaluation):
            return
        self.done.portions += 1
        self.done.tokens += running.offers[name].tokens
        running.space.add(name, result.loss, result.vectors, result.contexts)

    def _step(self, running: _Running) -> None:
        """Every portion was counted: the next rows to look at, or the end."""
        lbfgs = running.lbfgs
        if lbfgs.trial is not None:
            lbfgs.evaluated(*running.space.total(lbfgs.trial))
        if lbfgs.trial is None:
            self._finish(running, lbfgs.why)
            return
        running.space.clear()
        running.portions.begin()

    def _finish(self, running: _Running, why: str) -> None:
        self._count(running)
        self._carry(running.space.moved(running.lbfgs.best))
        self._end(why)

    def _count(self, running: _Running) -> None:
        lbfgs, portions, figures = running.lbfgs, running.portions, self.done
        figures.iterations += lbfgs.done
        figures.evaluations += lbfgs.evaluations
        figures.copies += portions.again
        figures.copies_won += portions.won
        if lbfgs.evaluations:
            figures.first, figures.last = lbfgs.first, lbfgs.loss
        for node, n in portions.by_node.items():
            figures.by_node[node] = figures.by_node.get(node, 0) + n

    def _end(self, why: str) -> None:
        figures = self.done
        figures.rounds += 1
        figures.why = why
        logger.info("round %d: %s → %s nats; %s", self.number, figures.first, figures.last, why)
        self.number += 1
        self.ended += 1
        self._running, self._gathering = None, _Gathering()

    def _carry(self, deltas: Sequence[RowDelta]) -> None:
        """Move rows of the tables; words that were evicted meanwhile have none."""
        tables = self._rows.tables
        for delta in deltas:
            slots = self._vocabulary.slots(delta.ids, "batch")
            has_row = slots >= 0
            tables.add(delta.table, slots[has_row], delta.values[has_row])

    def _task(self, running: _Running, node: str, name: Name) -> Task:
        if running.lbfgs.trial is None:
            raise RefusedError("batch: the round is over.")
        vectors, contexts = running.space.rows(name, running.lbfgs.trial)
        material = None if name.node == node else running.offers[name].material
        evaluation = running.portions.evaluation
        return Task(self.number, evaluation, *name, vectors, contexts, material)


def _check(config: ServerConfig, rows: RowStore, policy: str) -> None:
    """ConfigError where a server cannot lead rounds of L-BFGS."""
    models, shards = " or ".join(ROUNDS_MODEL.accepted), part_of(config, ShardSettings).shards
    for unfit, what, accepted in (
        (shards > 1, f"shards {shards}", "1 shard: the history lies where rows lie"),
        (rows.tables.buckets > 0, "rows of n-grams", models),
        (rows.composer.biases > 0, "biases in rows", models),
        (config.optimizer != "sum", f"optimizer {config.optimizer}", "sum: its step is whole"),
    ):
        if unfit:
            raise ConfigError(f"policy {policy} with {what}: it works with {accepted}.")


class RoundCalls:
    """Of one stream."""

    def __init__(self, rounds: Rounds, stream: NodeSession) -> None:
        self._rounds, self._state, self._stream = rounds, stream.state, stream

    def take_part(self, message: Message) -> Message:
        """The answer to one message of a round; RefusedError says what is wrong with it."""
        state, node, what = self._state, self._stream.node, message.header.get("do")
        if what == "offer":
            offer = from_message(Offer, message)
            check(offer, "batch")
            with state.lock:
                self._rounds.offer(node, offer)
            return Message({"status": "ok"})
        if what == "ready":
            rate = from_message(Ready, message).rate
            with state.changed:
                self._rounds.ready(node, rate)
                state.changed.notify_all()
            return Message({"status": "ok"})
        if what == "work":
            result = from_message(Work, message).result
            if result is not None:
                check_gradient(node, result.vectors, result.contexts)
            return self._work(node, result)
        raise RefusedError(f"batch: {str(what)[:40]!r}: offer, ready or work is accepted.")

    def _work(self, node: str, result: Result | None) -> Message:
        state, deadline = self._state, time.monotonic() + HOLD_S
        with state.changed:
            while True:
                task = self._ask(node, result)
                if isinstance(task, Task):
                    return to_message(task, status="ok", do="compute")
                if not task:
                    return _OVER
                left = deadline - time.monotonic()
                if left <= 0 or state.closing:
                    return _LATER
                result = None
                state.changed.wait(left)

    def _ask(self, node: str, result: Result | None) -> Task | bool:
        """Work for a node that the policy holds back; False: it may read, or is to ask again."""
        state, machine, now = self._state, self._state.machine, time.monotonic()
        clock = machine.board.members[node].clock
        _, waiting_for, instructions = machine.pull(node, clock, now=now)
        state.execute(instructions, now)
        if not waiting_for:
            return False
        rounds = self._rounds
        if ROUND not in waiting_for:
            return rounds.awaits(node)
        ended = rounds.ended
        task = rounds.work(node, result, machine.board.active(), machine.config)
        if rounds.ended > ended:
            machine.finished()
        if rounds.ended > ended or result is not None:
            state.changed.notify_all()
        return task


def check_gradient(node: str, *parts: FloatArray) -> None:
    """RefusedError when a gradient holds what no sum can take."""
    for part in parts:
        if not bounded(part):
            raise RefusedError(
                f"batch: a gradient of node {node} holds values that are not finite or are "
                "absurdly large.",
                kind="values",
            )
