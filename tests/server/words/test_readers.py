"""Who hands in a window: whatever dies, pauses or restarts, the sums are those of an undisturbed
run."""

from __future__ import annotations

from collections import Counter
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from embedding.exchange.payload import ContextSums, HandIn, Inherited
from embedding.exchange.protocol import Push
from embedding.server.parts import Content, PushArrival
from embedding.server.words.readers import Wait, WindowReaders
from embedding.server.words.usage import UsageSums, added_up
from server.saving import saved

WINDOW, DIM = 7, 2
NODES = ("n0", "n1", "n2")
SOURCES = ("가", "나", "다")


def test_a_process_that_never_hands_anything_in_is_not_waited_for() -> None:
    readers = WindowReaders()
    readers.greet("n0", "")
    readers.read(WINDOW, "n0", "", "가", 3)
    assert not readers.wait(WINDOW, {"n0"})
    assert readers.missing(WINDOW, {"n0"}) == ()


def test_while_nobody_lives_nobody_is_waited_for_and_the_loss_is_named() -> None:
    readers = WindowReaders()
    readers.greet("n0", "a")
    readers.read(WINDOW, "n0", "a", "가", 3)
    assert readers.wait(WINDOW, {"n0"}) == Wait(("n0",))
    assert readers.wait(WINDOW, {"n1"}) == Wait(lost=(("a", "가"),), heirs=("n1",))
    assert not readers.wait(WINDOW, set())
    (lost,) = readers.missing(WINDOW, set())
    assert (lost.reason, lost.where, lost.documents) == ("node_lost", ("n0",), 3)


def test_what_an_heir_spoke_for_stays_when_the_heir_dies_too() -> None:
    readers = WindowReaders()
    for node, life in (("n0", "a"), ("n1", "b"), ("n2", "c")):
        readers.greet(node, life)
    readers.read(WINDOW, "n0", "a", "가", 3)
    readers.hand_in("n1", "b", HandIn(WINDOW, 1, (Inherited("a", "가", 3),)))
    assert not readers.wait(WINDOW, {"n1", "n2"})
    readers.read(WINDOW, "n1", "b", "가", 1)
    assert readers.wait(WINDOW, {"n2"}).lost == (("b", "가"),)
    again = (Inherited("b", "가", 1),)
    assert readers.hand_in("n2", "c", HandIn(WINDOW, 1, again)) == [("b", "가")]
    assert not readers.wait(WINDOW, {"n2"})
    assert readers.missing(WINDOW, {"n2"}) == ()


def test_an_heir_that_finds_nothing_leaves_what_another_found() -> None:
    readers = WindowReaders()
    readers.greet("n0", "a")
    readers.read(WINDOW, "n0", "a", "가", 3)
    readers.hand_in("n1", "b", HandIn(WINDOW, 1, (Inherited("a", "가", 3),)))
    assert readers.hand_in("n2", "c", HandIn(WINDOW, 1, (Inherited("a", "가", 0, 3),))) == []
    assert readers.missing(WINDOW, {"n1", "n2"}) == ()


def test_what_a_second_heir_says_is_gone_counts_after_a_first_that_found_nothing() -> None:
    readers = WindowReaders()
    readers.greet("n0", "a")
    readers.read(WINDOW, "n0", "a", "가", 3)
    for node, life, gone in (("n1", "b", 0), ("n2", "c", 2), ("n1", "b", 1)):
        readers.hand_in(node, life, HandIn(WINDOW, 1, (Inherited("a", "가", 0, gone),)))
    missing = {lost.reason: lost.documents for lost in readers.missing(WINDOW, {"n1", "n2"})}
    assert missing == {"document_gone": 2, "node_lost": 1}


