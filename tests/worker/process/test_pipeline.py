"""The order of a tick's steps, on a learner that only notes what it is told."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from embedding.kernel.errors import RefusedError, YeoronError
from embedding.kernel.records import TokenBlock
from embedding.worker.learning.ticks import Close
from embedding.worker.process.pipeline import Pipeline, When


def block(at: int) -> TokenBlock:
    return TokenBlock.build("뉴스", [[[f"말{at}"]]], published=[0.0], keys=[str(at)])


class Ready(int):
    """Stands for a prepared tick: its number."""

    close: Close | None = None


class Noting:
    """Stands for a learner; `fails` names the step that raises, as (step, block)."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int]] = []
        self.whens: list[str] = []
        self.fails: dict[tuple[str, int], Exception] = {}
        self.before: dict[tuple[str, int], Callable[[], None]] = {}
        self.after: dict[tuple[str, int], Callable[[], None]] = {}
        self.busy: set[str] = set()
        self.threads: dict[str, set[int]] = {"prepare": set(), "train": set(), "push": set()}
        self._lock = threading.Lock()

    def prepare(
        self, blocks: Sequence[TokenBlock], *, when: str = "now", close: Close | None = None
    ) -> Any:
        at = Ready(blocks[0].keys[0] if close is None else close.window)
        at.close = close
        self.whens.append(when)
        self._step("prepare", at)
        return at

    @property
    def training(self) -> Noting:
        return self

    def train(self, at: int) -> Any:
        return self._step("train", at)

    def push(self, at: int) -> Any:
        return self._step("push", at)

    def _step(self, name: str, at: int) -> int:
        with self._lock:
            assert name not in self.busy, f"two {name} at a time"
            assert not {"train", "push"} <= self.busy | {name}, "a push beside a training"
            self.busy.add(name)
            self.threads[name].add(threading.get_ident())
        self.before.get((name, at), lambda: None)()
        with self._lock:
            self.busy.discard(name)
            if (name, at) in self.fails:
                raise self.fails[name, at]
            self.steps.append((name, at))
        self.after.get((name, at), lambda: None)()
        return at


class Told(list[Any]):
    """What `learnt` was called with."""


def run(
    noting: Noting,
    n: int = 4,
    *,
    when: When = "ahead",
    in_order: bool = True,
    blocks: Iterator[list[TokenBlock] | Close] | None = None,
) -> Told:
    told = Told()
    given = iter([block(at)] for at in range(n)) if blocks is None else blocks
    Pipeline(
        noting,  # type: ignore[arg-type]
        given,
        told.append,
        when=lambda: when,
        in_order=in_order,
    ).run()
    return told


def places(noting: Noting) -> dict[tuple[str, int], int]:
    return {step: place for place, step in enumerate(noting.steps)}


WAYS = [(w, o) for w in ("now", "ahead", "late") for o in (False, True)]


@pytest.mark.parametrize(("when", "in_order"), WAYS)
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_every_block_is_prepared_trained_and_pushed_once_in_order(
    n: int, when: When, in_order: bool
) -> None:
    noting = Noting()
    assert run(noting, n, when=when, in_order=in_order) == list(range(n))
    for name in ("prepare", "train", "push"):
        assert [at for step, at in noting.steps if step == name] == list(range(n))
    at = places(noting)
    for block_ in range(n):
        assert at["prepare", block_] < at["train", block_] < at["push", block_]
    assert noting.whens == ["now", *[when] * (n - 1)][:n]


@pytest.mark.parametrize("in_order", [False, True])
def test_nothing_overlaps_when_told_so(in_order: bool) -> None:
    noting = Noting()
    run(noting, 5, when="now", in_order=in_order)
    steps = [(name, at) for at in range(5) for name in ("prepare", "train", "push")]
    assert noting.steps == steps


@pytest.mark.parametrize("when", ["ahead", "late"])
def test_in_order_a_push_follows_the_preparation_of_the_next_block(when: When) -> None:
    noting = Noting()
    trained = threading.Event()
    noting.after["train", 1] = trained.set
    # Block 2 is prepared slowly: not before block 1 was trained.
    noting.before["prepare", 2] = lambda: _wait(trained)
    run(noting, 6, when=when)
    at = places(noting)
    for block_ in range(5):
        assert at["prepare", block_ + 1] < at["push", block_]


@pytest.mark.parametrize("when", ["ahead", "late"])
def test_otherwise_a_push_leaves_as_soon_as_its_block_is_trained(when: When) -> None:
    noting = Noting()
    pushed = threading.Event()
    noting.after["push", 1] = pushed.set
    # Would the push of block 1 wait for this, neither would ever end.
    noting.before["prepare", 2] = lambda: _wait(pushed)
    run(noting, 4, when=when, in_order=False)
    at = places(noting)
    assert at["push", 1] < at["prepare", 2]


@pytest.mark.parametrize("in_order", [False, True])
def test_the_next_block_is_prepared_while_one_is_trained(in_order: bool) -> None:
    noting = Noting()
    prepared = threading.Event()
    noting.after["prepare", 3] = prepared.set
    # Training block 2 ends only when block 3 was prepared beside it.
    noting.before["train", 2] = lambda: _wait(prepared)
    run(noting, 5, in_order=in_order)
    at = places(noting)
    assert at["prepare", 3] < at["train", 2]
    assert len(noting.threads["train"] | noting.threads["push"]) == 1, "one thread speaks of ticks"


