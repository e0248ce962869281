"""The parameter server without its network: everything that one lock guards.

Requests come in as decoded records, answers go out as records; nothing here knows of Flight.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from embedding.exchange.protocol import VERSION, Ack, Push, Rows, VocabularyDelta, Welcome
from embedding.exchange.testimony import Attestation
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import IntArray, ScorePairs, Table, Window
from embedding.server.applying import AppliesPushes
from embedding.server.balance import Balance
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.consistency import ConsistencyMachine
from embedding.server.cutting.quality import ScoreKeeper
from embedding.server.figures.reports import as_sent, read_report
from embedding.server.flight.greeting import acknowledgement, welcome
from embedding.server.flight.validation import check_words, checked
from embedding.server.groups.leading import LedGroups
from embedding.server.lbfgs.rounds import Rounds
from embedding.server.policies import Ticket
from embedding.server.recovery.journal import Journal
from embedding.server.recovery.sequence import Ledger, Verdict
from embedding.server.rows.changing import Changes
from embedding.server.rows.composing import Composer
from embedding.server.rows.tables import Optimizer, Tables, pick_device
from embedding.server.shards.holding import HoldsRows
from embedding.server.words.accounting import Accounts, Arrival, by_source
from embedding.server.words.digests import WordDigests
from embedding.server.words.overlay import Overlay
from embedding.server.words.vocabulary import Vocabulary
from embedding.server.words.witnesses import Witnesses

logger = logging.getLogger(__name__)

WAIT_S = 1.0
"""How long a pull is held before it is answered `waiting`, so that streams stay responsive."""


class ServerState(AppliesPushes, HoldsRows):
    """Tables, vocabulary, counts, clocks and sequence numbers, consistent under `lock`."""

    def __init__(
        self,
        config: ServerConfig,
        sync: SyncConfig,
        *,
        dim: int,
        seed: int,
        epoch: int | None = None,
        digests: WordDigests | None = None,
        buckets: int = 0,
        biases: int = 0,
    ) -> None:
        self.config = config
        self.dim = dim
        self.epoch = int(time.time() * 1000) if epoch is None else epoch
        self.started = time.monotonic()
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.closing = False
        self.tables = Tables(
            dim,
            device=pick_device(config.device, shared=shares(sync)),
            capacity=config.max_words if shares(sync) else config.initial_rows,
            seed=seed,
            optimizer=Optimizer(config.optimizer, config.adagrad_rate),
            shared=shares(sync),
            buckets=0 if self.leads else buckets,
        )
        self.vocabulary = Vocabulary.of(config, version=self.epoch << 20, digests=digests)
        self.accounts = Accounts(config, self.vocabulary, dim)
        self.witnesses = Witnesses.of(config, self.accounts.meters.sources)
        self.young = Overlay.of(config, self.vocabulary)
        self.machine = ConsistencyMachine(sync)
        self.ledger = Ledger(keeps_checkpoints=config.state_dir is not None)
        self.meters = self.accounts.meters
        self.composer = Composer(self.tables, self.vocabulary.names, buckets=buckets, biases=biases)
        self.scores = ScoreKeeper(config, self.tables, self.composer)
        self.config_digest = config.config_digest
        self.reports: dict[str, dict[str, Any]] = {}
        self.reported_at: dict[str, float] = {}
        self.rounds = Rounds(self, sync)
        self.balance = Balance()
        self.groups = LedGroups()
        self.journal = Journal(None)
        self.want_checkpoint: Callable[[], None] = lambda: None
        self.admitting = threading.Lock()
        self.changes = Changes("the server")
        self._held: dict[tuple[str, int], Arrival] = {}
        self._read_mark: dict[str, int] = {}

    # -- greeting ---------------------------------------------------------------------------

    def hello(self, node: str, *, version: int, digest: str, clock: int, life: str = "") -> Welcome:
        """A node connects; a later connection of the same node takes the place of an earlier."""
        if version != VERSION:
            raise RefusedError(
                f"node {node}: protocol {version}; this server speaks {VERSION}.", kind="greeting"
            )
        if not node:
            raise RefusedError("node '': a node needs a name.", kind="greeting")
        with self.changed:
            if digest and self.config_digest and digest != self.config_digest:
                raise RefusedError(
                    f"node {node}: its configuration has the digest {digest[:12]}, the server's "
                    f"other nodes {self.config_digest[:12]}: start it with the same settings.",
                    kind="greeting",
                )
            self.config_digest = self.config_digest or digest
            self.ledger.greet(node, life)
            self.balance.forget(node)
            now = time.monotonic()
            at, instructions = self.machine.join(node, now=now, clock=clock)
            self.execute(instructions, now)
            return welcome(self, node, at)

    def check_session(self, node: str, session: int) -> None:
        """ReplacedError or FencedError when another process goes on in the node's place."""
        self.ledger.check(node, session)

    # -- vocabulary -------------------------------------------------------------------------

    def admit(
        self, words: Sequence[str], counts: IntArray, testimony: Attestation | None = None
    ) -> IntArray:
        """Ids of words; see ParameterClient.admit.

        The journal has the new words before anybody can use their ids: pushes that name them can
        be sent again after a crash.
        """
        if len(words) != len(counts):
            raise RefusedError("admit: words and counts differ in length.")
        if len(counts) and int(counts.min()) < 0:
            raise RefusedError("admit: a count below 0.")
        with self.admitting:
            with self.lock:
                self.changes.check()
                fresh = self.vocabulary.plan(words, counts)
                fresh = self.witnesses.passed(fresh, words, testimony)
                fresh = fresh[: self.make_room(len(fresh))]
                first, evicted = self.vocabulary.next_id, self.vocabulary.victims(len(fresh))
            if fresh:
                self.journal.write(first, fresh, evicted)
                with self.lock:
                    self.install(fresh, evicted)
            with self.lock:
                return self.vocabulary.ids(words)

    def install(self, words: Sequence[str], evicted: IntArray) -> None:
        """Give words the rows of evicted ids and new ones (under the lock)."""
        if len(evicted):
            self.accounts.windows.settle()
            self.composer.forget(evicted)
        admission = self.vocabulary.admit(words, evicted)
        self.young.placed(admission.slots, admission.evicted)
        self.changes.carry_out(lambda: [partial(self._place, admission)])

    def delta(self, since: int) -> VocabularyDelta:
        """Vocabulary changes after `since`."""
        with self.lock:
            alive = self.vocabulary.alive()
            counts = self.vocabulary.counts(alive)
            return replace(self.vocabulary.delta(since), alive=alive, alive_counts=counts)

    # -- pull and push ----------------------------------------------------------------------

    def pull(
        self,
        node: str,
        vectors: IntArray,
        contexts: IntArray,
        clock: int,
        score: Sequence[ScorePairs] = (),
        *,
        grams: IntArray | None = None,
        half: bool = False,
    ) -> Rows | list[str]:
        """Rows (float16 with `half`), or the names of the nodes that the policy waits for."""
        began = time.monotonic()
        with self.changed:
            at, waiting_for = self._turn(node, clock, began)
            if waiting_for:
                return waiting_for
            self.changes.check()
            waited = time.monotonic() - began
            slots_in = self.vocabulary.slots(vectors, "pull")
            slots_out = self.vocabulary.slots(contexts, "pull")
            if grams is not None:
                self.slots_of(Table.SUB, grams, "pull")
            for pairs in score:
                self.slots_to_score(pairs)
            rows_in = self.tables.gather(Table.IN, slots_in)
            rows_out = self.tables.gather(Table.OUT, slots_out)
            rows_sub = None if grams is None else self.tables.gather(Table.SUB, grams)
            self._read_mark[node] = self.meters.pushes
            sequence = self.ledger.of(node).applied
            self.meters.rows_out += len(vectors) + len(contexts)
            self.meters.rows_out += 0 if grams is None else len(grams)
        nll = self.scores.score_all(score, self.slots_to_score, self.lock)
        return Rows(
            at,
            as_sent(rows_in, half),
            as_sent(rows_out, half),
            sequence,
            nll,
            waited,
            None if rows_sub is None else as_sent(rows_sub, half),
        )

    def _turn(self, node: str, clock: int, began: float) -> tuple[int, list[str]]:
        """Wait a moment for the policy: the clock that the node reads at, or whom it waits for."""
        while True:
            now = time.monotonic()
            at, waiting_for, instructions = self.machine.pull(node, clock, now=now)
            self.execute(instructions, now)
            if not waiting_for:
                self.changed.notify_all()
                return at, []
            left = began + WAIT_S - now
            if left <= 0 or self.closing or node in waiting_for:
                return at, waiting_for
            self.changed.wait(left)

    def push(self, push: Push, session: int | None = None) -> Ack:
        """Take a push; the policy says when it is applied.

        session  of the stream that it came by: a process that was replaced adds nothing behind the
                 place where its successor goes on
        """
        size = push.nbytes
        push = checked(push, self.dim, self.config.max_message_bytes)
        arrival = Arrival.prepare(push)
        with self.changed:
            if session is not None:
                self.check_session(push.node, session)
            self.changes.check()
            entry = self.ledger.of(push.node)
            now = time.monotonic()
            if self.ledger.judge(push.node, push.sequence) is Verdict.DUPLICATE:
                self.meters.duplicates += 1
                return self._ack(push.node, duplicate=True)
            for delta in push.deltas:
                self.slots_of(delta.table, delta.ids, "push")
            check_words(push, self.vocabulary)
            ticket = Ticket(push.node, push.clock, push.sequence)
            instructions = self.machine.push(ticket, now=now)
            self._held[push.node, push.sequence] = arrival
            self.ledger.accept(push.node, push.sequence, push.place)
            self.meters.moved(push, size)
            behind = self.meters.pushes - self._read_mark.get(push.node, self.meters.pushes)
            self.meters.staleness[behind] += 1
            self.execute(instructions, now)
            tokens = by_source(push)
            self.execute(self.machine.measured(push.node, tokens, push.busy_s, now=now), now)
            self.balance.learnt(push.node, sum(tokens.values()), push.busy_s)
            entry.tokens += push.tokens
            self.changed.notify_all()
            return self._ack(push.node)

    def confirm(self, node: str) -> Ack:
        """How far the node's pushes are."""
        with self.lock:
            return self._ack(node)

    def _ack(self, node: str, *, duplicate: bool = False) -> Ack:
        return acknowledgement(self, node, duplicate=duplicate)

    # -- control ----------------------------------------------------------------------------

    def idle(self, node: str) -> None:
        """A node has nothing to learn."""
        with self.changed:
            now = time.monotonic()
            self.execute(self.machine.idle(node, now=now), now)
            self.changed.notify_all()

    def leave(self, node: str, session: int) -> None:
        """A node said goodbye, unless it has connected again since."""
        with self.changed:
            if self.ledger.of(node).session == session:
                self.execute(self.machine.leave(node), time.monotonic())
                self.accounts.tracker.leave(node)
                self.changed.notify_all()

    def report(self, node: str, report: dict[str, Any]) -> None:
        """A node's own figures."""
        pending, event_now = read_report(report)
        with self.lock:
            now = time.monotonic()
            self.machine.seen(node, now=now)
            self.reports[node], self.reported_at[node] = report, now
            self.accounts.tracker.report(node, pending, now=now, event_now=event_now)

    def living(self) -> set[str]:
        """Nodes that take part or rest, those of other groups too (under the lock)."""
        led = {name for name, node in self.groups.nodes().items() if node.get("state") != "gone"}
        return led | {name for name, one in self.machine.board.members.items() if one.present}

    def told(self) -> list[tuple[float, dict[str, Any]]]:
        """When (monotonic seconds) and what each node that is there told last."""
        with self.lock:
            there = self.living() & set(self.reports)
            return [(self.reported_at.get(each, 0.0), self.reports[each]) for each in there]

    def configure(self, sync: SyncConfig) -> None:
        """Another policy, or other settings of it, from now on."""
        with self.changed:
            before = self.machine.config
            if shares(sync) is not shares(before):
                raise RefusedError(
                    f"configure: from {before.policy} to {sync.policy}: hogwild keeps its tables "
                    "in shared memory from the start; start the server with that policy."
                )
            now = time.monotonic()
            self.rounds.configure(sync)
            self.execute(self.machine.configure(sync, now=now), now)
            logger.info("policy %s → %s", before.model_dump(), sync.model_dump())
            self.changed.notify_all()

    def tick(self) -> None:
        """Time passed: nodes that were silent too long are gone."""
        with self.changed:
            now = time.monotonic()
            gone, instructions = self.machine.tick(now=now)
            instructions += self.machine.reconsider(now=now)
            for node in gone:
                logger.warning("node %s was silent too long and counts as gone", node)
                self.accounts.tracker.leave(node)
            self.execute(instructions, now)
            self.changes.advance()
            if gone:
                self.changed.notify_all()

    def due(self) -> list[Window]:
        """Windows that the watermark has passed and that were not cut."""
        with self.lock:
            return self.accounts.due(time.monotonic())

    def follow_frequent(self) -> None:
        """Let co-occurrences be sampled of the words that are most frequent now."""
        with self.lock:
            ids = self.vocabulary.alive()
            counts = self.vocabulary.counts(ids)
        most = np.argsort(-counts, kind="stable")[: self.config.pip_words]
        self.scores.follow(ids[most])

    def flush(self) -> None:
        """Apply everything that the policy holds back."""
        with self.changed:
            self.execute(self.machine.flush(), time.monotonic())
            self.changed.notify_all()

    def close(self) -> None:
        """Let pulls that wait go."""
        with self.changed:
            self.closing = True
            self.changed.notify_all()


def shares(sync: SyncConfig) -> bool:
    """Whether the nodes write to the tables themselves."""
    return sync.policy == "hogwild"
