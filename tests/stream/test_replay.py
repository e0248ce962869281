"""One contract for both replay memories, then what each promises of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from embedding.kernel.errors import ConfigError, InputError
from embedding.stream.config import StreamConfig
from embedding.stream.replay import ReplayMemory, UniformReplay, make_replay
from generated import examples
from yeoron_lab.prioritised.memory import PrioritisedReplay

Make = Callable[..., ReplayMemory]
both = pytest.mark.parametrize("make", [UniformReplay, PrioritisedReplay])


def sentences(*lengths: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sentence i consists of the token first + i, repeated."""
    tokens = np.repeat(np.arange(first, first + len(lengths), dtype=np.int64), lengths)
    return tokens, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


@both
def test_it_is_a_replay_memory(make: Make) -> None:
    assert isinstance(make(1_000, 0), ReplayMemory)


@both
def test_a_sample_holds_whole_sentences_and_the_asked_tokens(make: Make) -> None:
    memory = make(1_000, 1)
    memory.add(*sentences(*range(1, 21)))
    sample = memory.sample(333)
    assert sample.tokens.dtype == np.int64
    assert sample.sentences.dtype == np.int32
    assert sample.keys.dtype == np.int64
    assert sample.weights.dtype == np.float32
    assert len(sample.tokens) == sample.sentences[-1] == 333
    assert len(sample.keys) == len(sample.weights) == len(sample.sentences) - 1
    lengths = np.diff(sample.sentences)
    for at, length in enumerate(lengths):
        part = sample.tokens[sample.sentences[at] : sample.sentences[at + 1]]
        assert (part == part[0]).all()
        assert length == part[0] + 1 or at == len(lengths) - 1
    assert np.average(sample.weights, weights=np.diff(sample.sentences)) == pytest.approx(1)


@both
def test_an_empty_memory_gives_an_empty_sample(make: Make) -> None:
    sample = make(1_000, 0).sample(50)
    assert (len(sample.tokens), sample.sentences.tolist(), len(sample.keys)) == (0, [0], 0)


@both
def test_the_oldest_leave_first_and_memory_stays_flat(make: Make) -> None:
    memory = make(1_000, 3)
    size = memory.nbytes
    for first in range(0, 3_000, 10):
        memory.add(*sentences(*[7] * 10, first=first))
        assert memory.tokens <= 1_000
    assert memory.nbytes == size
    assert len(memory) == 1_000 // 7
    assert memory.sample(5_000).tokens.min() == 3_000 - 1_000 // 7


@both
def test_a_batch_larger_than_the_memory_leaves_its_end(make: Make) -> None:
    memory = make(100, 0)
    memory.add(*sentences(*[5] * 100))
    assert set(memory.sample(2_000).tokens.tolist()) == set(range(80, 100))


@both
def test_very_short_sentences_are_bounded_too(make: Make) -> None:
    memory = make(100, 0)
    for first in range(0, 200, 10):
        memory.add(*sentences(*[1] * 10, first=first))
    assert len(memory) == 25
    assert set(memory.sample(2_000).tokens.tolist()) == set(range(175, 200))


@both
def test_empty_sentences_are_left_out_and_long_ones_cut(make: Make) -> None:
    memory = make(100, 0)
    memory.add(*sentences(0, 3, 0))
    assert (len(memory), memory.tokens) == (1, 3)
    memory.add(*sentences(250, first=9))
    assert (len(memory), memory.tokens) == (1, 100)
    memory.add(*sentences())
    assert len(memory) == 1


@both
def test_the_same_seed_draws_the_same(make: Make) -> None:
    def run(seed: int) -> list[int]:
        memory = make(500, seed)
        drawn: list[int] = []
        for first in range(0, 100, 10):
            memory.add(*sentences(*range(1, 11), first=first))
            sample = memory.sample(60)
            memory.update(sample.keys, np.linspace(0, 3, len(sample.keys), dtype=np.float32))
            drawn += sample.tokens.tolist()
        return drawn

    assert run(5) == run(5)
    assert run(5) != run(6)


@both
def test_priorities_of_sentences_that_left_are_passed_over(make: Make) -> None:
    memory = make(100, 0)
    memory.add(*sentences(*[10] * 10))
    old = memory.sample(100).keys
    memory.add(*sentences(*[10] * 10, first=50))
    memory.update(old, np.full(len(old), 1e6, np.float32))
    assert memory.sample(1_000).tokens.min() >= 50


@both
@pytest.mark.parametrize("priority", [[-1.0], [float("nan")], [float("inf")], [1.0, 2.0]])
def test_priorities_that_make_no_sense_are_refused(make: Make, priority: list[float]) -> None:
    memory = make(100, 0)
    with pytest.raises(InputError, match="priorities"):
        memory.add(*sentences(4), np.array(priority, np.float32))
    memory.add(*sentences(4))
    with pytest.raises(InputError, match="priorities"):
        memory.update(np.zeros(1, np.int64), np.array(priority, np.float32))


