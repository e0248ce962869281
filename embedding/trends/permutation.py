"""Whether the uses of a word changed: a permutation test whose units are groups of documents.

Each document that uses a word gives one unit vector (`worker/usage`). Documents are in units;
N_k and S_k are the documents of unit k and the sum of their vectors. With m_s the mean of all units
of source s, of both times, and h_s = N1_s N2_s / N_s of its documents before, after and in all:

    R_k = S_k - N_k m_s,    A = sum of R_k over the later units,    T = |A|² / Σ_s h_s

The labels before and after are permuted over the units of each source, so a change in the mix of
sources is no change of a word. With mean μ, variance v and skewness of T over the permutations and
h = Σ_s h_s, the squared distance of both times beyond chance is (T - μ) / h. p comes from it. How
much a word changed is another question, which `prototypes.py` answers from the same sums.

With enough documents each word differs a little, as what people write about differs. So a word has
changed only if it did more than words do: the hypothesis is that its squared distance is at most d,
the mean of all words, weighted by h (a test of a relevant difference; Hodges and Lehmann 1954).
Then T has mean μ + hd and, as a noncentral χ² would, variance v (1 + 2hd / μ). p is the upper tail
of Pearson's type III distribution with these (Kazi-Aoual et al. 1995; Josse, Pagès and Husson
2008), z the normal deviate of p. A small p is found again by more permutations: it is the share
that reaches T where enough do (as Besag and Clifford 1991 stop when they have seen enough). Where
fewer do, it is at least that of a generalised Pareto distribution fitted to the largest permuted T
(Knijnenburg, Wessels, Reinders and Shmulevich 2009): type III has the moments of all permutations,
and its tail is too short far out.

A word that changed some windows ago differs from all windows before, too, but did not change now.
So it must differ from the last of them as well: with labels permuted over the units of this window
and that one alone, p must be at most LATELY; else the larger of both p counts.

What all words have in common in their change is the topic of the time and no change of a word. So
the principal directions of A, at length 1, over the frequent words are taken out of R (as Mu and
Viswanath 2018 take them out of vectors), each by its excess over chance: of a direction in which
there is λ, and at most λ₀ in the same one of any of COMPARED permutations (parallel analysis; Horn
1965), the part max(0, 1 − λ₀/λ) goes. Of a large vocabulary the SAMPLED words of most documents
show them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from embedding.kernel.records import FloatArray, IntArray
from embedding.trends.prototypes import Prototypes, interval
from embedding.trends.replicas import Labels, Units, UsedWords
from embedding.trends.significance import TestArray, normal_isf, pareto_sf, pearson3_sf

PERMUTATIONS = 299
DOUBTFUL = 0.02
"""p below which it is found by more permutations, as some hundred do not show a tail."""
REFINED = (4_999, 49_999)
SEEN = 10
"""If so many permutations reach T, p is their share. If fewer do, p is that of the fitted tail."""
LARGEST = 500
"""The largest permuted T, to which the tail is fitted."""
CERTAIN = 1e-8
"""p below which no more permutations are wanted: none of them would reach T."""
LATELY = 0.05
"""p by the window and the one before it, up to which a word changed in this window."""
COMPARED = 19
WORDS_EACH = 50
"""Frequent words that a direction has to be seen in."""
_FREQUENT = 30
"""Documents before and after that a frequent word has."""
SAMPLED = 5_000
"""Frequent words that directions are taken from, at most."""
MIN_DOCUMENTS = 6
"""Documents before and after below which nothing is said of a word."""
MOST_UNITS = 96
"""Units of a word at a time; more are merged."""
_CELLS = 1 << 22
_SKEW = (0.05, 10.0)
_SURE = 1e-300


@dataclass(frozen=True)
class Grounds:
    """What words were judged by, to look at single ones again (`moved.support`).

    compared  whose units they are; source `at` of them is sources[at]
    common    float32 [dim, c], directions that were taken out; usual: d
    lengths   float64 [2], usual squared lengths of prototypes (`prototypes.py`)
    """

    compared: Compared
    sources: tuple[str, ...]
    common: FloatArray
    usual: float
    lengths: TestArray

    def interval(self, word: int) -> tuple[float, float]:
        """Of the size of a word's change, by its place among those that were judged."""
        units = self.compared.merged(np.array([word], dtype=np.int64))
        measured = Measured.of(units, self.common)
        chance = float(measured.spread[0] / measured.weight[0])
        return interval(units, self.common, self.lengths, chance)


