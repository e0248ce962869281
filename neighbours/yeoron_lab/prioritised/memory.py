"""Prioritised replay: sentences that taught much are drawn more often.

Schaul, Quan, Antonoglou and Silver 2016, "Prioritized Experience Replay", the proportional
variant: P(i) = p_i^α / Σ_k p_k^α (equation 1), weight w_i = (1 / (N·q_i))^β. The paper divides
by the largest weight of the sample (section 3.4), which lowers the learning rate of all others;
here the mean weight of a token is 1, so that a learning rate means what it means without replay.

With α = β = 1 and `weights="unbiased"` (plain 1 / (N·q_i)) it is the importance sampling of Alain
et al. 2015, "Variance Reduction in SGD by Distributed Importance Sampling". The norm of a
sentence's gradient is divided by its tokens first, since draws are paid for in tokens.

Where Alain et al. add a constant to norms that may have gone stale, a share ε of the draws is
uniform here (a defensive mixture, Hesterberg 1995): q_i = (1 - ε)·P(i) + ε / N, so that no 1/(N·q)
is above 1/ε, whatever the priorities.

Initial priorities come from whoever adds a sentence (Horgan et al. 2018, Ape-X): relative ones,
which are multiplied by the running mean of the measured ones.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from embedding.kernel.config import part_of
from embedding.kernel.errors import ConfigError, InputError
from embedding.kernel.records import CodeArray, FloatArray, IntArray
from embedding.kernel.registry import NoTraits
from embedding.stream.config import REPLAYS, StreamConfig
from embedding.stream.ring import Measure, Sample, SentenceRing, check_priority, sample_alike
from yeoron_lab.prioritised.initial import InitialPriorities
from yeoron_lab.settings import ReplaySettings

_FLOOR = 1e-6  # ε of the paper: a sentence of priority 0 can still be drawn
_MEMORY = 0.9  # of the running mean of measured priorities, an update
MIX = 0.1
"""Share of uniform draws by loss or gradient. It bounds what a priority that has become wrong can
do: no sentence is forgotten, no unbiased weight is above 1 / MIX."""


Weights = npt.NDArray[np.float64]


class SumTree:
    """Non-negative weights of `n` leaves, all 0 at first: proportional draws and updates in
    O(log n), vectorised level by level (Schaul et al. 2016, appendix B.2.1).

    Node i has children 2i and 2i + 1; leaves start at `size`. Parents are recomputed from their
    children, never adjusted by a difference, so rounding errors do not pile up.
    """

    def __init__(self, n: int) -> None:
        self.size = 1 << max(0, n - 1).bit_length()
        self._nodes = np.zeros(2 * self.size, np.float64)

    @property
    def total(self) -> float:
        return float(self._nodes[1])

    @property
    def nbytes(self) -> int:
        return self._nodes.nbytes

    def get(self, leaves: IntArray) -> Weights:
        """Weights float64 [m] of `leaves` int64 [m]."""
        weights: Weights = self._nodes[leaves + self.size]
        return weights

    def set(self, leaves: IntArray, weights: Weights) -> None:
        """Set weights; of a leaf named twice the last counts. O(m log n)."""
        if not len(leaves):
            return
        at = leaves + self.size
        self._nodes[at] = weights
        while at[0] > 1:
            at = at >> 1
            if len(at) > 64:
                at = np.unique(at)
            self._nodes[at] = self._nodes[2 * at] + self._nodes[2 * at + 1]

    def find(self, masses: Weights) -> IntArray:
        """Leaf int64 [m] in which each cumulative mass float64 [m] of [0, total) falls."""
        at = np.ones(len(masses), np.int64)
        rest = np.array(masses, np.float64)
        while at.size and at[0] < self.size:
            left = 2 * at
            weight = self._nodes[left]
            # A right child of weight 0 is never entered, whatever rounding left in `rest`.
            right = (rest >= weight) & (self._nodes[left + 1] > 0)
            rest -= np.where(right, weight, 0.0)
            at = left + right
        return at - self.size


class PrioritisedReplay:
    """Draws sentences in proportion to priority^alpha.

    A sentence without a priority gets the largest one seen, so that it is drawn soon (Algorithm 1).
    O(log n) a sentence.
    `measure` is what `update` is told; `mix` is ε, the share of uniform draws.
    """

    def __init__(
        self,
        capacity_tokens: int,
        seed: int = 0,
        *,
        measure: Measure = "loss",
        alpha: float = 0.6,
        beta: float = 0.4,
        mix: float = 0.0,
        weights: Literal["mean", "unbiased"] = "mean",
    ) -> None:
        for name, value in (("alpha", alpha), ("beta", beta), ("mix", mix)):
            if not 0.0 <= value <= 1.0:
                raise ConfigError(f"prioritised replay: {name} must lie in [0, 1], got {value}.")
        if weights not in ("mean", "unbiased"):
            raise ConfigError(
                f"prioritised replay: weights are 'mean' or 'unbiased', got {weights!r}."
            )
        self.capacity = capacity_tokens
        self.measure: Measure = measure
        self.alpha = alpha
        self._mix = mix
        self.beta = beta
        self._normalised = weights == "mean"
        self._ring = SentenceRing(capacity_tokens)
        self._tree = SumTree(self._ring.slots)
        self._largest = 1.0
        self._usual = 1.0
        self._measured = False
        self._random = np.random.default_rng(seed)

    def add(
        self, tokens: IntArray, sentences: CodeArray, priority: FloatArray | None = None
    ) -> IntArray:
        """Insert sentences; `priority` float32 [m] in units of the measured ones' running mean.

        None: the largest priority seen so far.
        """
        count = len(sentences) - 1
        check_priority(priority, count)
        before = self._ring.oldest
        serials = self._ring.add(tokens, sentences)
        self._forget(before)
        if priority is None:
            values = np.full(count, self._largest)
        else:
            values = np.asarray(priority, np.float64) * self._usual
        self._set(serials, values)
        return serials

    def sample(self, n_tokens: int, since: int | None = None) -> Sample:
        ring, total = self._ring, self._tree.total
        if since is not None:
            return sample_alike(ring, n_tokens, self._random, since)

        def draw(count: int) -> IntArray:
            leaves = self._tree.find(self._random.random(count) * total)
            serials = ring.oldest + (leaves - ring.oldest) % ring.slots
            if self._mix:
                alike = self._random.integers(ring.oldest, ring.next, size=count)
                serials = np.where(self._random.random(count) < self._mix, alike, serials)
            return serials

        tokens, sentences, keys = ring.gather(n_tokens, draw)
        chance = self._tree.get(ring.slot(keys)) / total if len(keys) else np.ones(0)
        shares = (1.0 - self._mix) * len(ring) * chance + self._mix
        weights = shares**-self.beta
        if self._normalised and len(weights):
            weights /= np.average(weights, weights=np.diff(sentences))
        return Sample(tokens, sentences, keys, weights.astype(np.float32))

    def update(self, keys: IntArray, priority: FloatArray) -> None:
        """Set priorities of sentences (of one named twice the last counts).

        priority  float32 [m]: mean loss of a pair, or norm of the gradient of the summed loss
        """
        check_priority(priority, len(keys))
        serials = np.asarray(keys, np.int64)
        if (serials >= self._ring.next).any() or (serials < -1).any():
            raise InputError("prioritised replay: a key that was never given out.")
        present = serials >= self._ring.oldest
        serials, values = serials[present], np.asarray(priority, np.float64)[present]
        if self.measure == "gradient":
            values = values / self._ring.lengths(serials)
        if len(values):
            mean, memory = float(values.mean()), _MEMORY if self._measured else 0.0
            self._usual, self._measured = memory * self._usual + (1 - memory) * mean, True
        self._set(serials, values)

    def _set(self, serials: IntArray, priority: Weights) -> None:
        """Write p^alpha of the serials that are still held."""
        present = serials >= self._ring.oldest
        if not present.any():
            return
        values = np.maximum(priority[present], _FLOOR)
        self._largest = max(self._largest, float(values.max()))
        self._tree.set(self._ring.slot(serials[present]), values**self.alpha)

    def _forget(self, before: int) -> None:
        """Give the sentences that left since serial `before` weight 0."""
        first = max(before, self._ring.oldest - self._ring.slots)
        gone = np.arange(first, self._ring.oldest)
        self._tree.set(self._ring.slot(gone), np.zeros(len(gone)))

    def __len__(self) -> int:
        return len(self._ring)

    @property
    def tokens(self) -> int:
        return self._ring.tokens

    @property
    def nbytes(self) -> int:
        return self._ring.nbytes + self._tree.nbytes


@REPLAYS.register("loss", NoTraits())
class ByLoss:
    """As Schaul et al. draw, with some uniform draws; see ReplayKind."""

    @staticmethod
    def memory(config: StreamConfig, seed: int) -> PrioritisedReplay:
        settings = part_of(config, ReplaySettings)
        alpha, beta = settings.replay_alpha, settings.replay_beta
        return PrioritisedReplay(config.replay_tokens, seed, alpha=alpha, beta=beta, mix=MIX)

    @staticmethod
    def ranking(sample: float, min_count: int, capacity: int) -> InitialPriorities:
        return InitialPriorities("loss", sample=sample, min_count=min_count, capacity=capacity)


@REPLAYS.register("gradient", NoTraits())
class ByGradient:
    """As Alain et al. draw, with some uniform draws; see ReplayKind."""

    @staticmethod
    def memory(config: StreamConfig, seed: int) -> PrioritisedReplay:
        return PrioritisedReplay(
            config.replay_tokens,
            seed,
            measure="gradient",
            alpha=1.0,
            beta=1.0,
            mix=MIX,
            weights="unbiased",
        )

    @staticmethod
    def ranking(sample: float, min_count: int, capacity: int) -> InitialPriorities:
        return InitialPriorities("gradient", sample=sample, min_count=min_count, capacity=capacity)