@pytest.mark.parametrize("in_order", [False, True])
def test_no_block_is_prepared_while_a_window_is_read(in_order: bool) -> None:
    """Its words would have rows and counts in the window before, or not, as threads run."""
    noting = Noting()
    # Were block 3 prepared beside it, it would be prepared now.
    noting.before["train", 2] = lambda: time.sleep(0.2)
    blocks = iter([[block(0)], [block(1)], Close(2), [block(3)], [block(4)]])
    assert run(noting, in_order=in_order, blocks=blocks) == [0, 1, 2, 3, 4]
    at = places(noting)
    assert at["push", 2] < at["prepare", 3]
    assert noting.whens == ["now", "ahead", "ahead", "now", "ahead"]


def test_when_is_asked_before_each_tick() -> None:
    noting = Noting()
    answers: Iterator[When] = iter(["ahead", "now", "late", "now", "now", "now"])
    told = Told()
    blocks = iter([block(at)] for at in range(5))
    Pipeline(
        noting,  # type: ignore[arg-type]
        blocks,
        told.append,
        when=lambda: next(answers),
        in_order=True,
    ).run()
    assert told == [0, 1, 2, 3, 4]
    assert noting.whens == ["now", "ahead", "now", "late", "now"]


@pytest.mark.parametrize(("when", "in_order"), WAYS)
@pytest.mark.parametrize("step", ["prepare", "train", "push"])
@pytest.mark.parametrize("at", [0, 2, 4])
def test_an_error_of_any_step_comes_out_and_nothing_is_learnt_after_it(
    step: str, at: int, when: When, in_order: bool
) -> None:
    noting = Noting()
    noting.fails[step, at] = YeoronError("diverged")
    with pytest.raises(YeoronError, match="diverged"):
        run(noting, 5, when=when, in_order=in_order)
    assert ("train", at + 1) not in noting.steps
    assert ("push", at) not in noting.steps
    if step != "prepare":
        assert [n for name, n in noting.steps if name == "push"] == list(range(at))
    assert not [each for each in threading.enumerate() if each.name.startswith("prepare")]


@pytest.mark.parametrize(("when", "in_order"), WAYS)
@pytest.mark.parametrize("step", ["prepare", "train", "push"])
@pytest.mark.parametrize("at", [0, 2, 4])
def test_a_refused_block_is_told_and_the_others_are_learnt(
    step: str, at: int, when: When, in_order: bool
) -> None:
    noting = Noting()
    refusal = RefusedError("a gap")
    noting.fails[step, at] = refusal
    told = run(noting, 5, when=when, in_order=in_order)
    assert [each for each in told if isinstance(each, int)] == [n for n in range(5) if n != at]
    assert [each for each in told if not isinstance(each, int)] == [refusal]


@pytest.mark.parametrize("when", ["ahead", "late"])
def test_a_refusal_is_told_when_no_push_is_under_way(when: When) -> None:
    """The node is set back by it, which a push that ends meanwhile would count on from."""
    noting, told_by = Noting(), []
    noting.fails["prepare", 2] = RefusedError("a gap")
    refused = threading.Event()

    def learnt(what: Any) -> None:
        told_by.append((what, threading.get_ident(), set(noting.busy)))
        if isinstance(what, RefusedError):
            refused.set()

    # Were it told at once, this push would hear of it before it ends.
    noting.before["push", 1] = lambda: refused.wait(0.5)
    Pipeline(
        noting,  # type: ignore[arg-type]
        iter([block(at)] for at in range(4)),
        learnt,
        when=lambda: when,
        in_order=True,
    ).run()
    assert [what for what, _, _ in told_by if isinstance(what, int)] == [0, 1, 3]
    assert [at for at, (what, _, _) in enumerate(told_by) if isinstance(what, RefusedError)] == [2]
    assert {who for _, who, _ in told_by} == {threading.get_ident()}
    assert not any(busy for _, _, busy in told_by)


def test_an_error_of_the_reading_comes_out() -> None:
    def broken() -> Iterator[list[TokenBlock] | Close]:
        yield [block(0)]
        yield [block(1)]
        raise YeoronError("the queue broke")

    noting = Noting()
    with pytest.raises(YeoronError, match="the queue broke"):
        run(noting, blocks=broken())
    assert ("push", 0) in noting.steps


def test_what_learnt_raises_comes_out() -> None:
    def fail(told: object) -> None:
        raise YeoronError(f"refused {told}")

    noting = Noting()
    pipeline = Pipeline(
        noting,  # type: ignore[arg-type]
        iter([block(at)] for at in range(5)),
        fail,
        when=lambda: "ahead",
        in_order=True,
    )
    with pytest.raises(YeoronError, match="refused 0"):
        pipeline.run()
    assert ("train", 1) not in noting.steps


def _wait(event: threading.Event) -> None:
    assert event.wait(60), "it never happened"
