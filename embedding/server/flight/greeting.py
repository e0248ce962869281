"""What a server says to a node that greets it, and what it does when a node's stream breaks."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from embedding.exchange.protocol import Ack, SharedTables, Welcome

if TYPE_CHECKING:
    from embedding.server.state import ServerState

logger = logging.getLogger(__name__)


def welcome(state: ServerState, node: str, clock: int) -> Welcome:
    """Where `node` goes on, at `clock` (under the lock)."""
    entry, sync = state.ledger.of(node), state.machine.config
    return Welcome(
        clock=clock,
        sequence=entry.accepted,
        durable=entry.durable,
        epoch=state.epoch,
        dim=state.dim,
        window_unit=state.config.window.value,
        policy=sync.policy,
        staleness=sync.staleness,
        n_push=sync.n_push,
        n_fetch=sync.n_fetch,
        session=entry.session,
        ahead=state.machine.policy.reads_ahead and not _by_columns(state),
        active=len(state.machine.board.active_clocks()),
        pace=state.machine.policy.pace(state.machine.board),
        min_count=state.vocabulary.min_count,
        young_mentions=state.young.mentions,
        usage=state.accounts.usage.wanted,
        shared=_shared(state),
        place=entry.place,
        salt=state.witnesses.salt,
        min_authors=state.witnesses.authors,
        min_sources=state.witnesses.sources,
        shards=state.locations(),
        split=state.config.split,
        liveness_s=sync.liveness_timeout_s,
    )


def acknowledgement(state: ServerState, node: str, *, duplicate: bool = False) -> Ack:
    """How far `node`'s pushes are, and how it goes on (under the lock)."""
    entry, sync = state.ledger.of(node), state.machine.config
    policy, board = state.machine.policy, state.machine.board
    member = board.members.get(node)
    share = state.balance.share(node, board.active(), policy.running) if sync.balance else 1.0
    return Ack(
        sequence=entry.accepted,
        durable=entry.durable,
        clock=0 if member is None else member.clock,
        duplicate=duplicate,
        ahead=policy.reads_ahead and not _by_columns(state),
        active=len(board.active_clocks()),
        pace=policy.pace(board),
        share=share,
    )


def fence(state: ServerState, node: str, life: str) -> dict[str, int | str]:
    """Take no push of this life of a node any more; what was taken of the node so far.

    It holds over a restart of the server, of a life too that this life of it never heard of.
    Whoever asks goes on with what the node read: `sequence` is the last push that was taken,
    `durable` the last in a checkpoint, `place` what the node said with the last one.
    """
    with state.changed:
        connected = state.ledger.fence(node, life)
        if node not in state.ledger.nodes:
            return {"sequence": 0, "durable": 0, "place": ""}
        if connected:
            logger.warning("node %s is fenced: its sources were given to others", node)
            state.execute(state.machine.leave(node), time.monotonic())
            state.accounts.tracker.leave(node)
        state.changed.notify_all()
        entry = state.ledger.of(node)
        answer: dict[str, int | str] = {
            "sequence": entry.accepted,
            "durable": entry.durable,
            "place": entry.place,
        }
    if entry.accepted > entry.durable:
        state.want_checkpoint()
    return answer


def lost(state: ServerState, node: str, session: int) -> bool:
    """A node's stream ended without a goodbye: until it is back nobody waits for it.

    True when pushes of it are in no checkpoint: if its process died, nobody can send them again
    should the server die too, so that they had better be in one soon.
    """
    with state.changed:
        entry = state.ledger.of(node)
        if entry.session != session or state.closing:
            return False
        member = state.machine.board.members.get(node)
        if member is not None and member.active:
            logger.warning("the stream of node %s broke; nobody waits for it", node)
            now = time.monotonic()
            state.execute(state.machine.idle(node, now=now), now)
        state.changed.notify_all()
        return entry.accepted > entry.durable


def _by_columns(state: ServerState) -> bool:
    """Whether nodes have no rows, to which they could add what the shards do not know yet."""
    return state.config.split == "columns"


def _shared(state: ServerState) -> SharedTables | None:
    memory = state.tables.memory
    if memory is None:
        return None
    return SharedTables(memory.path, state.tables.capacity, state.tables.buckets)
