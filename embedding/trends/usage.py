"""How differently a word is used in two windows, from sums of its contexts in replicas.

Temporal referencing (Dubossarsky et al. 2019) in closed form: a word has a row for each window and
source, the mean m of what its contexts say (`worker/usage`), in the one space of a model that
went on learning, so that nothing has to be aligned. Two times are compared within each source,
so a change in the mix of sources is no change of meaning.

The squared length of a difference of means is never 0, however alike the uses are: its expectation
holds the variance of both means. The replicas hold different texts and say how large it is, so it
can be taken off (as in the cross-validated Mahalanobis distance, Walther et al. 2016):

    e² = |Σ_s w_s (m_s,after − m_s,before)|² − Σ_s w_s² (v_s,after + v_s,before)
    v = r/(r−1) Σ_k |N_k (m_k − m)|² / N²,    N = Σ_k N_k,    Σ_s w_s = 1

with weights w_s of the harmonic mean of both N of a source, and r replicas that hold anything. e²
is unbiased, and below 0 for about half of all words whose use did not change. The time before may
be several windows: their replicas then say, too, how far a word's use goes from window to window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from embedding.kernel.records import IntArray
from embedding.trends.replicas import Replicas, UsedWords, signed_root, unbiased
from embedding.trends.significance import TestArray

_BLOCK = 128
"""Words at a time: their means stay within some ten MB a source."""

_HELD = 8
"""Blocks after which mapped pages are let go."""


def usage_shift(before: Sequence[UsedWords], after: Sequence[UsedWords]) -> TestArray:
    """float64 [n]: √e² with the sign of e²; NaN for a word that no source used at both times.

    before, after  the windows of either time, with the same words
    """
    return signed_root(usage_squares(before, after)[0])


def usage_squares(
    before: Sequence[UsedWords], after: Sequence[UsedWords]
) -> tuple[TestArray, TestArray]:
    """e² float64 [n], and the variance [n] taken off; NaN as `usage_shift`."""
    n = len(after[0].rows)
    squared, noise = np.full(n, np.nan), np.full(n, np.nan)
    for part, sources in _blocks(before, after):
        squared[part], noise[part] = unbiased(sources)
        if (part[-1] + 1) % (_HELD * _BLOCK) == 0:
            _release((*before, *after))
    if n > _BLOCK:
        _release((*before, *after))
    return squared, noise


def _release(windows: Sequence[UsedWords]) -> None:
    """Words lie all over a file: nearly each of its pages is looked at by one block alone."""
    for window in windows:
        window.usage.release()


def _blocks(
    before: Sequence[UsedWords], after: Sequence[UsedWords]
) -> Iterator[tuple[IntArray, Iterator[Replicas]]]:
    """Some words at a time, and their replicas in each source that both times have."""
    known = [{s for w in side for s in w.usage.by_source} for side in (before, after)]
    names = sorted(known[0] & known[1])
    for part in _parts(len(after[0].rows)) if names else ():
        sides = [[window.take(part) for window in side] for side in (before, after)]
        yield (
            part,
            (
                Replicas.of(*([(window, name) for window in side] for side in sides))
                for name in names
            ),
        )


def _parts(n: int) -> Iterator[IntArray]:
    for start in range(0, n, _BLOCK):
        yield np.arange(start, min(start + _BLOCK, n))
