"""Unconfirmed pushes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedding.exchange.payload import RowDelta
from embedding.exchange.protocol import Push
from embedding.exchange.session import PushLog
from embedding.kernel.errors import RefusedError
from embedding.kernel.records import Table


def a_push(sequence: int, rows: int = 1) -> Push:
    values = np.zeros((rows, 4), dtype=np.float32)
    return Push("n", sequence, 0, (RowDelta(Table.IN, np.arange(rows), values),))


@given(st.lists(st.integers(0, 12), max_size=30))
def test_what_is_kept_is_exactly_what_is_not_confirmed(confirmations):
    log = PushLog(max_pushes=100, max_bytes=10_000)
    highest = 0
    for sent, durable in enumerate(confirmations, start=1):
        log.add(a_push(sent))
        durable = min(durable, sent)
        log.confirm(durable)
        highest = max(highest, durable)
        assert [push.sequence for push in log.after(highest)] == list(range(highest + 1, sent + 1))
        assert len(log) == sent - highest
    if not len(log):
        assert log.nbytes == 0


def test_a_gap_is_refused():
    log = PushLog(max_pushes=10, max_bytes=10_000)
    log.add(a_push(4))
    with pytest.raises(RefusedError, match="5 is the next"):
        log.add(a_push(6))


def test_load_is_the_fuller_of_count_and_bytes():
    log = PushLog(max_pushes=10, max_bytes=240)
    log.add(a_push(1, rows=5))
    assert log.load == pytest.approx(120 / 240)
    log.add(a_push(2, rows=1))
    log.drop_last(log.since(0)[-1])
    assert log.nbytes == 120


def test_a_server_that_forgot_confirmed_pushes_is_noticed():
    log = PushLog(max_pushes=10, max_bytes=10_000)
    log.add(a_push(4))
    with pytest.raises(RefusedError, match="state folder"):
        log.after(1)