def test_a_checkpoint_in_which_heirs_said_all_under_their_own_mark_has_them_read_again() -> None:
    old = {
        "windows": {str(WINDOW): {"a": ["n0", {"가": 3}, {"가": 3}, False]}},
        "heirs": {str(WINDOW): [["b", "a", "가", 3, 0]]},
    }
    readers = WindowReaders()
    readers.load(Content({"readers": old}, {}, {}))
    assert not readers.wait(WINDOW, {"n2"})
    old["windows"][str(WINDOW)]["b"] = ["n1", {"가": 1}, {"가": 1}, True]
    readers = WindowReaders()
    readers.load(Content({"readers": old}, {}, {}))
    assert readers.wait(WINDOW, {"n2"}).lost == (("a", "가"), ("b", "가"))


def test_two_heirs_of_one_text_count_it_once() -> None:
    """A source changes nodes while its heir hands in, and the next one is done first."""
    world = Disturbed()
    world.begin()
    world.a_document("가")
    world.starts_again("n0")
    world.holder["가"] = "n1"
    world.hands_in("n1", partly=True)
    world.holder["가"] = "n2"
    world.hands_in("n2", partly=False)
    world.hands_in("n1", partly=False)
    assert world._uses() == {0: 1.0}
    world.teardown()


def test_the_text_of_a_corpus_goes_to_nobody_else_and_is_not_waited_for() -> None:
    readers = WindowReaders(moves=False)
    readers.greet("n0", "a")
    readers.read(WINDOW, "n0", "a", "가", 3)
    assert readers.wait(WINDOW, {"n0"}).readers == ("n0",)
    readers.greet("n0", "b")
    assert not readers.wait(WINDOW, {"n0"})
    (lost,) = readers.missing(WINDOW, {"n0"})
    assert (lost.reason, lost.documents) == ("node_lost", 3)


def test_who_goes_on_in_a_corpus_has_read_again_what_its_node_had_learnt() -> None:
    readers = WindowReaders(moves=False)
    for node, life in (("n0", "a"), ("n1", "x"), ("n0", "b")):
        readers.greet(node, life)
        readers.read(WINDOW, node, life, "가", 3)
    assert readers.hand_in("n0", "b", HandIn(WINDOW, 1)) == [("a", "가")]
    (lacks,) = readers.missing(WINDOW, {"n0", "n1"})
    assert (lacks.reason, lacks.where) == ("usage_not_handed_in", ("n1",))


def test_who_takes_a_source_over_and_has_no_text_of_it_ends_the_wait_and_drops_nothing() -> None:
    readers = WindowReaders()
    for node, life in (("n0", "a"), ("n1", "b")):
        readers.greet(node, life)
    readers.read(WINDOW, "n0", "a", "가", 3)
    readers.hand_in("n0", "a", HandIn(WINDOW, 1))
    readers.read(WINDOW, "n0", "a", "가", 1)
    assert readers.wait(WINDOW, {"n1"}).lost == (("a", "가"),)
    assert readers.hand_in("n1", "b", HandIn(WINDOW, 1, (Inherited("a", "가"),))) == []
    assert not readers.wait(WINDOW, {"n1"})
    (lost,) = readers.missing(WINDOW, {"n1"})
    assert (lost.reason, lost.documents) == ("node_lost", 1), "three were handed in"


def test_a_window_that_is_read_on_is_handed_in_once() -> None:
    readers = WindowReaders()
    readers.greet("n0", "a")
    readers.read(WINDOW, "n0", "a", "가", 3)
    assert readers.wait(WINDOW, {"n0"}, complete=False).readers == ("n0",)
    readers.hand_in("n0", "a", HandIn(WINDOW, 1))
    readers.read(WINDOW, "n0", "a", "가", 1)
    assert not readers.wait(WINDOW, {"n0"}, complete=False)
    assert readers.wait(WINDOW, {"n0"}).readers == ("n0",)
    (late,) = readers.missing(WINDOW, {"n0"})
    assert (late.reason, late.documents) == ("usage_not_handed_in", 1)