@both
def test_offsets_that_do_not_fit_are_refused(make: Make) -> None:
    memory = make(100, 0)
    for offsets in ([0, 9], [1, 4], [0, 3, 2, 4], []):
        with pytest.raises(InputError, match="offsets"):
            memory.add(np.arange(4), np.array(offsets, np.int32))
    with pytest.raises(InputError, match="-1 tokens"):
        memory.sample(-1)


@both
def test_a_capacity_that_holds_nothing_is_refused(make: Make) -> None:
    with pytest.raises(ConfigError, match="at least 100"):
        make(99, 0)


@both
@settings(max_examples=examples(40))
@given(
    batches=st.lists(st.lists(st.integers(0, 150), min_size=0, max_size=40), min_size=1, max_size=8)
)
def test_it_holds_exactly_the_newest_that_fit(make: Make, batches: list[list[int]]) -> None:
    memory, added, first = make(120, 0), [], 0
    for lengths in batches:
        memory.add(*sentences(*lengths, first=first))
        added += [(first + i, min(n, 120)) for i, n in enumerate(lengths) if n]
        first += len(lengths)
    held: list[int] = []
    total = 0
    for name, length in reversed(added):
        if total + length > 120 or len(held) == 30:
            break
        held.append(name)
        total += length
    assert memory.tokens == total
    assert len(memory) == len(held)
    assert set(memory.sample(4_000).tokens.tolist()) <= set(held)


def chi_square(counts: np.ndarray, share: np.ndarray) -> float:
    return float(stats.chisquare(counts, counts.sum() * share / share.sum()).pvalue)


def draws(memory: ReplayMemory, n: int, length: int) -> np.ndarray:
    """How often each of the first `n` tokens opened a drawn sentence."""
    sample = memory.sample(40_000 * length)
    return np.bincount(sample.tokens[sample.sentences[:-1]], minlength=n)


def test_uniform_draws_are_uniform() -> None:
    memory = UniformReplay(1_000, 11)
    memory.add(*sentences(*[5] * 300))  # wraps around: 100 of them leave
    counts = draws(memory, 300, 5)
    assert counts[:100].sum() == 0
    assert chi_square(counts[100:], np.ones(200)) > 0.001
    assert chi_square(counts[100:], np.linspace(1, 1.5, 200)) < 0.001  # the test can tell


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_prioritised_draws_follow_priority_to_the_alpha(alpha: float) -> None:
    memory = PrioritisedReplay(1_000, 12, alpha=alpha)
    priority = np.linspace(0.5, 4.0, 200).astype(np.float32)
    memory.add(*sentences(*[5] * 200), priority[::-1].copy())
    memory.update(np.arange(200), priority)
    assert chi_square(draws(memory, 200, 5), priority.astype(float) ** alpha) > 0.001


def test_importance_weights_undo_the_priorities() -> None:
    priority = np.array([1, 2, 4, 8] * 25, np.float32)
    memory = PrioritisedReplay(1_000, 13, alpha=1.0, beta=1.0, weights="unbiased")
    memory.add(*sentences(*[4] * 100), priority)
    sample = memory.sample(4 * 60_000)
    value = sample.keys.astype(float)
    assert abs(np.mean(sample.weights) - 1.0) < 0.02
    assert abs(np.mean(value * sample.weights) - 49.5) < 1.0
    assert np.mean(value) > 50.0
    expected = priority.sum() / (100 * priority[sample.keys])
    np.testing.assert_allclose(sample.weights, expected, rtol=1e-5)


def test_the_mean_weight_of_a_token_is_one() -> None:
    """So that priorities do not change the learning rate in passing."""
    memory = PrioritisedReplay(1_000, 1, alpha=1.0, beta=0.5)
    memory.add(*sentences(4, 8), np.array([1.0, 9.0], np.float32))
    sample = memory.sample(400)
    lengths = np.diff(sample.sentences)
    assert np.average(sample.weights, weights=lengths) == pytest.approx(1)
    rare, often = (sample.weights[sample.keys == key] for key in (0, 1))
    assert (rare == rare[0]).all()
    assert rare[0] / often[0] == pytest.approx(3.0)


def test_some_draws_are_uniform_and_bound_the_weights() -> None:
    priority = np.array([1e-9, 1.0, 1.0, 1e3] * 25, np.float32)
    memory = PrioritisedReplay(1_000, 3, alpha=1.0, beta=1.0, mix=0.25, weights="unbiased")
    memory.add(*sentences(*[4] * 100), priority)
    share = 0.75 * priority.astype(float) / priority.sum(dtype=float) + 0.25 / 100
    assert chi_square(draws(memory, 100, 4), share) > 0.001
    sample = memory.sample(4 * 40_000)
    np.testing.assert_allclose(sample.weights, 1 / (100 * share[sample.keys]), rtol=1e-5)
    assert sample.weights.max() <= 1 / 0.25
    assert abs(np.mean(sample.weights) - 1.0) < 0.03


