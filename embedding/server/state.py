"""The parameter server without its network: everything that one lock guards.

Requests come in as decoded records, answers go out as records; nothing here knows of Flight.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from embedding.exchange.payload import RowDelta
from embedding.exchange.placement import placement
from embedding.exchange.protocol import (
    Ack,
    PulledRows,
    PullRequest,
    Push,
    SharedTables,
    Welcome,
    version_refused,
)
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Window
from embedding.server.admitting import WordAdmission
from embedding.server.config import ServerConfig, SyncConfig
from embedding.server.consistency import ConsistencyMachine
from embedding.server.figures.meters import Meters
from embedding.server.figures.reports import lasting, read_report
from embedding.server.grouping import GROUPS, Upstream
from embedding.server.ledger.sequence import Departures, Ledger, NodeLedger
from embedding.server.parts import SERVER_PARTS, Content, Erasure, Part, PushArrival, Saved
from embedding.server.policies.base import Apply, Instruction, PendingPush
from embedding.server.rowstore import (
    ChangeQueue,
    LocalRows,
    RowSetup,
    RowShape,
    RowStore,
    Step,
    deltas_of,
)
from embedding.server.scoring import ScoreKeeper
from embedding.server.validation import check_ids, check_push, checked
from embedding.server.words.accounting import Accounts, by_source
from embedding.server.words.digests import WordDigests
from embedding.server.words.readers import Wait
from embedding.server.words.shared import SharedCounts
from embedding.server.words.vocabulary import Vocabulary
from embedding.snapshots.format import Missing


class NodeReports(Part):
    """What nodes tell of themselves. The server's lock guards it.

    digest  of the settings that all nodes share; empty until one tells it
    last    each node's own figures, and `at` the server's clock when they came
    servers   members that are servers themselves, whose bytes are not those of nodes: nobody waits
              for their use of words
    guests    nodes of these by name, as they tell of them
    departed  nodes that said goodbye, or were fenced, here or there, and have not greeted since
    """

    def __init__(self, digest: str) -> None:
        self.digest = digest
        self.last: dict[str, dict[str, Any]] = {}
        self.at: dict[str, float] = {}
        self.servers: dict[str, Meters] = {}
        self.guests: dict[str, dict[str, Any]] = {}
        self.departed: set[str] = set()

    def put(self, node: str, report: dict[str, Any], now: float) -> None:
        self.last[node], self.at[node] = report, now

    def greet(self, node: str, digest: str) -> None:
        """A node greets; RefusedError for other settings than the nodes before it have."""
        if digest and self.digest and digest != self.digest:
            raise RefusedError(
                f"node {node}: its configuration has the digest {digest[:12]}, the server's "
                f"other nodes {self.digest[:12]}: start it with the same settings.",
                kind="greeting",
            )
        self.digest = self.digest or digest
        self.departed.discard(node)

    def save(self) -> Saved:
        facts = {
            "config_digest": self.digest,
            "reports": lasting(self.last),
            "departed": sorted(self.departed),
        }
        return Saved(facts)

    def load(self, content: Content) -> None:
        self.digest = self.digest or content.facts["config_digest"]
        self.last.update(content.facts["reports"])
        self.departed.update(content.facts["departed"])

    def forget(self, erasure: Erasure) -> None:
        if erasure.source is not None:
            self.last.clear()


logger = logging.getLogger(__name__)

PULL_WAIT_S = 1.0
"""How long a pull is held before it is answered `waiting`, so that streams stay responsive."""


class ServerState:
    """Rows, words, clocks and sequence numbers, consistent under `lock`.

    rows      in tables of this process, or on shards
    upstream  the server whose replica this is; None: what is here is the model
    words     gives words ids and rows
    held      pushes that were taken and that the policy has not let through yet
    changes   what there was no memory for is tried again before anything is read or taken
    parts     all that is counted, saved and shown, by name, in the order in which they learn of a
              push and are restored; those of other packages are the last
    """

    def __init__(
        self,
        config: ServerConfig,
        sync: SyncConfig,
        shape: RowShape,
        *,
        epoch: int | None = None,
        digests: WordDigests | None = None,
        upstream: Upstream | None = None,
    ) -> None:
        if upstream is not None:
            upstream.check(sync)
        elsewhere = placement(config)
        config = config if elsewhere is None else elsewhere.primary(config)
        rows: Callable[[RowSetup], RowStore] = LocalRows if elsewhere is None else elsewhere.rows
        self.config = config
        self.epoch = int(time.time() * 1000) if epoch is None else epoch
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.closing = False
        self.upstream = upstream
        self.vocabulary = Vocabulary.of(config, version=self.epoch << 20, digests=digests)
        self.rows = rows(RowSetup(config, sync, self.vocabulary, self.lock, shape, self.epoch))
        self.tables, self.composer, self.dim = self.rows.tables, self.rows.composer, shape.dim
        accounts = Accounts if upstream is None else upstream.accounts
        self.accounts = accounts(config, self.vocabulary, shape.dim)
        self.meters = self.accounts.meters
        self.machine = ConsistencyMachine(sync)
        self.ledger = Ledger(keeps_checkpoints=config.state_dir is not None or upstream is not None)
        self.departures = Departures(self.ledger, self.accounts.tracker)
        self.held: dict[tuple[str, int], PushArrival] = {}
        self.changes = ChangeQueue("the server")
        admission = WordAdmission if upstream is None else upstream.words
        self.words = admission(config, self.rows, self.accounts, self.changes, self.lock)
        self.scores = ScoreKeeper(config, self.tables.device, self.vocabulary)
        self.reports = NodeReports(config.config_digest)
        self.parts: dict[str, Part] = {
            "vocabulary": self.vocabulary,
            "rows": self.rows,
            **self.accounts.parts,
            "ledger": self.ledger,
            "departures": self.departures,
            "clocks": self.machine,
            "reports": self.reports,
            "admission": self.words,
            "shared counts": SharedCounts(),
            "scores": self.scores,
        }
        for name in SERVER_PARTS:
            self.parts[name] = SERVER_PARTS.get(name)(config, self.rows, self.vocabulary, sync)
        if (grouping := GROUPS.first()) is not None:
            self.parts["groups"] = grouping.followers(self)

    # -- greeting ---------------------------------------------------------------------------

    def hello(
        self, node: str, *, version: int, digest: str, clock: int, incarnation: str = ""
    ) -> Welcome:
        """A node connects; a later connection of the same node takes the place of an earlier."""
        if why := version_refused(version):
            raise RefusedError(f"node {node}: {why}", kind="greeting")
        if not node:
            raise RefusedError("node '': a node needs a name.", kind="greeting")
        with self.changed:
            self.reports.greet(node, digest)
            self.ledger.greet(node, incarnation)
            self.accounts.greet(node, incarnation)
            self.departures.back(node)
            now = time.monotonic()
            at, instructions = self.machine.join(node, now=now, clock=clock)
            self.execute(instructions, now)
            own = self._welcome(node, at)
            return own if self.upstream is None else self.upstream.welcome(own)

    def _welcome(self, node: str, clock: int) -> Welcome:
        """Where `node` goes on, at `clock`."""
        entry, sync, memory = self.ledger.of(node), self.machine.config, self.tables.memory
        tables = self.tables
        return Welcome(
            clock=clock,
            sequence=entry.accepted,
            durable=entry.durable,
            epoch=self.epoch,
            dim=self.dim,
            window_unit=str(self.config.calendar),
            policy=sync.policy,
            staleness=sync.staleness,
            n_push=sync.n_push,
            n_fetch=sync.n_fetch,
            session=entry.session,
            ahead=self._ahead(),
            active=len(self.machine.board.active_clocks()),
            pace=self.machine.policy.pace(self.machine.board),
            min_count=self.vocabulary.min_count,
            rare_mentions=self.accounts.rare.mentions,
            usage=self.accounts.usage.wanted,
            shared=None
            if memory is None
            else SharedTables(memory.path, tables.capacity, tables.buckets, memory.on_gpu),
            offset=entry.offset,
            salt=self.words.anonymity.salt,
            min_authors=self.words.anonymity.authors,
            min_sources=self.words.anonymity.sources,
            shards=self.rows.locations(),
            split=self.rows.layout["split"],
            liveness_s=sync.liveness_timeout_s,
        )

    def _ahead(self) -> bool:
        """Whether a node may read before its last push is applied: it adds that itself."""
        return self.machine.policy.reads_ahead and self.rows.nodes_hold_rows

    # -- pull and push ----------------------------------------------------------------------

    def pull(
        self, node: str, request: PullRequest, *, half: bool = False
    ) -> PulledRows | list[str]:
        """Rows (float16 with `half`), or the names of the nodes that the policy waits for."""
        began = time.monotonic()
        with self.changed:
            at, waiting_for = self._turn(node, request.clock, began)
            if waiting_for:
                return waiting_for
            self.changes.check()
            waited = time.monotonic() - began
            pulled = self.rows.read(request)
            self.meters.read(node, sum(map(len, pulled.rows.values())))
            sequence = self.ledger.of(node).applied
        scored = pulled.to_score()
        if isinstance(scored, list):
            return scored
        nll = tuple(self.scores.score(*each) for each in scored)
        as_sent = self.tables.device.as_sent
        sent = {table: as_sent(rows, half) for table, rows in pulled.rows.items()}
        return PulledRows(at, sent, sequence, nll, waited, pulled.at)

    def _turn(self, node: str, clock: int, began: float) -> tuple[int, list[str]]:
        """Wait a moment for the policy: the clock that the node reads at, or whom it waits for."""
        while True:
            now = time.monotonic()
            at, waiting_for, instructions = self.machine.pull(node, clock, now=now)
            self.execute(instructions, now)
            if not waiting_for:
                self.changed.notify_all()
                return at, []
            left = began + PULL_WAIT_S - now
            if left <= 0 or self.closing or node in waiting_for:
                return at, waiting_for
            self.changed.wait(left)

    def push(self, push: Push, session: int | None = None) -> Ack:
        """Take a push; the policy says when it is applied.

        session  of the stream that it came by: a process that was replaced adds nothing behind the
                 place where its successor goes on
        """
        arrival = self.arrival(push)
        with self.changed:
            if self.was_taken(arrival.push, session):
                self.meters.duplicates += 1
                return self.ack(push.node, duplicate=True)
            return self.take(arrival)

    def arrival(self, push: Push) -> PushArrival:
        """The push, looked at before the lock is taken; RefusedError says what is wrong with it."""
        check_push(push, self.accounts.tracker.sources)
        looked_at = checked(push, self.dim, self.config.max_message_bytes)
        return PushArrival.prepare(looked_at, push.nbytes)

    def was_taken(self, push: Push, session: int | None) -> bool:
        """Whether a push was taken before; RefusedError when it cannot be (under the lock)."""
        if session is not None:
            self.ledger.check(push.node, session)
        self.changes.check()
        if self.ledger.is_duplicate(push.node, push.sequence):
            return True
        for delta in push.deltas:
            self.rows.slots(delta.table, delta.ids, "push")
        check_ids(push, self.vocabulary)
        return False

    def take(self, arrival: PushArrival) -> Ack:
        """Have the policy decide about a push (under the lock)."""
        push, now = arrival.push, time.monotonic()
        ticket = PendingPush(push.node, push.clock, push.sequence)
        instructions = self.machine.push(ticket, now=now)
        self.held[push.node, push.sequence] = arrival
        self.ledger.accept(push.node, push.sequence, push.offset)
        self.meters.moved(push, arrival.nbytes)
        self.execute(instructions, now)
        measured = self.machine.measured(push.node, by_source(push), push.busy_s, now=now)
        self.execute(measured, now)
        self.changed.notify_all()
        return self.ack(push.node)

    def confirm(self, node: str) -> Ack:
        with self.lock:
            return self.ack(node)

    def ack(self, node: str, *, duplicate: bool = False) -> Ack:
        """How far the node's pushes are, and how it goes on (under the lock)."""
        entry, policy, board = self.ledger.of(node), self.machine.policy, self.machine.board
        member = board.members.get(node)
        return Ack(
            sequence=entry.accepted,
            durable=entry.durable,
            clock=0 if member is None else member.clock,
            duplicate=duplicate,
            ahead=self._ahead(),
            active=len(board.active_clocks()),
            pace=policy.pace(board),
            share=self.machine.share(node),
        )

    def execute(self, instructions: Sequence[Instruction], now: float) -> None:
        """Apply pushes, or drop them, in this order, as the consistency machine says (under the
        lock)."""
        if not instructions:
            return
        if self.upstream is not None:
            for ticket in (ticket for order in instructions for ticket in order.tickets):
                push = self.held[ticket.node, ticket.sequence].push
                self.upstream.released(push, self.ledger.of(ticket.node).applied)
        # Shards hear of all of them before a window that one completes is copied.
        self.rows.released(instructions)
        for instruction in instructions:
            arrivals = [self.held.pop((t.node, t.sequence)) for t in instruction.tickets]
            if isinstance(instruction, Apply) and not self.changes.waiting:
                self.accounts.complete(arrivals, now)
            self.changes.carry_out(partial(self._planned, instruction, arrivals, now))
        self.changed.notify_all()

    def _planned(
        self, instruction: Instruction, arrivals: Sequence[PushArrival], now: float
    ) -> Iterator[Step]:
        """Rows change first. So a push that there was no memory for is not in the books, where
        its node would take it for applied."""
        pushes = [arrival.push for arrival in arrivals]
        if isinstance(instruction, Apply):
            scale = instruction.scale
            for delta, writer in deltas_of(pushes, scale, instruction.combine):
                yield partial(self.add, delta, scale, writer)
        else:
            yield partial(self._dropped, pushes)
        for arrival in arrivals:
            yield partial(self.learnt, arrival, now)

    def add(self, delta: RowDelta, scale: float, writer: str | None) -> None:
        """Add to rows (see RowStore.add) and count them."""
        added = self.rows.add(delta, scale, writer)
        self.meters.dropped_rows += len(delta.ids) - added
        self.meters.rows_in += added

    def _dropped(self, pushes: Sequence[Push]) -> None:
        self.meters.dropped_pushes += len(pushes)
        self.meters.dropped_tokens += sum(push.tokens for push in pushes)
        self.tables.lost([push.node for push in pushes])

    def learnt(self, arrival: PushArrival, now: float) -> None:
        """All parts count a push whose rows have changed (under the lock)."""
        closed = self.accounts.forgotten
        for part in self.parts.values():
            part.learnt(arrival, now, closed)

    # -- control ----------------------------------------------------------------------------

    def idle(self, node: str) -> None:
        with self.changed:
            now = time.monotonic()
            self.execute(self.machine.idle(node, now=now), now)
            self.changed.notify_all()

    def leave(self, node: str, session: int) -> None:
        """A node said goodbye, unless it has connected again since."""
        with self.changed:
            if self.ledger.of(node).session == session:
                self._depart(node)
                self.changed.notify_all()

    def _depart(self, node: str) -> None:
        """A node reads no more (under the lock)."""
        self.execute(self.machine.leave(node), time.monotonic())
        self.departures.gone(node)
        self.reports.departed.add(node)

    def lost(self, node: str, session: int) -> bool:
        """A node's stream ended without a goodbye: until it is back nobody waits for it.

        True when pushes of it are in no checkpoint: if its process died, nobody can send them
        again should the server die too, so that they had better be in one soon.
        """
        with self.changed:
            entry = self.ledger.of(node)
            if entry.session != session or self.closing:
                return False
            member = self.machine.board.members.get(node)
            if member is not None and member.active:
                logger.warning("the stream of node %s broke; nobody waits for it", node)
                now = time.monotonic()
                self.execute(self.machine.idle(node, now=now), now)
            self.changed.notify_all()
            return entry.accepted > entry.durable

    def fence(self, node: str, incarnation: str) -> NodeLedger:
        """Take no push of this incarnation of a node any more; how far the node's pushes are.

        It holds over a restart of the server, of an incarnation too that this incarnation of it
        never heard of.
        """
        with self.changed:
            connected = self.ledger.fence(node, incarnation)
            if node not in self.ledger.nodes:
                return NodeLedger()
            if connected:
                logger.warning("node %s is fenced: its sources were given to others", node)
                self._depart(node)
            self.changed.notify_all()
            return replace(self.ledger.of(node))

    def report(self, node: str, report: dict[str, Any]) -> None:
        pending, event_now = read_report(report)
        with self.lock:
            if node in self.reports.departed:
                # Its thread was held up and reports after the goodbye. Windows would wait for what
                # nobody will push.
                return
            now = time.monotonic()
            self.machine.seen(node, now=now)
            self.reports.put(node, report, now)
            self.accounts.tracker.report(node, pending, now=now, event_now=event_now)
            if node in self.living():
                # Before it has greeted it may hold pushes that this server lost.
                self.accounts.tracker.back(node)

    def present(self) -> set[str]:
        """Nodes of this server that take part or rest (under the lock)."""
        members = self.machine.board.members
        return {
            name for name, member in members.items() if member.present
        } - self.reports.servers.keys()

    def living(self) -> set[str]:
        """Nodes that take part or rest, those of other servers too (under the lock)."""
        guests = self.reports.guests.items()
        return self.present() | {name for name, node in guests if node.get("state") != "gone"}

    def wait(self, starts: Sequence[int], *, closed: bool = False) -> Wait:
        """For whom windows wait until all is handed in (under the lock).

        closed  they are published: what came since is waited for as well
        """
        living, accounts = self._awaited(), self.accounts
        waits = [
            accounts.readers.wait(start, living, complete=closed or accounts.tracker.passed(start))
            for start in starts
        ]
        return Wait(
            tuple(sorted({node for wait in waits for node in wait.readers})),
            tuple(sorted({text for wait in waits for text in wait.lost})),
            tuple(sorted({node for wait in waits for node in wait.heirs})),
        )

    def missing(self, starts: Sequence[int]) -> tuple[Missing, ...]:
        """What nobody has handed in of windows (under the lock)."""
        accounts, living = self.accounts, self._awaited()
        missing = [each for start in starts for each in accounts.readers.missing(start, living)]
        if any(accounts.usage.dropped[start] for start in starts):
            missing.append(Missing(part="usage", reason="usage_limit"))
        return tuple(missing)

    def _awaited(self) -> set[str]:
        """Nodes that are there, or have yet to come back to a server that was restarted.

        Where none is, those that died without a goodbye and owe something: they are started again,
        however long that takes, and nobody else could read their text again.
        """
        awaited = self.living() | self.accounts.tracker.expected
        return awaited or self.accounts.readers.owing - self.reports.departed

    def latest_reports(self) -> list[tuple[float, dict[str, Any]]]:
        with self.lock:
            at, living = self.reports.at, self.living()
            last = self.reports.last.items()
            return [(at.get(node, 0.0), report) for node, report in last if node in living]

    def configure(self, sync: SyncConfig) -> None:
        with self.changed:
            before = self.machine.config
            if self.upstream is not None:
                self.upstream.check(sync)
            for part in reversed(self.parts.values()):  # groups say more than rows
                part.check_policy(sync, before)
            for part in self.parts.values():
                part.reconfigure(sync)
            now = time.monotonic()
            self.execute(self.machine.configure(sync, now=now), now)
            logger.info("policy %s → %s", before.model_dump(), sync.model_dump())
            self.changed.notify_all()

    def tick(self) -> None:
        """Time passed: nodes that were silent too long are gone."""
        with self.changed:
            now = time.monotonic()
            gone, instructions = self.machine.expire(now=now)
            instructions += self.machine.reconsider(now=now)
            self.execute(instructions, now)
            for node in gone:
                logger.warning("node %s was silent too long and counts as gone", node)
                self.departures.gone(node)
            self.changes.advance()
            for name, part in self.parts.items():
                try:
                    part.tick(now)
                except Exception:
                    logger.exception("%s: the server goes on after an error of a tick", name)
            if gone:
                self.changed.notify_all()

    def due(self) -> list[Window]:
        """Windows that the watermark has passed and that were not cut."""
        with self.lock:
            return self.accounts.due(time.monotonic())

    def flush(self) -> None:
        with self.changed:
            self.execute(self.machine.flush(), time.monotonic())

    def close(self) -> None:
        with self.changed:
            self.closing = True
            self.changed.notify_all()
