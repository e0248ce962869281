"""The queue's flow control as a state machine: no process, no clock."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from embedding.kernel.errors import InputError
from embedding.stream.queue import Credit, cost
from generated import examples

CAPACITY = 100


class Flow(RuleBasedStateMachine):
    """A sender, and a receiver that gives credit back, with a slow wire in each direction."""

    def __init__(self) -> None:
        super().__init__()
        self.sender = Credit(CAPACITY)
        self.there: deque[tuple[bytes, int]] = deque()
        self.waiting: deque[tuple[bytes, int]] = deque()
        self.back: deque[int] = deque()
        self.put: list[bytes] = []
        self.got: list[bytes] = []

    @rule(tokens=st.integers(0, 150))
    def offer(self, tokens: int) -> None:
        if self.sender.admits(tokens):
            before = self.sender.depth
            self.sender.sent(tokens)
            assert self.sender.depth <= CAPACITY or before == 0
            payload = str(len(self.put)).encode()
            self.put.append(payload)
            self.there.append((payload, tokens))
        else:
            assert self.sender.depth > 0
            assert self.sender.depth + cost(tokens) > CAPACITY

    @rule()
    def deliver(self) -> None:
        if self.there:
            self.waiting.append(self.there.popleft())

    @rule()
    def take(self) -> None:
        if self.waiting:
            payload, tokens = self.waiting.popleft()
            self.got.append(payload)
            self.back.append(cost(tokens))

    @rule()
    def credit(self) -> None:
        if self.back:
            self.sender.returned(self.back.popleft())

    @invariant()
    def nothing_is_lost(self) -> None:
        under_way = sum(cost(tokens) for _, tokens in (*self.there, *self.waiting))
        assert self.sender.depth == under_way + sum(self.back)
        assert self.got == self.put[: len(self.got)]

    def teardown(self) -> None:
        while self.there or self.waiting or self.back:
            self.deliver()
            self.take()
            self.credit()
        assert self.got == self.put
        assert self.sender.admits(CAPACITY)


Flow.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40)
TestFlow = Flow.TestCase


@pytest.mark.parametrize("tokens", [-1, 6])
def test_credit_that_was_not_given_is_refused(tokens: int) -> None:
    sender = Credit(10)
    sender.sent(5)
    with pytest.raises(InputError, match="5 are under way"):
        sender.returned(tokens)