def test_first_priorities_are_relative_to_the_measured_ones() -> None:
    """A crawling process cannot know how large a loss is: 1 stands for the usual one."""
    memory = PrioritisedReplay(1_000, 4, alpha=1.0)
    memory.add(*sentences(4, 4), np.ones(2, np.float32))
    memory.update(np.array([0, 1]), np.array([6.0, 2.0], np.float32))
    memory.add(*sentences(4, 4, first=2), np.array([1.0, 2.0], np.float32))
    assert chi_square(draws(memory, 4, 4), np.array([6.0, 2.0, 4.0, 8.0])) > 0.001
    memory.update(np.array([2]), np.array([14.0], np.float32))  # the usual one is 5 now
    memory.add(*sentences(4, first=4), np.ones(1, np.float32))
    assert chi_square(draws(memory, 5, 4), np.array([6.0, 2.0, 14.0, 8.0, 5.0])) > 0.001


def test_gradients_are_ranked_by_token() -> None:
    memory = PrioritisedReplay(1_000, 5, alpha=1.0, measure="gradient")
    memory.add(*sentences(2, 8))
    memory.update(np.array([0, 1]), np.array([2.0, 8.0], np.float32))
    counts = np.bincount(memory.sample(40_000).keys)
    assert chi_square(counts, np.ones(2)) > 0.001


@both
def test_adding_tells_the_keys(make: Make) -> None:
    memory = make(100, 0)
    assert memory.add(*sentences(3, 0, 3)).tolist() == [0, -1, 1]
    assert memory.add(*sentences(3)).tolist() == [2]
    memory.update(np.array([0, -1, 1]), np.array([1.0, 2.0, 3.0], np.float32))
    assert set(memory.sample(60).keys.tolist()) == {0, 1, 2}


def test_a_new_sentence_gets_the_largest_priority() -> None:
    memory = PrioritisedReplay(1_000, 2, alpha=1.0)
    memory.add(*sentences(*[4] * 9), np.full(9, 1.0, np.float32))
    memory.update(np.array([3]), np.array([9.0], np.float32))
    memory.add(*sentences(4, first=9))
    counts = draws(memory, 10, 4)
    assert chi_square(counts, np.array([1, 1, 1, 9, 1, 1, 1, 1, 1, 9.0])) > 0.001


def test_a_sentence_without_priority_can_still_be_drawn() -> None:
    memory = PrioritisedReplay(1_000, 2)
    memory.add(*sentences(4, 4), np.zeros(2, np.float32))
    assert set(memory.sample(400).tokens.tolist()) == {0, 1}


@pytest.mark.parametrize(
    ("setting", "value"),
    [("alpha", 1.5), ("beta", -0.1), ("mix", 2), ("weights", "max")],
)
def test_settings_that_cannot_work_are_refused(setting: str, value: object) -> None:
    with pytest.raises(ConfigError, match=setting):
        PrioritisedReplay(1_000, **{setting: value})  # type: ignore[arg-type]


def test_a_key_never_given_out_is_refused() -> None:
    memory = PrioritisedReplay(1_000)
    with pytest.raises(InputError, match="never given out"):
        memory.update(np.array([0]), np.ones(1, np.float32))


def test_the_configuration_chooses() -> None:
    uniform = make_replay(StreamConfig())
    assert isinstance(uniform, UniformReplay)
    assert uniform.measure == "none"
    loss = make_replay(
        StreamConfig(replay="loss", replay_tokens=5_000).model_copy(update={"replay_alpha": 0.3})
    )
    assert isinstance(loss, PrioritisedReplay)
    assert (loss.capacity, loss.alpha, loss.beta, loss.measure) == (5_000, 0.3, 0.4, "loss")
    gradient = make_replay(StreamConfig(replay="gradient").model_copy(update={"replay_alpha": 0.3}))
    assert isinstance(gradient, PrioritisedReplay)
    assert (gradient.alpha, gradient.beta, gradient.measure) == (1.0, 1.0, "gradient")


@pytest.mark.parametrize("kind", ["uniform", "loss", "gradient"])
def test_every_memory_is_unbiased_or_says_so(kind: str) -> None:
    """A mean over weighted draws is that over all sentences: 1/(N q) for gradients (Alain)."""
    memory = make_replay(
        StreamConfig(replay=kind, replay_tokens=1_000).model_copy(update={"replay_beta": 0.0}), 7
    )
    memory.add(*sentences(*[5] * 100))
    memory.update(np.arange(100), np.linspace(1, 9, 100, dtype=np.float32))
    sample = memory.sample(5 * 40_000)
    mean = np.mean(sample.weights * sample.keys)
    if kind == "loss":
        assert mean > 55
    else:
        assert abs(mean - 49.5) < 1.0
