"""The state of a server that follows: a replica of the leading group's tables.

To its nodes it is a parameter server like any other. What they push it applies at once, and keeps
what of it the leader has to hear: how far rows moved (`drift.py`), and by node what was read. It
gives no ids and cuts nothing; both are the leader's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from embedding.errors import ConfigError, RefusedError, UnavailableError
from embedding.exchange.compression.halves import narrow, widen
from embedding.exchange.groups.client import Changes
from embedding.exchange.groups.entry import Entry, merged
from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push, VocabularyDelta, Welcome
from embedding.exchange.testimony import Attestation
from embedding.positions import positions
from embedding.records import FloatArray, HalfArray, IntArray, Table, TimeArray
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.groups.config import WRONG_POLICIES
from embedding.server.groups.drift import Drift, Moved
from embedding.server.groups.shares import group_shares
from embedding.server.policies import Instruction
from embedding.server.state import ServerState
from embedding.server.words.accounting import Accounts, Arrival
from embedding.server.words.vocabulary import Admission, Vocabulary

COMPACT = 64
"""Pushes of a node that are put together, before the leader is told of them."""

Ask = Callable[[Sequence[str], IntArray, Attestation | None], IntArray]


def following_config(config: ServerConfig) -> ServerConfig:
    """As a group that follows needs it: what only the leader keeps or cuts is left out."""
    return config.model_copy(
        update={
            "state_dir": None,
            "snapshots": None,
            "cut": "manual",
            "usage_replicas": 0,
            "young_mentions": 0,
        }
    )


def check_follows(sync: SyncConfig) -> None:
    """ConfigError for a policy that does not go with server groups."""
    if sync.policy in WRONG_POLICIES:
        raise ConfigError(
            f"policy {sync.policy} with server groups: its nodes change rows past the pushes that "
            "groups tell each other of; any other policy is accepted."
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


@dataclass
class Told:
    """Pushes of a node that the leader has not heard of; `after` is the number before them."""

    after: int
    pushes: list[Push] = field(default_factory=list)

    def add(self, push: Push) -> None:
        """One more; many become one."""
        self.pushes.append(replace(push, deltas=(), packed=()))
        if len(self.pushes) >= COMPACT:
            self.pushes = [merged(self.pushes)]


@dataclass(frozen=True)
class Taken:
    """What leaves the group: its entry, and the rows that the leader has once it is applied."""

    entry: Entry
    rows: dict[Table, tuple[IntArray, FloatArray]]


class FollowingState(ServerState):
    """A replica. `ask` asks the leader for ids; UnavailableError while it is away."""

    def __init__(
        self,
        config: ServerConfig,
        sync: SyncConfig,
        *,
        dim: int,
        seed: int,
        epoch: int | None = None,
        buckets: int = 0,
        biases: int = 0,
    ) -> None:
        check_follows(sync)
        super().__init__(
            config, sync, dim=dim, seed=seed, epoch=epoch, buckets=buckets, biases=biases
        )
        self.accounts: PassingAccounts = PassingAccounts(config, self.vocabulary, dim)
        self.meters = self.accounts.meters
        self.ledger.keeps_checkpoints = True
        self.drift = Drift(self.tables)
        self.waiting: dict[str, Told] = {}
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
        check_follows(sync)
        super().configure(sync)

    def install(self, words: Sequence[str], evicted: IntArray) -> None:
        """Give words rows, and take those of evicted ones away (under the lock)."""
        if len(evicted):
            slots = self.vocabulary.slots(evicted, "evict")
            self.drift.forget(slots[slots >= 0])
        super().install(words, evicted)

    def _place(self, admission: Admission) -> None:
        super()._place(admission)
        self.drift.forget(admission.slots)

    # -- towards the leader -----------------------------------------------------------------

    def begin(self, welcome: Welcome) -> None:
        """The leader's answer to the group's greeting; ConfigError when it is of another model."""
        if welcome.dim != self.dim:
            raise ConfigError(
                f"group.leader: its rows have {welcome.dim} columns, this server's {self.dim}; "
                "start both with the same model."
            )
        self.leader = welcome

    def resume(self, nodes: dict[str, tuple[int, str, int]]) -> None:
        """Go on where the leader's tables are: how far each node's pushes are in them."""
        with self.changed:
            for node, (sequence, place, tokens) in nodes.items():
                self.ledger.restore(node, sequence, tokens, place)

    def take(self, sequence: int, groups: int) -> Taken | None:
        """Everything since the last time, as entry `sequence`; None when nothing was pushed."""
        group = self.config.group
        with self.lock:
            if not self.waiting:
                return None
            waiting, self.waiting = self.waiting, {}
            self.waiting_pushes = 0
            moved = self.drift.take()
            ids = {t: self._ids(t, each.slots) for t, each in moved.items()}
            digests, self.accounts.digests = tuple(self.accounts.digests), {}
        half = group.rows == "float16"
        parts = tuple(_short(merged(told.pushes), half=half) for told in waiting.values())
        read = _occurrences(parts)
        deltas, rows = [], {}
        for table, each in moved.items():
            shares = np.ones(len(each.slots), dtype=np.float32)
            if table is not Table.SUB:
                shares = group_shares(_of(read, ids[table]), groups, group.curvature)
            delta, held = _sent(each, shares, half=half)
            deltas.append(RowDelta(table, ids[table], delta))
            rows[table] = (ids[table], held)
        entry = Entry(
            group.name,
            sequence,
            parts,
            tuple(told.after for told in waiting.values()),
            tuple(deltas),
            digests,
            tuple(self.scores.drain()),
        )
        return Taken(entry, rows)

    def adopt(self, table: Table, ids: IntArray, rows: FloatArray) -> int:
        """The leader has these rows; how many of their words have a row here."""
        with self.lock:
            slots = ids if table is Table.SUB else self.vocabulary.slots(ids, "adopt")
            alive = slots >= 0
            self.drift.adopt(table, slots[alive], rows[alive])
            return int(alive.sum())

    def follow_words(self, delta: VocabularyDelta, next_id: int, *, closed: bool) -> None:
        """Have the words of the leader, by its ids, and their counts."""
        with self.admitting, self.changed:
            gone = np.setdiff1d(self.vocabulary.alive(), delta.alive, assume_unique=True)
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

    def _ids(self, table: Table, slots: IntArray) -> IntArray:
        return slots if table is Table.SUB else self.vocabulary.ids_at(slots)


def _short(part: Push, *, half: bool) -> Push:
    """The part as it is sent: sums of contexts as float16."""
    if not half:
        return part
    young, usage = part.young, part.usage
    if young is not None:
        young = replace(young, sums=_halves(young.sums))
    if usage is not None:
        usage = replace(usage, slopes=_halves(usage.slopes))
    reread = tuple(replace(each, slopes=_halves(each.slopes)) for each in part.reread)
    return replace(part, young=young, usage=usage, reread=reread)


def _halves(sums: FloatArray | HalfArray) -> HalfArray:
    largest = np.finfo(np.float16).max
    return narrow(np.clip(sums.astype(np.float32), -largest, largest))


def _occurrences(parts: Sequence[Push]) -> dict[str, Any]:
    """How often each word was read: ids int64 (increasing) and times float64."""
    none = np.empty(0, dtype=np.int64)
    ids = np.concatenate([none, *(part.counts.ids for part in parts)])
    times = np.concatenate([none, *(part.counts.counts for part in parts)])
    some, at = np.unique(ids[ids >= 0], return_inverse=True)
    return {"ids": some, "times": np.bincount(at, times[ids >= 0], minlength=len(some))}


def _of(read: dict[str, Any], ids: IntArray) -> TimeArray:
    """Occurrences of some words, float64 [n]; 0 for those that were noise alone."""
    found = np.zeros(len(ids), dtype=np.float64)
    at = positions(read["ids"], ids)
    found[at >= 0] = read["times"][at[at >= 0]]
    return found


def _sent(moved: Moved, shares: FloatArray, *, half: bool) -> tuple[Any, FloatArray]:
    """What is sent of rows that moved, and the rows that the leader has with it added."""
    delta = (moved.now - moved.bases) * shares[:, None]
    if half:
        short = narrow(delta)
        return short, moved.bases + widen(short)
    return delta, moved.bases + delta
