"""The state of a server that follows: a replica of the leading group's tables.

To its nodes it is a parameter server like any other. What they push it applies at once, and keeps
what of it the leader has to hear: how far rows moved (`drift.py`), and by node what was read. It
gives no ids and cuts nothing; both are the leader's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from embedding.exchange.groups.client import Changes, Reached
from embedding.exchange.protocol import VocabularyDelta, Welcome
from embedding.exchange.testimony import Attestation
from embedding.kernel.errors import ConfigError, RefusedError, UnavailableError
from embedding.kernel.records import FloatArray, IntArray, Table
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.groups.config import PAST_PUSHES, PUSHING, check_pace
from embedding.server.groups.drift import Drift, Moved
from embedding.server.groups.taking import Cut, Moves, Taken, Told, compose
from embedding.server.policies import Instruction
from embedding.server.state import ServerState
from embedding.server.words.accounting import Accounts, Arrival
from embedding.server.words.digests import WordDigests
from embedding.server.words.vocabulary import Admission, Vocabulary

Ask = Callable[[Sequence[str], IntArray, Attestation | None], IntArray]
Live = Callable[[Table, IntArray], FloatArray]
"""float32 [n, dim] of rows as the leader has them now."""


def following_config(config: ServerConfig) -> ServerConfig:
    """As a group that follows needs it: what only the leader keeps or cuts is left out."""
    return config.model_copy(
        update={
            "state_dir": None,
            "shards_dir": None,
            "snapshots": None,
            "cut": "manual",
            "usage": False,
            "young_mentions": 0,
        }
    )


def check_follows(sync: SyncConfig, every_s: float) -> None:
    """ConfigError for what does not go with server groups that exchange every so many seconds."""
    check_pace(every_s, sync.liveness_timeout_s)
    if sync.policy in PAST_PUSHES:
        raise ConfigError(
            f"policy {sync.policy} with server groups: its nodes change rows past the "
            f"pushes that groups tell each other of; {', '.join(PUSHING)} are accepted."
        )


class PassingAccounts(Accounts):
    """Counts that steer sampling and figures for the status; windows are the leader's."""

    def __init__(self, config: ServerConfig, vocabulary: Vocabulary, dim: int) -> None:
        super().__init__(config, vocabulary, dim)
        self.digests: dict[str, None] = {}

    def learnt(self, arrival: Arrival, now: float) -> None:
        """A push was applied."""
        push, known = arrival.push, arrival.push.counts.ids >= 0
        none = np.empty(0, dtype=np.int64)
        self.vocabulary.count(
            push.counts.ids[known],
            push.counts.counts[known],
            arrival.seen[known],
            (),
            none,
            none.astype(np.float64),
            push.tokens,
        )
        self.meters.learnt(push.node, push.tokens, now)
        self.meters.loss_sum += push.loss_sum
        self.meters.pairs += push.pairs
        if push.tokenizer_digest:
            self.digests[push.tokenizer_digest] = None
        for each in push.progress:
            self.meters.documents += each.documents
            meter = self.meters.source(each.source)
            meter.documents += each.documents
            meter.tokens += each.tokens
            self.tracker.progress(each.source, each.published, now=now, node=push.node)