class Disturbed(RuleBasedStateMachine):
    """Nodes read documents of sources that they hold, die, pause and start again; the server is
    killed and goes back to its checkpoint. Each document is one mention of a word of its own.

    The model of the rest: a node remembers what its process read, and reads again what a dead
    process had read of a source that it holds; it sends again what no checkpoint has while its
    process lives. What nobody sends again is given out again, as documents are by the frontier.
    """

    @initialize()
    def begin(self) -> None:
        self.readers, self.usage = WindowReaders(), UsageSums(DIM, wanted=True, limit=10**6)
        self.marks = 0
        self.sequence: Counter[str] = Counter()
        self.applied: Counter[str] = Counter()
        self.log: dict[str, list[Push]] = {node: [] for node in NODES}
        self.life: dict[str, str] = {}
        self.paused: set[str] = set()
        self.holder = {source: NODES[at % 3] for at, source in enumerate(SOURCES)}
        self.memory: dict[str, dict[int, str]] = {}
        self.read_by: dict[int, tuple[str, str]] = {}
        self.every: dict[int, str] = {}
        self.given_out: set[int] = set()
        self.spoken: dict[str, set[tuple[str, str]]] = {}
        self.revised = 0
        for node in NODES:
            self._start(node)
        self._checkpoint()

    def _start(self, node: str) -> None:
        self.marks += 1
        self.life[node] = f"life{self.marks}"
        self.memory[node], self.spoken[node] = {}, set()
        self.log[node] = []
        self.sequence[node] = self.applied[node]
        self.readers.greet(node, self.life[node])
        self.usage.begin(node, self.life[node])
        self.paused.discard(node)

    def _die(self, node: str) -> None:
        """What is not in a checkpoint and dies with both of them is given out again later."""
        del self.life[node]
        self.log[node] = []

    def _push(self, node: str, **more: Any) -> None:
        self.sequence[node] += 1
        push = Push(node, self.sequence[node], 0, incarnation=self.life[node], **more)
        self.log[node].append(push)
        self._apply(push)

    def _apply(self, push: Push) -> None:
        self.applied[push.node] = push.sequence
        document = int(push.offset) if push.offset else None
        if document is not None:
            self.readers.read(WINDOW, push.node, push.incarnation, self.every[document], 1)
            self.read_by[document] = push.incarnation, self.every[document]
            self.given_out.discard(document)
        for given in push.hand_ins:
            for life, source in self.readers.hand_in(push.node, push.incarnation, given):
                self.usage.drop(WINDOW, life, source)
        self.usage.learnt(PushArrival.prepare(push, 0), 0.0, ())

    def _runs(self, source: str) -> str | None:
        node = self.holder[source]
        return node if node in self.life and node not in self.paused else None

    @rule(source=st.sampled_from(SOURCES))
    def a_document(self, source: str) -> None:
        node = self._runs(source)
        lost = sorted(d for d in self.given_out if self.every[d] == source)
        if node is not None:
            document = lost[0] if lost else len(self.every)
            self.every[document] = source
            self.memory[node][document] = self.life[node]
            self._push(node, offset=str(document))

    @rule(node=st.sampled_from(NODES), partly=st.booleans())
    def hands_in(self, node: str, partly: bool) -> None:
        if node not in self.life or node in self.paused:
            return
        wait = self.readers.wait(WINDOW, set(self.life))
        lost = {text for text in wait.lost if self.holder[text[1]] == node}
        if node not in wait.readers and not lost:
            return
        durable = self.saved[3]
        if any(text in lost and d not in durable for d, text in self.read_by.items()):
            # Whoever takes a source over waits until what the dead had pushed is in a checkpoint
            # (worker/crawling/crawling.py).
            self._checkpoint()
        # It reads again what dead processes had read of the sources that it holds now.
        for document, (life, source) in self.read_by.items():
            if (life, source) in lost:
                self.memory[node][document] = life
        self.spoken[node] |= lost
        ours = [
            document
            for document, life in self.memory[node].items()
            if life == self.life[node] or (life, self.every[document]) in self.spoken[node]
        ]
        inherited = tuple(
            Inherited(life, source, sum(self.read_by[d] == (life, source) for d in ours))
            for life, source in sorted(self.spoken[node])
        )
        parts = [self._sums(document, self.memory[node][document]) for document in sorted(ours)]
        first = self.sequence[node] + 1
        half = len(parts) // 2
        self._push(node, usage=tuple(parts[:half]))
        if not partly:
            self._push(
                node, usage=tuple(parts[half:]), hand_ins=(HandIn(WINDOW, first, inherited),)
            )

    def _sums(self, document: int, life: str) -> ContextSums:
        ids, counts = np.array([document]), np.ones(1, np.float32)
        sums = np.full((1, DIM), 1.0 + document, np.float32)
        own = life in self.life.values()
        return ContextSums(WINDOW, self.every[document], 0, ids, sums, counts, "" if own else life)

    @rule(node=st.sampled_from(NODES))
    def is_killed(self, node: str) -> None:
        if node in self.life:
            self._die(node)

    @rule(node=st.sampled_from(NODES))
    def starts_again(self, node: str) -> None:
        if node in self.life:
            self._die(node)
        self._start(node)

    @rule(node=st.sampled_from(NODES))
    def is_stopped_or_goes_on(self, node: str) -> None:
        self.paused ^= {node}

    @precondition(lambda self: self.life)
    @rule(source=st.sampled_from(SOURCES), data=st.data())
    def a_source_changes_nodes(self, source: str, data: st.DataObject) -> None:
        self.holder[source] = data.draw(st.sampled_from(sorted(self.life)))

    @rule()
    def a_checkpoint(self) -> None:
        self._checkpoint()

    def _checkpoint(self) -> None:
        self.saved = (
            saved(self.readers),
            saved(self.usage),
            dict(self.applied),
            dict(self.read_by),
        )
        for node, pushes in self.log.items():
            self.log[node] = [one for one in pushes if one.sequence > self.applied[node]]

    @rule()
    def the_server_is_killed(self) -> None:
        readers, usage, applied, read_by = self.saved
        self.readers, self.usage = WindowReaders(), UsageSums(DIM, wanted=True, limit=10**6)
        self.readers.load(readers)
        self.usage.load(usage)
        self.applied, self.read_by = Counter(applied), dict(read_by)
        for node, life in self.life.items():
            self.readers.greet(node, life)
            self.usage.begin(node, life)
            for push in self.log[node]:
                self._apply(push)
        self.given_out = set(self.every) - set(self.read_by)
        for node in NODES:
            self.sequence[node] = self.applied[node]

    @invariant()
    def nothing_is_added_twice(self) -> None:
        if hasattr(self, "usage"):
            assert set(self._uses().values()) <= {1.0}

    def _uses(self) -> dict[int, float]:
        uses: Counter[int] = Counter()
        for used in added_up(self.usage.held([WINDOW])):
            for row, document in enumerate(used.ids.tolist()):
                counted = float(used.documents[row, 0])
                assert used.sums[used.units[row, 0], 0] == (1.0 + document) * counted
                uses[document] += counted
        return dict(uses)

    def teardown(self) -> None:
        """Left alone, all that was read is handed in, once."""
        if not hasattr(self, "usage"):
            return
        self.paused.clear()
        for node in NODES:
            if node not in self.life:
                self._start(node)
        for source in SOURCES:
            while any(self.every[d] == source for d in self.given_out):
                self.a_document(source)
        for _ in range(len(NODES)):
            for node in NODES:
                self.hands_in(node, partly=False)
        assert not self.readers.wait(WINDOW, set(self.life))
        assert self.readers.missing(WINDOW, set(self.life)) == ()
        assert self._uses() == dict.fromkeys(self.read_by, 1.0)
        assert set(self.read_by) == set(self.every)


TestDisturbed = Disturbed.TestCase
TestDisturbed.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
