"""The clock state machine: events in, instructions out; no threads, no tensors, no wall clock.

Nodes come, pull, push, fall idle and go. The policy (`policies/`) decides when a push is applied
and when a pull may read; this machine keeps the board that it decides on.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from embedding.kernel.errors import RefusedError
from embedding.server.config import SyncConfig
from embedding.server.parts import Content, Moment, Part, Saved
from embedding.server.policies.base import (
    Apply,
    ClockEntry,
    ClockTable,
    Instruction,
    PendingPush,
    Policy,
)
from embedding.server.policies.traits import POLICIES

logger = logging.getLogger(__name__)


LEAST, MOST = 1 / 32, 4.0
"""Bounds of a share."""
KEEP = 0.7
"""What the past weighs against a new push."""
STILL = 0.15
"""A share moves only when it is off by more than this part, so that alike nodes stay alike."""
_ENOUGH = 3
"""Pushes of a node before its speed is believed: the first ones compile and warm up."""


@dataclass
class NodeSpeed:
    """tokens and seconds are weighted sums; share is the factor that was sent last.

    Where a policy lets nodes wait for each other, a clock takes as long as its slowest node. Each
    node tells how long it was at work on a push (without the time that it was held back); the
    server keeps its speed, tokens by time, and answers with the node's share: a factor on its own
    block size,

        share = speed / mean speed of the nodes that take part,

    so that all together learn as many tokens a clock as before. Repeated, it converges where the
    times are the same, also when a block has costs that do not shrink with it.
    """

    tokens: float = 0.0
    seconds: float = 0.0
    pushes: int = 0
    share: float = 1.0

    @property
    def rate(self) -> float | None:
        """Tokens a second at work; None until it was measured often enough."""
        return self.tokens / self.seconds if self.pushes >= _ENOUGH and self.seconds else None


class Balance:
    """Speeds and shares of all nodes. Not thread-safe: the server's lock guards it."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeSpeed] = {}

    def learnt(self, node: str, tokens: int, seconds: float) -> None:
        """A push of `node` took `seconds` at work (0: not measured) for `tokens` fresh tokens."""
        if tokens <= 0 or seconds <= 0:
            return
        speed = self.nodes.setdefault(node, NodeSpeed())
        speed.tokens = KEEP * speed.tokens + tokens
        speed.seconds = KEEP * speed.seconds + seconds
        speed.pushes += 1

    def share(self, node: str, active: Collection[str], policy: str) -> float:
        """The factor on the node's block size: 1 alone, beside unmeasured nodes, or where
        nobody waits."""
        speed = self.nodes.setdefault(node, NodeSpeed())
        wanted = self._wanted(node, active) if POLICIES.traits(policy).waits else 1.0
        if wanted == 1.0 or abs(wanted - speed.share) > STILL * speed.share:
            speed.share = wanted
        return speed.share

    def forget(self, node: str) -> None:
        self.nodes.pop(node, None)

    def _wanted(self, node: str, active: Collection[str]) -> float:
        known = [self.nodes[name].rate for name in active if name in self.nodes]
        rates = [rate for rate in known if rate is not None]
        own = self.nodes[node].rate
        if own is None or node not in active or len(rates) < max(len(active), 2):
            return 1.0
        return min(max(own * len(rates) / sum(rates), LEAST), MOST)


@dataclass(frozen=True)
class Switch:
    """Another policy began to rule at `at` (the machine's time), and why."""

    at: float
    before: str
    after: str
    reason: str