@dataclass(frozen=True)
class PeriodSide:
    """The use of n words in one source and window; later: whether it counts as such.

    source  of the labels that are permuted among each other: 0, 1, 2, …
    older   whether other windows lie between this one and the later one
    joined  its units and those of the side before it are the same, as these have the same authors
    """

    words: UsedWords
    name: str
    later: bool
    source: int
    older: bool = False
    joined: bool = False


@dataclass(frozen=True)
class Compared:
    """Both times, or both groups of sources, of the same n words."""

    sides: tuple[PeriodSide, ...]

    def units(self, words: IntArray) -> Units:
        """The units of the words int64 [k]. What was looked at of mapped files is let go."""
        documents: list[FloatArray] = []
        sums: list[FloatArray] = []
        for side in self.sides:
            theirs, means = side.words.take(words).replicas(side.name)
            means *= theirs[..., None]
            if side.joined:
                theirs, means = documents.pop() + theirs, sums.pop() + means
            documents.append(theirs)
            sums.append(means)
            side.words.usage.release()
        sizes = [columns.shape[1] for columns in documents]
        kinds = [(side.later, side.source, side.older) for side in self.sides if not side.joined]
        later, source, older = np.repeat(np.array(kinds, dtype=np.int64), sizes, axis=0).T
        return Units(
            np.concatenate(documents, axis=1),
            np.concatenate(sums, axis=1),
            later.astype(bool),
            source,
            older.astype(bool),
        )

    def without_busiest(self, words: IntArray) -> Units | None:
        """The same without what the busiest authors of the window wrote; None: it is not known."""
        if all(side.words.busiest is None for side in self.sides):
            return None
        units, first = self.units(words), 0
        documents, sums = units.documents.copy(), units.sums.copy()
        for side in self.sides:
            size, busiest = side.words.usage.pairs.shape[1], side.words.busiest
            first -= size if side.joined else 0
            if busiest is not None:
                theirs, means = busiest.take(words).replicas(side.name)
                own = slice(first, first + size)
                documents[:, own] = np.maximum(documents[:, own] - theirs, 0.0)
                sums[:, own] -= means * theirs[..., None]
                # What is left of sums that were rounded is no document's.
                sums[:, own] *= (documents[:, own] > 0)[..., None]
                busiest.usage.release()
            first += size
        return replace(units, documents=documents, sums=sums)

    def merged(self, words: IntArray) -> Units:
        """The same, at most MOST_UNITS of them."""
        return self.units(words).merged(MOST_UNITS)

    def documents(self) -> tuple[TestArray, TestArray]:
        """Of all words, float64 [n] before and [n] after."""
        n = len(self.sides[0].words.rows)
        before, after = np.zeros(n), np.zeros(n)
        for side in self.sides:
            time = after if side.later else before
            time += side.words.pairs(side.name).sum(axis=1, dtype=np.float64)
        return before, after


@dataclass(frozen=True)
class Permuted:
    """z and p, one-sided, and size, float64 [n]; 0, 1, 0 for a word without enough documents.

    size  cosine distance of both times without chance (`prototypes.py`). Permutations of few units
          hold large changes themselves, so z does not grow with them
    grounds  None where no word was judged
    """

    z: TestArray
    p: TestArray
    size: TestArray
    grounds: Grounds | None = None


def between_times(before: Sequence[UsedWords], *after: UsedWords) -> Permuted:
    """Judge the words of `after` by those of `before`: the same words, the latest window first.

    after  windows whose documents count as one time, an author's in one unit
    """
    names = sorted(
        {name for w in before for name in w.usage.by_source}
        & {name for w in after for name in w.usage.by_source}
    )
    older = range(1, len(before))
    sides = [
        PeriodSide(
            *(window, name, back >= len(before), which, back in older),
            joined=any(name in w.usage.by_source for w in after[: max(back - len(before), 0)]),
        )
        for which, name in enumerate(names)
        for back, window in enumerate((*before, *after))
        if name in window.usage.by_source
    ]
    return _judged(len(after[0].rows), Compared(tuple(sides)), tuple(names))