class Follows(ServerState):
    """A replica, wherever its rows lie. `ask` asks the leader for ids.

    ask     UnavailableError while the leader is away
    secure  has all that was pushed in a checkpoint of the leader, at once or soon
    """

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
        check_follows(sync, config.group.every_s)
        super().__init__(
            config,
            sync,
            dim=dim,
            seed=seed,
            epoch=epoch,
            digests=digests,
            buckets=buckets,
            biases=biases,
        )
        self.accounts: PassingAccounts = PassingAccounts(config, self.vocabulary, dim)
        self.meters = self.accounts.meters
        self.ledger.keeps_checkpoints = True
        self.waiting: dict[str, Told] = {}
        self._cut: Cut | None = None
        self.leader: Welcome | None = None
        self.ask: Ask | None = None
        self.secure: Callable[[bool], None] | None = None
        self.waiting_pushes = 0

    # -- towards the nodes ------------------------------------------------------------------

    def hello(self, node: str, *, version: int, digest: str, clock: int, life: str = "") -> Welcome:
        """A node connects; what holds for the whole model is told as the leader told it."""
        found = super().hello(node, version=version, digest=digest, clock=clock, life=life)
        leader = self.leader
        if leader is None:
            return found
        return replace(
            found,
            window_unit=leader.window_unit,
            min_count=max(leader.min_count, self.vocabulary.min_count),
            young_mentions=leader.young_mentions,
            usage=leader.usage,
            salt=leader.salt,
            min_authors=leader.min_authors,
            min_sources=leader.min_sources,
        )

    def admit(
        self, words: Sequence[str], counts: IntArray, testimony: Attestation | None = None
    ) -> IntArray:
        """Ids of words: the leader's; while it is away new words have none."""
        if len(words) != len(counts):
            raise RefusedError("admit: words and counts differ in length.")
        with self.lock:
            ids = self.vocabulary.ids(words)
        if self.ask is None or not (ids < 0).any():
            return ids
        with self.admitting:
            try:
                told = self.ask(words, counts, testimony)
            except UnavailableError:
                return ids
            with self.lock:
                self._know(words, told)
                return self.vocabulary.ids(words)

    def checkpoint_shards(self, *, wait: bool) -> None:
        """Bring everything to the leader and have it write a checkpoint."""
        if self.secure is not None:
            self.secure(wait)

    def execute(self, instructions: Sequence[Instruction], now: float) -> None:
        """Carry out what the consistency machine says, and note what the leader has to hear."""
        for instruction in instructions:
            for ticket in instruction.tickets:
                push = self._held[ticket.node, ticket.sequence].push
                after = self.ledger.of(ticket.node).applied
                self.waiting.setdefault(ticket.node, Told(after)).add(push)
                self.waiting_pushes += 1
        super().execute(instructions, now)

    def configure(self, sync: SyncConfig) -> None:
        """Another policy from now on; ConfigError for one that does not go with groups."""
        check_follows(sync, self.config.group.every_s)
        super().configure(sync)

    # -- where the rows are -----------------------------------------------------------------

    @property
    def moved_rows(self) -> int:
        """Rows that moved since the leader was told last."""
        raise NotImplementedError

    def cut_moves(self) -> Callable[[], Moves]:
        """What rows have moved by now (under the lock); the call fetches it, without the lock.

        It raises UnavailableError while some rows cannot be reached; then it is called again.
        """
        raise NotImplementedError

    def merged(self) -> None:
        """The leader has applied the entry that was taken last."""

    def all_told(self) -> None:
        """The leader has all that was pushed (under the lock)."""

    @property
    def lacks_rows(self) -> bool:
        """Whether rows cannot be reached, or have to be fetched from the leader again."""
        return False

    def when_lacking(self, call: Callable[[], None]) -> None:
        """Have `call` called when rows have to be fetched from the leader again."""

    def mend(self, live: Live) -> tuple[int, ...]:
        """Give rows that were lost their values at the leader again; the shards that had them."""
        del live
        return ()

    def adopt(self, table: Table, ids: IntArray, rows: FloatArray) -> int:
        """The leader has these rows; how many of their words have a row here."""
        raise NotImplementedError

    # -- towards the leader -----------------------------------------------------------------

    def begin(self, welcome: Welcome) -> None:
        """The leader's answer to the group's greeting; ConfigError when it is of another model."""
        if welcome.dim != self.dim:
            raise ConfigError(
                f"group.leader: its rows have {welcome.dim} columns, this server's {self.dim}; "
                "start both with the same model."
            )
        if welcome.liveness_s:
            check_pace(self.config.group.every_s, welcome.liveness_s, "the leader's ")
        self.leader = welcome

    def resume(self, nodes: dict[str, Reached], fences: dict[str, tuple[str, ...]]) -> None:
        """Go on where the leader's tables are; a node keeps what no checkpoint of it holds.

        fences  lives of nodes that the leader takes no push of any more
        """
        with self.changed:
            self.ledger.fences.lives.update(fences)
            for node, at in nodes.items():
                self.ledger.restore(node, at.sequence, at.tokens, at.place)
                self.ledger.of(node).durable = at.durable

    @property
    def cutting(self) -> bool:
        """Whether an entry was begun whose rows could not be fetched yet."""
        return self._cut is not None

    def take(self, sequence: int, groups: int) -> Taken | None:
        """Everything since the last time, as entry `sequence`; None when nothing was pushed."""
        with self.lock:
            self.changes.check()
            if self._cut is None and self.waiting:
                self._cut = self._begin_cut()
            elif self._cut is None:
                self.all_told()
            cut = self._cut
        if cut is None:
            return None
        taken = compose(cut, cut.moves(), self.config.group, sequence, groups)
        self._cut = None
        return taken

    def _begin_cut(self) -> Cut:
        """Everything up to now (under the lock)."""
        moves = self.cut_moves()  # first: what it has no memory for is tried again
        told, self.waiting = self.waiting, {}
        self.waiting_pushes = 0
        digests, self.accounts.digests = tuple(self.accounts.digests), {}
        return Cut(told, digests, tuple(self.scores.drain()), moves)

    def follow_words(self, delta: VocabularyDelta, next_id: int, *, closed: bool) -> None:
        """Have the words of the leader, by its ids, and their counts.

        next_id  the first id that may have been given since: of these the leader's answer may know
                 nothing yet
        """
        with self.admitting, self.changed:
            own = self.vocabulary.alive()
            gone = np.setdiff1d(own[own < next_id], delta.alive, assume_unique=True)
            self._install(np.empty(0, dtype=np.int64), (), gone)
            ids = np.asarray(delta.ids, dtype=np.int64)
            order = np.argsort(ids, kind="stable")
            words = delta.words
            self._install(ids[order], [words[i] for i in order.tolist()], gone[:0])
            self.vocabulary.next_id = max(self.vocabulary.next_id, next_id)
            self.vocabulary.set_counts(delta.alive, delta.alive_counts)
            if closed and not self.vocabulary.closed:
                self.vocabulary.shut()

    def follow_ids(self, changes: Changes) -> None:
        """The leader has given ids so far."""
        with self.lock:
            self.vocabulary.next_id = max(self.vocabulary.next_id, changes.next_id)

    def _know(self, words: Sequence[str], ids: IntArray) -> None:
        """Words to which the leader has just given rows."""
        new = (ids >= 0) & (self.vocabulary.ids(words) < 0)
        at = np.flatnonzero(new)[np.argsort(ids[new], kind="stable")]
        chosen = [words[i] for i in at.tolist()]
        self._install(ids[at], chosen, np.empty(0, dtype=np.int64))

    def _install(self, ids: IntArray, words: Sequence[str], evicted: IntArray) -> None:
        """Give words the rows of these ids (increasing), whatever ids lie between them."""
        if len(evicted):
            self.install([], evicted)
        fresh = self.vocabulary.slots_given(ids) < 0
        ids, words = ids[fresh], [word for word, new in zip(words, fresh, strict=True) if new]
        ends = np.flatnonzero(np.diff(ids) != 1) + 1
        last = self.vocabulary.next_id
        for run in np.split(np.arange(len(ids)), ends):
            if len(run):
                self.vocabulary.next_id = int(ids[run[0]])
                self.install(words[run[0] : run[-1] + 1], evicted[:0])
        self.vocabulary.next_id = max(last, self.vocabulary.next_id)