class ConsistencyMachine(Part):
    """Tracks clocks and holds pushes back as the policy wants.

    switches  the last changes of the ruling policy
    switched  how many there were
    balance   how fast nodes are
    """

    def __init__(self, config: SyncConfig) -> None:
        self.config = config
        self._policy = POLICIES.get(config.policy)(config)
        self.board = ClockTable()
        self.switches: deque[Switch] = deque(maxlen=20)
        self.switched = 0
        self.balance = Balance()

    @property
    def policy(self) -> Policy:
        """The policy that rules: that of the settings, or the one that `auto` chose."""
        return self._policy.ruling

    def join(self, node: str, *, now: float, clock: int = 0) -> tuple[int, list[Instruction]]:
        """A node greets; returns the clock at which it goes on. It takes part from its first pull.

        Until then others do not wait for it, also not if it took part before its stream broke.

        clock: where the node itself thinks it is (it knows better after a restart of the server).
        """
        self.balance.forget(node)
        member = self.board.members.setdefault(node, ClockEntry(node))
        member.present, member.active, member.last_seen = True, False, now
        member.clock = max(member.clock, clock)
        member.greeted = clock
        return max(member.clock, self.board.current()), self._release()

    def pull(
        self, node: str, clock: int, *, now: float
    ) -> tuple[int, list[str], list[Instruction]]:
        """A node wants to read: the clock it reads at, the nodes it has to wait for first, and
        what its going on lets the others' pushes do.

        A node that was idle takes part again at the clock that the others have reached. One that
        has yet to push its last clock may read ahead by one: what it has not pushed it adds itself.
        """
        member = self._member(node, now)
        if not member.active:
            member.clock = max(member.clock, self.board.current())
            member.active = True
        if clock > member.clock + 1:
            raise RefusedError(
                f"pull of node {node} at clock {clock}: it has finished {member.clock} clocks "
                f"and reads at that one, or ahead at {member.clock + 1}.",
                kind="clock",
            )
        if clock > member.clock and not self.policy.reads_ahead:
            return clock, [node], []
        if clock <= member.clock:
            member.clock = max(member.clock, self.board.floor)
        at = max(clock, member.clock)
        instructions = self._release()
        return at, self.policy.waiting_for(self.board, at), instructions

    def check(self, ticket: PendingPush) -> None:
        """RefusedError for a push at a clock that its node is not at."""
        member = self._known(ticket.node)
        newest = max((t.clock for t in self.board.held if t.node == ticket.node), default=0)
        if ticket.clock < newest:
            raise RefusedError(
                f"push {ticket.sequence} of node {ticket.node} at clock {ticket.clock}: "
                f"its push before that was at clock {newest}.",
                kind="clock",
            )
        if ticket.clock > member.clock:
            raise RefusedError(
                f"push {ticket.sequence} of node {ticket.node} at clock {ticket.clock}: "
                f"that node reads at clock {member.clock}.",
                kind="clock",
            )

    def push(self, ticket: PendingPush, *, now: float) -> list[Instruction]:
        """A push came in; what to do now."""
        self.check(ticket)
        member = self._member(ticket.node, now)
        member.clock = max(member.clock, ticket.clock + 1)
        if ticket.clock < self.board.since:
            # Read under the policy before this one: no clock of this one's waits for it.
            return [Apply((ticket,)), *self._release()]
        self.board.held.append(ticket)
        return self._release()

    def measured(
        self, node: str, tokens: dict[str, int], seconds: float, *, now: float
    ) -> list[Instruction]:
        """A node took so long for `tokens` of each source; `auto` may choose another policy."""
        self.board.speeds.add(node, tokens, seconds, now)
        self.balance.learnt(node, sum(tokens.values()), seconds)
        return self.reconsider(now=now)

    def share(self, node: str) -> float:
        """The factor on the size of a node's blocks."""
        if not self.config.balance:
            return 1.0
        return self.balance.share(node, self.board.active(), self.policy.name)

    def reconsider(self, *, now: float) -> list[Instruction]:
        """Let the policy look at the board again (`auto` chooses)."""
        before = self.policy
        flushed = before.flush(self.board)
        reason = self._policy.reconsider(self.board, now=now)
        if reason is None:
            return []
        self._begin(Switch(now, before.name, self.policy.name, reason))
        return flushed

    def finished(self) -> None:
        self.policy.finished(self.board)

    def save(self) -> Saved:
        return Saved(
            {"clocks": {member.name: member.clock for member in self.board.members.values()}}
        )

    def load(self, content: Content) -> None:
        for node, clock in content.facts["clocks"].items():
            self.board.members[node] = ClockEntry(node, clock=clock)

    def describe(self, at: Moment) -> dict[str, Any]:
        """docs/concepts/synchronisation.md.

        policy       as it was asked for; running: the one that rules, which `auto` chooses
        pooled       nodes whose deltas of the same rows are added up
        push_every, pull_every   blocks of a node
        variation    coefficient of variation of the sources' token rates, null while unknown
        rates        tokens a second of each source at each node, waiting for others left out
        switched     changes of the ruling policy; switches: the last of them
        """
        policy, board, wall = self.policy, self.board, time.time()
        pace, nodes = policy.pace(board), board.active()
        sync = {
            "policy": self.config.policy,
            "running": policy.name,
            "pooled": pace.pooled,
            "push_every": pace.push_every,
            "pull_every": pace.pull_every,
            "variation": board.speeds.variation(nodes),
            "rates": {
                f"{node} {source}": n for (node, source), n in board.speeds.rates(nodes).items()
            },
            "switched": self.switched,
            "switches": [
                {
                    "at": at.iso(wall - (at.now - switch.at)),
                    "from": switch.before,
                    "to": switch.after,
                    "reason": switch.reason,
                }
                for switch in self.switches
            ],
            "settings": self.config.model_dump(mode="json"),
        }
        return {"policy": self.config.policy, "staleness": self.config.staleness, "sync": sync}

    def check_rollback(self) -> None:
        """See Part: nodes that train would go on with what is to be forgotten."""
        if training := sorted(self.board.active()):
            raise RefusedError(f"rollback: {', '.join(training)} still train; stop the pool first.")

    def idle(self, node: str, *, now: float) -> list[Instruction]:
        """A node has nothing to learn for the moment; it may not have greeted this server yet."""
        member = self.board.members.setdefault(node, ClockEntry(node))
        member.present, member.active, member.last_seen = True, False, now
        return self._release()

    def leave(self, node: str) -> list[Instruction]:
        """A node went away; what it pushed stays."""
        member = self.board.members.get(node)
        if member is not None:
            member.active = member.present = False
        return self._release()

    def seen(self, node: str, *, now: float) -> None:
        """A heartbeat that is neither pull nor push."""
        member = self.board.members.get(node)
        if member is not None:
            member.last_seen = now

    def expire(self, *, now: float) -> tuple[list[str], list[Instruction]]:
        """Time passed: nodes that were silent too long are gone. Returns their names."""
        limit = now - self.config.liveness_timeout_s
        gone = [m.name for m in self.board.members.values() if m.present and m.last_seen < limit]
        for name in gone:
            member = self.board.members[name]
            member.active = member.present = False
        return gone, self._release() if gone else []

    def configure(self, config: SyncConfig, *, now: float = 0.0) -> list[Instruction]:
        """Another policy from now on; what the old one held back is applied first.

        All go on at the clock that the furthest has reached: nobody waits until those behind have
        caught up clock by clock, only until they have pushed the block that they are at.
        """
        policy = POLICIES.get(config.policy)(config)
        flushed = self.flush()
        before, self.config, self._policy = self.policy.name, config, policy
        self._begin(Switch(now, before, self.policy.name, "it was asked for"))
        return flushed

    def flush(self) -> list[Instruction]:
        """Apply everything held back."""
        flushed = self.policy.flush(self.board)
        self.board.held.clear()
        return flushed

    def _begin(self, switch: Switch) -> None:
        """A policy begins, with nothing held back."""
        self.board.held.clear()
        self.board.since = max(self.board.since, self.board.furthest())
        if switch.before != switch.after:
            logger.info("policy %s → %s: %s", switch.before, switch.after, switch.reason)
            self.switches.append(switch)
            self.switched += 1

    def _known(self, node: str) -> ClockEntry:
        member = self.board.members.get(node)
        if member is None:
            raise RefusedError(f"node {node}: it has to greet the server first.")
        return member

    def _member(self, node: str, now: float) -> ClockEntry:
        member = self._known(node)
        member.present, member.last_seen = True, now
        return member

    def _release(self) -> list[Instruction]:
        upto = self.policy.closes(self.board)
        instructions = self.policy.release(self.board, upto)
        self.board.closed = upto
        done = {ticket for instruction in instructions for ticket in instruction.tickets}
        if done:
            self.board.held = [ticket for ticket in self.board.held if ticket not in done]
        return instructions
