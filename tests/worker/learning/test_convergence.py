"""How long a window is rehearsed: the state machine, told of losses."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from embedding.worker.learning.convergence import Convergence
from generated import examples

DECAY = 0.15
ENOUGH = 0.001
FIRST = 2.0
LAST = 0.5
LEFT = 0.9
MIN_TOKENS = 64
MOST_LAST = 15_000_000

losses = st.none() | st.floats(0.0, 50.0)


def rehearsed(machine: Convergence, loss) -> list:
    """All orders until it rests; `loss` of the n-th rehearsal."""
    found = []
    while (order := machine.order()) is not None:
        found.append(order)
        machine.measured(loss(len(found)), order.tokens)
        assert len(found) < 50_000
    return found


def test_while_it_helps_the_whole_budget_is_used_and_the_rate_falls_to_nothing() -> None:
    machine = Convergence(30.0, 10_000)
    machine.read(0, 10_000)
    orders = rehearsed(machine, lambda n: 3.0 * 0.95**n)
    assert sum(order.tokens for order in orders) == 300_000
    rates = [order.rate for order in orders]
    assert rates == sorted(rates, reverse=True)
    assert 0.9 * FIRST < rates[0] <= FIRST
    assert rates[-1] < 0.1
    assert machine.converged


def test_where_nothing_is_gained_it_rests_early() -> None:
    machine = Convergence(30.0, 10_000)
    machine.read(0, 10_000)
    assert sum(order.tokens for order in rehearsed(machine, lambda n: 2.0)) < 110_000
    worse = Convergence(30.0, 10_000)
    worse.read(0, 10_000)
    assert sum(order.tokens for order in rehearsed(worse, lambda n: 2.0 + n)) < 110_000


def test_a_model_that_has_not_left_its_start_gives_nothing_up() -> None:
    machine = Convergence(30.0, 10_000, start=2.7)
    machine.read(0, 10_000)
    assert sum(order.tokens for order in rehearsed(machine, lambda n: 3.0)) == 300_000


def test_rows_shrink_only_once_a_model_has_left_its_start() -> None:
    machine = Convergence(30.0, 10_000, start=2.7)
    machine.read(0, 10_000)
    orders = rehearsed(machine, lambda n: 3.0 - 0.1 * n)
    shrunk = [order.decay > 0 for order in orders]
    left = next(n for n in range(1, 31) if 3.0 - 0.1 * n < LEFT * 2.7)
    assert shrunk == [False] * left + [True] * (len(orders) - left)
    assert {order.decay for order in orders} == {0.0, DECAY}


def test_without_anything_to_measure_the_budget_ends_it() -> None:
    machine = Convergence(5.0, 4_000)
    machine.read(0, 10_000)
    assert sum(order.tokens for order in rehearsed(machine, lambda n: None)) == 50_000
    assert machine.loss is None


def test_later_windows_are_rehearsed_less_and_more_gently() -> None:
    machine = Convergence(30.0, 10_000)
    tokens = []
    for window in range(20):
        machine.read(window, 10_000)
        orders = rehearsed(machine, lambda n: 3.0 * 0.95**n)
        tokens.append(sum(order.tokens for order in orders))
        assert max(order.rate for order in orders) <= (FIRST if window == 0 else 1.0)
    assert tokens == sorted(tokens, reverse=True)
    assert tokens[-1] == 100_000


def test_the_last_window_of_a_corpus_is_rehearsed_over_all_that_is_remembered() -> None:
    """Whatever its own size, and whether or not the model gains while the rate is high."""
    for loss in (lambda n: 3.0 * 0.99**n, lambda n: 2.0):
        machine = Convergence(30.0, 10_000)
        for window in range(10):
            machine.read(window, 10_000)
            assert not any(order.evenly for order in rehearsed(machine, loss))
        machine.read(10, 1_000)
        machine.end(101_000)
        orders = rehearsed(machine, loss)
        assert sum(order.tokens for order in orders) == LAST * 30 * 101_000
        assert all(order.evenly for order in orders)
        rates = [order.rate for order in orders]
        assert rates == sorted(rates, reverse=True)
        assert rates[0] > 0.99
        assert rates[-1] < 0.1
        assert machine.converged


def test_the_last_window_may_be_rehearsed_in_larger_portions_than_others() -> None:
    machine = Convergence(30.0, 10_000, last=40_000)
    for window in range(10):
        machine.read(window, 10_000)
        assert all(order.tokens <= 10_000 for order in rehearsed(machine, lambda n: 2.0))
    machine.end(100_000)
    orders = rehearsed(machine, lambda n: 2.0)
    assert max(order.tokens for order in orders) == 40_000
    assert sum(order.tokens for order in orders) == LAST * 30 * 100_000


def test_the_last_window_of_a_long_corpus_costs_no_more_than_a_bound() -> None:
    machine = Convergence(30.0, 100_000)
    machine.read(0, 1_000_000)
    rehearsed(machine, lambda n: 2.0)
    machine.read(1, 1_000)
    machine.end(2_000_000)
    assert sum(order.tokens for order in rehearsed(machine, lambda n: 2.0)) == MOST_LAST


def test_a_corpus_of_one_window_is_rehearsed_as_a_first_window() -> None:
    machine = Convergence(30.0, 10_000)
    machine.read(0, 10_000)
    machine.end(10_000)
    assert sum(order.tokens for order in rehearsed(machine, lambda n: 2.0)) < 110_000
    none = Convergence(0.0, 10_000)
    for window in range(2):
        none.read(window, 10_000)
    none.end(20_000)
    assert none.order() is None


def test_a_gain_just_below_enough_costs_a_part_of_what_is_left() -> None:
    def used(gain: float) -> int:
        machine = Convergence(30.0, 10_000)
        machine.read(0, 10_000)
        return sum(o.tokens for o in rehearsed(machine, lambda n: 3.0 * (1 - gain) ** n))

    assert used(1.1 * ENOUGH) == 300_000
    assert used(0.9 * ENOUGH) < 150_000


def test_text_that_comes_while_it_rehearses_adds_to_the_budget() -> None:
    machine = Convergence(10.0, 1_000)
    machine.read(7, 1_000)
    assert machine.order() is not None
    before = machine._left
    machine.read(7, 1_000)
    assert machine._left == before + 10_000
    machine.read(3, 500)  # late text, of a window before
    assert machine.window == 7


def test_a_window_that_another_follows_is_rehearsed_first_and_converges() -> None:
    machine = Convergence(10.0, 1_000)
    machine.read(7, 1_000)
    assert machine.unconverged == 7
    machine.read(9, 1_000)
    assert machine.unconverged == 7
    left = machine._left
    spent = 0
    while machine.unconverged == 7:
        order = machine.order()
        spent += order.tokens
        machine.measured(None, order.tokens)
    assert 9_000 < spent <= 10_000 < left
    assert machine.unconverged == 9
    rehearsed(machine, lambda n: None)
    assert machine.unconverged is None


def test_what_windows_long_before_had_left_is_forgotten() -> None:
    machine = Convergence(10.0, 1_000)
    for window in range(100):
        machine.read(window, 1_000)
    assert machine.unconverged == 98
    assert machine._left < 2 * 10 * 1_000


def test_fresh_text_begins_a_look_anew() -> None:
    def left(fresh: int) -> float:
        machine = Convergence(30.0, 10_000)
        machine.read(0, 10_000)
        for _ in range(6):
            machine.measured(2.0, machine.order().tokens)
            machine.read(0, fresh)
        return machine._left

    machine = Convergence(30.0, 10_000)
    machine.read(0, 10_000)
    for _ in range(6):
        machine.measured(2.0, machine.order().tokens)
    assert machine._left < 240_000 - 10_000  # looks without a gain
    assert left(0) == 240_000


def test_nothing_is_ordered_of_nothing() -> None:
    for passes, tokens in ((0.0, 10_000), (30.0, 0), (30.0, 1)):
        machine = Convergence(passes, 1_000)
        assert machine.order() is None
        machine.read(0, tokens)
        assert machine.order() is None
        assert machine.converged


@settings(max_examples=examples(200))
@given(
    st.floats(0.0, 100.0),
    st.integers(2_000, 50_000),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 20_000), st.lists(losses)), max_size=12),
)
def test_whatever_it_is_told_it_ends_within_its_budget(passes, tick, steps) -> None:
    machine = Convergence(passes, tick)
    allowed = 0.0
    for window, tokens, told in steps:
        machine.read(window, tokens)
        allowed += passes * tokens
        for loss in told:
            order = machine.order()
            if order is None:
                break
            assert MIN_TOKENS <= order.tokens <= max(tick, MIN_TOKENS)
            assert 0.0 < order.rate <= FIRST
            allowed -= order.tokens
            assert allowed > -MIN_TOKENS
            machine.measured(loss, order.tokens)
    rehearsed(machine, lambda n: None)
    assert machine.converged
