"""Taking the pushes of several nodes that come as one message: all of them or none."""

from __future__ import annotations

from collections.abc import Sequence

from embedding.exchange.protocol import Ack, Push
from embedding.kernel.errors import RefusedError
from embedding.server.ledger.sequence import Verdict
from embedding.server.policies.board import PendingPush
from embedding.server.state import ServerState
from embedding.server.validation import check_words, checked
from embedding.server.words.accounting import PushArrival


def push_together(state: ServerState, pushes: Sequence[Push], sessions: Sequence[int]) -> list[Ack]:
    """Take pushes of different nodes, the first of which has everybody's rows.

    RefusedError, with nothing taken, when one of them cannot be: its node sent it by itself
    meanwhile, for instance. Then each node sends its own.
    """
    for push in pushes:
        PushArrival.prepare(checked(push, state.dim, state.config.max_message_bytes))
    with state.changed:
        for push, session in zip(pushes, sessions, strict=True):
            state.check_session(push.node, session)
            if state.ledger.judge(push.node, push.sequence) is Verdict.DUPLICATE:
                raise RefusedError(
                    f"push {push.sequence} of node {push.node} among others: it was taken before."
                )
            for delta in push.deltas:
                state.rows.slots(delta.table, delta.ids, "push")
            check_words(push, state.vocabulary)
            state.machine.check(PendingPush(push.node, push.clock, push.sequence))
        with state.rows.together(tuple((push.node, push.sequence) for push in pushes)):
            return [state.push(push) for push in pushes]