def between_sources(words: UsedWords, first: str, others: Sequence[str]) -> Permuted:
    """Judge how differently a source and some others, taken together, use words of one window."""
    sides = (
        PeriodSide(words, first, False, 0),
        *(PeriodSide(words, name, True, 0) for name in others),
    )
    return _judged(len(words.rows), Compared(sides), (first,))


@dataclass(frozen=True)
class Measured:
    """T of n words and what permutations show of it, float64 [n]; NaN where nothing can be said.

    spread  standard deviation; weight: h
    """

    observed: TestArray
    mean: TestArray
    spread: TestArray
    skew: TestArray
    weight: TestArray

    @classmethod
    def of(cls, units: Units, common: FloatArray) -> Measured:
        """common: float32 [dim, k], directions to take out."""
        statistics, weight = _statistics(units, common, permutations(units, PERMUTATIONS))
        return cls.by(statistics, weight)

    @classmethod
    def by(cls, statistics: TestArray, weight: TestArray) -> Measured:
        """found: T float64 [n, 1 + k], first the true one; weight: h float64 [n]."""
        known = np.isfinite(statistics[:, 1:])
        null = np.where(known, statistics[:, 1:], 0.0)
        times = np.maximum(known.sum(axis=1), 1)
        mean = null.sum(axis=1) / times
        apart = np.where(known, null - mean[:, None], 0.0)
        spread = np.sqrt((apart**2).sum(axis=1) / times)
        skew = (apart**3).sum(axis=1) / times / np.maximum(spread, 1e-30) ** 3
        every = np.stack([statistics[:, 0], mean, spread, skew, weight])
        every[:, (spread <= 0) | (known.sum(axis=1) < known.shape[1] // 2)] = np.nan
        every[:, ~np.isfinite(every[0])] = np.nan
        return cls(*every)

    def deviates(self, usual: float) -> tuple[TestArray, TestArray]:
        """T in standard deviations from what words of squared distance `usual` have; its skewness.

        float64 [n] and [n]
        """
        wider = np.sqrt(1.0 + 2.0 * self.weight * usual / np.maximum(self.mean, 1e-30))
        beyond = self.observed - self.mean - self.weight * usual
        return beyond / (self.spread * wider), np.clip(self.skew / wider, *_SKEW)

    def usual(self) -> float:
        """d; 0 of fewer words than a direction has to be seen in."""
        known = np.isfinite(self.observed)
        if known.sum() < WORDS_EACH:
            return 0.0
        beyond = (self.observed - self.mean)[known].sum()
        return max(float(beyond / self.weight[known].sum()), 0.0)

    def p(self, usual: float) -> TestArray:
        """float64 [n], of squared distances of at most `usual`; 1 where nothing can be said."""
        p = np.ones(len(self.observed))
        known = np.isfinite(self.observed)
        deviates, skew = self.deviates(usual)
        p[known] = np.clip(pearson3_sf(deviates[known], skew[known]), _SURE, 1.0)
        return p


def refined(units: Units, common: FloatArray, usual: float, labels: Labels) -> TestArray:
    """p float64 [n] by labels [1 + k, u]: the share that reaches T, if SEEN of them do."""
    statistics, weight = _statistics(units, common, labels)
    measured = Measured.by(statistics, weight)
    p = measured.p(usual)
    deviates, _ = measured.deviates(usual)
    null = (statistics[:, 1:] - measured.mean[:, None]) / measured.spread[:, None]
    reach = (null >= deviates[:, None]).sum(axis=1)
    few = reach < SEEN
    p[few] = np.maximum(p[few], pareto_tail(null[few], deviates[few]))
    return np.where(few, p, (1 + reach) / len(labels))


def pareto_tail(null: TestArray, beyond: TestArray) -> TestArray:
    """Share float64 [n] of a distribution, of which `null` [n, k] are drawn, above `beyond` [n].

    A generalised Pareto distribution of the LARGEST by their moments: of what they are above the
    next one, mean m and variance v, its shape is ξ = (1 - m²/v) / 2 and its scale σ = m (1 - ξ)
    (Hosking and Wallis 1987). 0 above its end, and where there are not twice as many.
    """
    n, k = null.shape
    if k < 2 * LARGEST:
        return np.zeros(n)
    largest = np.partition(null, k - LARGEST - 1, axis=1)[:, k - LARGEST - 1 :]
    least, above = largest[:, 0], largest[:, 1:] - largest[:, :1]
    mean, variance = above.mean(axis=1), np.maximum(above.var(axis=1), _SURE)
    shape = 0.5 * (1.0 - mean**2 / variance)
    share: TestArray = pareto_sf(beyond - least, shape, mean * (1.0 - shape)) * (LARGEST / k)
    return share


def permutations(units: Units, times: int, among: Labels | None = None) -> Labels:
    """bool [1 + times, u]: which units count as later; first the true ones.

    among  bool [u]: only the labels of these are permuted; None: of all
    """
    random = np.random.default_rng(0)
    labels = np.repeat(units.later[None], 1 + times, axis=0)
    among = np.ones(len(units.later), dtype=bool) if among is None else among
    for source in np.unique(units.source).tolist():
        own = np.flatnonzero((units.source == source) & among)
        labels[1:, own] = random.permuted(labels[1:, own], axis=1)
    return labels


def _statistics(units: Units, common: FloatArray, labels: Labels) -> tuple[TestArray, TestArray]:
    """T float64 [n, k] for labels [k, u], and h float64 [n] for the first.

    T is NaN where no source has documents of both times, and for a word with too few of them.
    common: float32 [dim, c], directions that are taken out.
    """
    every = np.full((len(units.documents), len(labels)), np.nan)
    heavy = np.full(len(units.documents), np.nan)
    rest, documents = units.residuals()
    seen = documents[:, units.later].sum(axis=1)
    enough = (seen >= MIN_DOCUMENTS) & (documents.sum(axis=1) - seen >= MIN_DOCUMENTS)
    if not enough.any():
        return every, heavy
    rest, documents, source = rest[enough], documents[enough], units.source
    if common.shape[1]:
        rest = rest - (rest @ common) @ common.T
    chosen = labels.astype(np.float32)
    products = rest @ rest.transpose(0, 2, 1)
    squares = ((chosen @ products) * chosen).sum(axis=2)
    weight = np.zeros(squares.shape, dtype=np.float32)
    for number in np.unique(source).tolist():
        own = np.flatnonzero(source == number)
        after = documents[:, own] @ chosen[:, own].T
        total = documents[:, own].sum(axis=1)[:, None]
        weight += after * (total - after) / np.maximum(total, np.float32(1e-9))
    with np.errstate(invalid="ignore", divide="ignore"):
        known: TestArray = (squares / weight).astype(np.float64)
    known[weight <= 1e-6] = np.nan
    every[enough], heavy[enough] = known, weight[:, 0]
    return every, heavy


def common_directions(together: FloatArray, words: int) -> FloatArray:
    """C float32 [dim, k]: what frequent words have in common in their change, beyond chance.

    R - (R C) Cᵀ is R without that: each column has the root of its part beyond chance as length.

    together  float32 [1 + COMPARED, dim, dim], AᵀA with rows of length 1: truly, and permuted
    words     rows of A
    """
    sizes, axes = np.linalg.eigh(together)
    sizes = sizes[:, ::-1][:, : words // WORDS_EACH]
    chance = sizes[1:].max(axis=0) / np.maximum(sizes[0], 1e-12)
    lengths = np.sqrt(np.clip(1.0 - chance, 0.0, 1.0))
    directions: FloatArray = (axes[0][:, ::-1][:, : len(lengths)] * lengths).astype(np.float32)
    return directions[:, lengths > 0]


def _together(units: Units) -> tuple[FloatArray, int]:
    """AᵀA of `common_directions` and its rows, of the frequent words of `units`."""
    rest, documents = units.residuals()
    after = documents[:, units.later].sum(axis=1)
    often = (after >= _FREQUENT) & (documents.sum(axis=1) - after >= _FREQUENT)
    labels = permutations(units, COMPARED).astype(np.float32)
    changes = np.einsum("ku,nud->knd", labels, rest[often], optimize=True)
    changes /= np.maximum(np.linalg.norm(changes, axis=2, keepdims=True), np.float32(1e-9))
    products: FloatArray = changes.transpose(0, 2, 1) @ changes
    return products, int(often.sum())


def _judged(n: int, compared: Compared, sources: tuple[str, ...]) -> Permuted:
    """Both passes over the words, some at a time: directions first, then T."""
    if not compared.sides or not n:
        return Permuted(np.zeros(n), np.ones(n), np.zeros(n))
    before, after = compared.documents()
    common = _common(compared, before, after)
    enough = np.flatnonzero(np.minimum(before, after) >= MIN_DOCUMENTS)
    columns = np.full((len(fields(Measured)), n), np.nan)
    prototypes = []
    for part in _parts(enough):
        units = compared.merged(part)
        measured = Measured.of(units, common)
        columns[:, part] = [getattr(measured, field.name) for field in fields(Measured)]
        prototypes.append(Prototypes.of(units, common))
    measured = Measured(*columns)
    usual = measured.usual()
    p = measured.p(usual)
    near = np.flatnonzero(p < DOUBTFUL)
    for times in REFINED:
        if not len(near):
            break
        labels = permutations(compared.merged(near[:1]), times)
        for part in _parts(near, times):
            p[part] = refined(compared.merged(part), common, usual, labels)
        near = near[(p[near] > CERTAIN) & (p[near] < SEEN / times)]
    near = np.flatnonzero(p < DOUBTFUL)
    if any(side.older for side in compared.sides):
        p[near] = _lately(compared, near, common, usual, p[near])
    z = np.where(np.isfinite(measured.observed), normal_isf(np.minimum(p, 1.0 - 1e-9)), 0.0)
    size, lengths = np.zeros(n), np.ones(2)
    if prototypes:
        every = Prototypes.joined(prototypes)
        lengths = every.usual()
        size[enough] = every.distance(lengths)
    return Permuted(z, p, size, Grounds(compared, sources, common, usual, lengths))


def _lately(
    compared: Compared, words: IntArray, common: FloatArray, usual: float, p: TestArray
) -> TestArray:
    """p float64 [k] of some words, larger where they did not change against the last window."""
    larger = p.copy()
    labels: Labels | None = None
    for part in _parts(np.arange(len(words)), REFINED[0]):
        units = compared.merged(words[part])
        if labels is None:
            labels = permutations(units, REFINED[0], ~units.older)
        last = refined(units, common, usual, labels)
        larger[part] = np.where(last <= LATELY, p[part], np.maximum(p[part], last))
    return larger


def _common(compared: Compared, before: TestArray, after: TestArray) -> FloatArray:
    """float32 [dim, k]: `common_directions` of the SAMPLED frequent words of most documents.

    before, after  float64 [n], documents of all words
    """
    often = np.flatnonzero(np.minimum(before, after) >= _FREQUENT)
    most = np.argsort(-(before + after)[often], kind="stable")[:SAMPLED]
    often = np.sort(often[most])
    if not len(often):
        dim = compared.units(np.zeros(1, dtype=np.int64)).sums.shape[2]
        return np.zeros((dim, 0), dtype=np.float32)
    parts = [_together(compared.merged(part)) for part in _parts(often)]
    together: FloatArray = np.sum([products for products, _ in parts], axis=0)
    return common_directions(together, sum(words for _, words in parts))


def _parts(words: IntArray, times: int = PERMUTATIONS) -> Iterator[IntArray]:
    """Words at a time, so that what so many permutations take stays within some ten MB."""
    size = max(1, _CELLS // (times * MOST_UNITS))
    for start in range(0, len(words), size):
        yield words[start : start + size]
