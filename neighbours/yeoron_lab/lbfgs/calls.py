"""What a node says in a round of L-BFGS, carried out under the server's lock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from embedding.exchange.codec import bounded, check, from_message, to_message
from embedding.exchange.pace import ROUND
from embedding.exchange.wire import Message
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import FloatArray
from embedding.server.flight.shell import Who
from embedding.server.state import ServerState
from yeoron_lab.lbfgs.batch import Offer, Ready, Result, Task, Work

if TYPE_CHECKING:
    from yeoron_lab.lbfgs.rounds import Rounds

HOLD_S = 0.25
"""How long a node that asks for work is kept waiting for some."""
_OVER = Message({"status": "ok", "do": "read"})
_LATER = Message({"status": "ok", "do": "wait"})


class RoundCalls:
    """Of one stream; `who` says which node greeted on it."""

    def __init__(self, rounds: Rounds, state: ServerState, who: Who) -> None:
        self._rounds, self._state = rounds, state
        self._who = who

    def take_part(self, message: Message) -> Message:
        """The answer to one message of a round; RefusedError says what is wrong with it."""
        state, (node, _), what = self._state, self._who(), message.header.get("do")
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
                found = self._ask(node, result)
                if isinstance(found, Task):
                    return to_message(found, status="ok", do="compute")
                if not found:
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
        found = rounds.work(node, result, machine.board.active(), machine.config)
        if rounds.ended > ended:
            machine.finished()
        if rounds.ended > ended or result is not None:
            state.changed.notify_all()
        return found


def check_gradient(node: str, *parts: FloatArray) -> None:
    """RefusedError when a gradient holds what no sum can take."""
    for part in parts:
        if not bounded(part):
            raise RefusedError(
                f"batch: a gradient of node {node} holds values that are not finite or are "
                "absurdly large.",
                kind="values",
            )
