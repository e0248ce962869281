"""Who computes what of a batch, for every order of asking, answering, dying and coming back."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from generated import examples
from yeoron_lab.lbfgs.portions import Name, Portions

NODES = ("a", "b", "c")


class World:
    """Nodes that compute portions, each at its own speed; `counted` is what the sum is made of."""

    def __init__(self, sizes: tuple[int, ...], copies: int, *, shared: bool) -> None:
        self.portions = Portions(copies)
        self.shared = shared
        self.left = {Name(n, i) for n, size in zip(NODES, sizes, strict=True) for i in range(size)}
        for name in sorted(self.left):
            self.portions.add(name, shared=shared)
        self.busy: dict[str, tuple[Name, int]] = {}
        self.counted: list[Name] = []
        self.portions.begin()

    def run(self, event: str, node: str) -> None:
        if event == "die":
            self.busy.pop(node, None)
            lost = self.portions.gone([node])
            assert lost == sorted(n for n in self.left if n.node == node and not self.shared)
            self.left -= set(lost)
            self.counted = [name for name in self.counted if name in self.left]
        elif event == "forget":
            self.busy.pop(node, None)
        elif event == "again":
            self.portions.begin()
            self.counted.clear()
        elif node in self.busy:
            self.answer(node)
        else:
            self.ask(node)

    def ask(self, node: str) -> None:
        name = self.portions.ask(node)
        if name is None:
            return
        assert name in self.left
        assert name not in self.counted
        assert self.shared or name.node == node
        same = [n for n, (held, e) in self.busy.items() if held == name and e == self.evaluation]
        assert len(same) <= self.portions.copies
        self.busy[node] = name, self.evaluation

    @property
    def evaluation(self) -> int:
        return self.portions.evaluation

    def answer(self, node: str) -> None:
        name, evaluation = self.busy.pop(node)
        first = name in self.left and name not in self.counted and evaluation == self.evaluation
        assert self.portions.done(node, name, evaluation) is first
        if first:
            self.counted.append(name)
        # The same answer a second time, as after a broken stream, counts no more.
        assert not self.portions.done(node, name, evaluation)


EVENTS = ["work", "work", "work", "work", "forget", "die", "again"]
events = st.lists(st.tuples(st.sampled_from(EVENTS), st.sampled_from(NODES)), max_size=80)
sizes = st.tuples(*[st.integers(0, 5) for _ in NODES])


@settings(max_examples=examples(300))
@given(events, sizes, st.integers(0, 2), st.booleans())
def test_each_portion_counts_once_and_the_batch_is_always_finished(events, sizes, copies, shared):
    world = World(sizes, copies, shared=shared)
    for event, node in events:
        world.run(event, node)
    for _ in range(2 * len(world.left) + 2):
        for node in NODES:
            world.run("work", node)
    assert world.portions.complete
    assert sorted(world.counted) == sorted(world.left)


def test_a_fast_node_does_more_and_takes_the_slow_ones_last_portion_over():
    portions = Portions(copies=1)
    for number in range(6):
        portions.add(Name("slow", number), shared=True)
        portions.add(Name("fast", number), shared=True)
    portions.begin()
    stuck = portions.ask("slow")
    assert stuck == ("slow", 0)
    done = []
    while (name := portions.ask("fast")) is not None and name != stuck:
        assert portions.done("fast", name, 1)
        done.append(name)
    assert done[:6] == [("fast", number) for number in range(6)]
    assert len(done) == 11
    assert name == stuck
    assert portions.done("fast", stuck, 1)
    assert portions.complete
    assert not portions.done("slow", stuck, 1)
    assert (portions.again, portions.won) == (1, 1)
    assert portions.by_node == {"fast": 12}


def test_no_copy_is_made_while_fresh_portions_are_left_nor_where_none_is_wanted():
    portions = Portions(copies=0)
    portions.add(Name("a", 0), shared=True)
    portions.begin()
    assert portions.ask("a") == ("a", 0)
    assert portions.ask("b") is None
    # The node asks again: its answer was lost.
    assert portions.ask("a") == ("a", 0)


def test_what_must_not_leave_its_node_is_given_to_nobody_else_and_goes_with_it():
    portions = Portions(copies=2)
    portions.add(Name("a", 0), shared=False)
    portions.add(Name("b", 0), shared=True)
    portions.begin()
    assert portions.ask("b") == ("b", 0)
    assert portions.done("b", Name("b", 0), 1)
    assert portions.ask("b") is None
    assert not portions.done("b", Name("a", 0), 1)
    assert portions.gone(["a"]) == [("a", 0)]
    assert portions.complete