class FollowingState(Follows):
    """A replica that holds its rows itself."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.drift = Drift(self.tables)

    @property
    def moved_rows(self) -> int:
        """See Follows."""
        return len(self.drift)

    def cut_moves(self) -> Callable[[], Moves]:
        """See Follows."""
        found = {
            table: Moved(self._ids(table, each.slots), each.bases, each.now)
            for table, each in self.drift.take().items()
        }
        return lambda: found

    def adopt(self, table: Table, ids: IntArray, rows: FloatArray) -> int:
        """See Follows."""
        with self.lock:
            slots = ids if table is Table.SUB else self.vocabulary.slots(ids, "adopt")
            alive = slots >= 0
            self.drift.adopt(table, slots[alive], rows[alive])
            return int(alive.sum())

    def install(self, words: Sequence[str], evicted: IntArray) -> None:
        """Give words rows, and take those of evicted ones away (under the lock)."""
        if len(evicted):
            slots = self.vocabulary.slots(evicted, "evict")
            self.drift.forget(slots[slots >= 0])
        super().install(words, evicted)

    def _place(self, admission: Admission) -> None:
        super()._place(admission)
        self.drift.forget(admission.slots)

    def _ids(self, table: Table, slots: IntArray) -> IntArray:
        return slots if table is Table.SUB else self.vocabulary.ids_at(slots)
