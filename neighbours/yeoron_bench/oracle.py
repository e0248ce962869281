"""What is called by a test that knows in which direction each planted word moved: a ceiling.

A planted word takes contexts of another one. An oracle projects the units of its documents onto the
line from its own mean before to the other one's, and permutes the labels of time as the report does
(`embedding/trends/permutation.py`), one-sided. No test of the same sums that does not know the line
finds more. Words that are not planted keep their p.
"""

from __future__ import annotations

from collections.abc import Mapping

from embedding.kernel.records import IntArray
from embedding.trends.moved import JudgedWords
from embedding.trends.permutation import Grounds, permutations
from embedding.trends.significance import TestArray
from yeoron_bench.planting import PlantedCorpus

_PERMUTATIONS = 49_999


def donors(corpus: PlantedCorpus, window: int) -> dict[str, str]:
    """The words that change in a window, each with the word whose contexts it takes."""
    return {
        change.word: change.other
        for change in corpus.planted
        if change.kind.genuine and change.window == window and change.other is not None
    }


def oracle_p(judged: JudgedWords, names: list[str], moved: Mapping[str, str]) -> TestArray:
    """p float64 [n] of the words `names` that were judged; planted ones by their direction.

    A planted word keeps its p where the other one is not among the judged.
    """
    p = judged.ranked.p.copy()
    place = {name: at for at, name in enumerate(names)}
    if judged.grounds is None or judged.places is None:
        return p
    for word, donor in moved.items():
        if word in place and donor in place and p[place[word]] < 1.0:
            at = judged.places[[place[word], place[donor]]]
            p[place[word]] = _projected(judged.grounds, at)
    return p


def _projected(grounds: Grounds, at: IntArray) -> float:
    """p of the word at[0] along the line to at[1], by their places among those judged."""
    units = grounds.compared.merged(at)
    sums: TestArray = units.sums - (units.sums @ grounds.common) @ grounds.common.T
    # The word's own mean is that of both times: one of the labels would take part in the direction.
    own = sums[0].sum(axis=0) / units.documents[0].sum()
    other = sums[1, ~units.later].sum(axis=0) / units.documents[1, ~units.later].sum()
    rest, _ = units.residuals()
    along = rest[0] @ (other - own)
    projections = permutations(units, _PERMUTATIONS) @ along
    return float((projections >= projections[0] - 1e-9).sum() / len(projections))
